# The HTML page in headless chromium.
exec "$LIB/browser.sh" "$LIB/../e2e/product/page_browser.mjs" "$ASSAY"
