# The HTML page in headless Firefox.
exec "$LIB/browser.sh" "$LIB/../e2e/product/page_firefox.mjs" "$ASSAY" firefox
