# The HTML page in headless Firefox. On a busy machine its remote protocol at times loses the page right
# after loading it ("no such frame"): that is no answer of the page, so the run is repeated, twice at most.
for try in 1 2 3; do
	"$LIB/browser.sh" "$LIB/../e2e/product/page_firefox.mjs" "$ASSAY" firefox > log 2>&1
	status=$?
	[ $status = 1 ] && grep -q 'ProtocolError.*no such frame' log && ! grep -q '^not ok' log || break
	echo "run $try: no such frame"
done
cat log
exit $status
