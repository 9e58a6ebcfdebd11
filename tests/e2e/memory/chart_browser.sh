# A chart in a real browser: complete without a pointer, values at the pointer, arrow keys move it.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
chromium=$(command -v chromium || command -v chromium-browser) || skip "chromium is not installed"
$ASSAY watch --every 20ms -o run.assay --chart run.svg -- sh -c 'sleep 0.6' 2> err || fail "watch: $(cat err)"
# simulates user input, after the chart's own script
cat > hand.js << 'JS'
<script><![CDATA[
var plot = document.querySelector('.plot');
var hover = document.querySelector('.hover');
var before = hover.getAttribute('visibility');
function texts() {
	return Array.from(hover.querySelectorAll('text')).map(function (t) { return t.textContent; }).join('|');
}
plot.dispatchEvent(new PointerEvent('pointermove', {clientX: 1170, clientY: 300, bubbles: true}));
var last = texts();
plot.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true}));
var left = texts();
plot.dispatchEvent(new PointerEvent('pointerleave', {}));
document.querySelector('title').textContent =
	['RESULT', before, last, left, hover.getAttribute('visibility')].join(' # ');
]]></script></svg>
JS
sed '$d' run.svg > hand.svg
[ "$(tail -1 run.svg)" = "</svg>" ] || fail "the picture does not end as it should"
cat hand.js >> hand.svg
"$chromium" --headless=new --no-sandbox --disable-gpu --dump-dom "file://$(pwd -P)/hand.svg" > dom 2> chromium.err || fail "chromium: $(tail -3 chromium.err)"
result=$(sed -n 's/.*<title>\(RESULT[^<]*\)<.*/\1/p' dom)
[ -n "$result" ] || fail "the script did not run: $(head -c 400 dom)"
case $result in
"RESULT # hidden # "*" s|"*RSS*"iB"*" # "*" s|"*" # hidden") ;;
*) fail "hover: $result" ;;
esac
left=$(printf '%s' "$result" | awk -F' # ' '{ sub(/ s.*/, "", $4); print $4 }')
last=$(printf '%s' "$result" | awk -F' # ' '{ sub(/ s.*/, "", $3); print $3 }')
awk -v a="$last" -v b="$left" 'BEGIN { exit !(a > b && a > 0.3) }' || fail "times: $last, one to the left $left"
