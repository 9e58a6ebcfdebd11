# Flame graphs in headless chromium.
exec "$LIB/browser.sh" "$LIB/../e2e/product/flame_browser.mjs" "$ASSAY"
