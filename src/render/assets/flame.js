/*
 * The interactive part of a flame graph: zoom, search, keyboard, details. It works on the packed tree
 * in this file (format: src/render/flame.h), which contains every node, drawn or not. So a search
 * counts frames that are too narrow to draw, and zooming draws them.
 *
 * Part of the single script of an SVG file, after unpack.js; the writer wraps both into a function.
 * Needs no network and no storage, and never builds HTML from strings: names become text nodes only.
 */
var SVG = 'http://www.w3.org/2000/svg';
var HTML = 'http://www.w3.org/1999/xhtml';
var script = document.currentScript;
var svg = (script && script.ownerSVGElement) || document.querySelector('svg.assay-flame');
var isPage = svg === document.documentElement;

var KERNEL = 1, INLINED = 2, JIT = 4, GUESSED = 16, INFERRED = 32, CHANGED = 128; /* enum tree_flags */
var DELTA_MIDDLE = 10; /* palette.h: PALETTE_DELTA_NR / 2 */

function setting(name) {
	return svg.getAttribute('data-' + name) || '';
}

var ROW = +setting('row'), FONT = +setting('font'), MIN = +setting('min'), PAD = +setting('pad');
var MIN_PCT = +setting('min-pct'), FACTOR = +setting('factor') || 1;
var THIN = +setting('thin'), FOOT = +setting('foot'), HEAD = +setting('top');
var UNIT = +setting('unit'), COUNT = setting('count'), TYPE = setting('type');

/* ---- the tree ----------------------------------------------------------------------------- */

var packed = '';
svg.querySelectorAll('metadata.tree').forEach(function (m) {
	packed += m.textContent;
});
if (!packed)
	return;
var raw = bytes_from_base64(packed);
var T = unpack(raw[0] === 0x1f && raw[1] === 0x8b ? gunzip(raw) : raw);
packed = raw = null;

/* ---- text --------------------------------------------------------------------------------- */

var charPx = {}, measure = null;

function widthOf(text) {
	if (!measure) {
		measure = document.createElementNS(HTML, 'canvas').getContext('2d');
		measure.font = FONT + 'px ' + svg.getAttribute('font-family');
	}
	var sum = 0;
	for (var i = 0; i < text.length; i++) {
		var c = text[i];
		if (charPx[c] === undefined)
			charPx[c] = measure.measureText(c).width;
		sum += charPx[c];
	}
	return sum;
}

var forms = [];

function label(sym, avail) {
	if (avail < 1.8 * FONT)
		return '';
	var f = forms[sym] || (forms[sym] = nameForms(T.name[sym]).map(function (text) {
		return [text, widthOf(text)];
	}));
	for (var i = 0; i < f.length; i++)
		if (f[i][1] <= avail)
			return f[i][0];
	var text = f[f.length - 1][0], n = 0, left = avail - widthOf('\u2026');
	while (n < text.length && (left -= charPx[text[n]]) >= 0)
		n++;
	return n ? text.slice(0, n) + '\u2026' : '';
}

function grouped(v) {
	return String(v).replace(/\B(?=(\d{3})+$)/g, ',');
}

function countText(i) {
	if (FACTOR !== 1)
		return grouped(Math.round(T.total[i] * FACTOR));
	return grouped(T.isBig ? T.exact[i] : T.total[i]);
}

function weightText(v) {
	var steps = UNIT === 1 ? [[1e9, ' s'], [1e6, ' ms'], [1e3, ' \u00b5s'], [1, ' ns']] :
		[[1099511627776, ' TiB'], [1073741824, ' GiB'], [1048576, ' MiB'], [1024, ' KiB']];
	if (UNIT === 0)
		return '';
	for (var i = 0; i < 4; i++)
		if (v >= steps[i][0]) {
			var x = v / steps[i][0];
			return x.toFixed(x < 10 ? 2 : x < 100 ? 1 : 0) + steps[i][1];
		}
	return '';
}

function percent(part, whole) {
	var v = whole ? 100 * part / whole : 0;
	return (v > 0 && v < 0.005 ? '<0.01' : v.toFixed(2)) + ' %';
}

function kindText(flags) {
	return (flags & KERNEL ? ', kernel' : '') + (flags & INLINED ? ', inlined' : '') +
		(flags & JIT ? ', JIT' : '') + (flags & GUESSED ? ', no symbol' : '') +
		(flags & INFERRED ? ', inferred from a tail call' : '');
}

function details(i) {
	var s = T.sym[i], name = (TYPE ? TYPE + ' ' : '') + T.name[s];
	var where = T.module[s] ? T.module[s] : '';
	var weight = weightText(T.total[i] * FACTOR);
	var text = countText(i) + ' ' + COUNT + (weight ? ' (' + weight + ')' : '') + ' \u00b7 ' +
		percent(T.total[i], T.total[0]) + ' of total';
	if (i)
		text += ' \u00b7 ' + percent(T.total[i], T.total[T.parent[i]]) + ' of parent';
	if (zoomed && zoomed !== i && i > zoomed && i < T.end[zoomed])
		text += ' \u00b7 ' + percent(T.total[i], T.total[zoomed]) + ' of zoomed frame';
	/* leaf functions at the root: these ran, frames above them called them */
	var self = !T.isReversed ? T.self[i] : i && !T.parent[i] ? T.total[i] : 0;
	text += ' \u00b7 ' + percent(self, T.total[0]) + ' self';
	if (T.isDiff) {
		var now = T.total[0] ? 100 * T.total[i] / T.total[0] : 0;
		var was = T.before[0] ? 100 * T.before[i] / T.before[0] : 0;
		text += ' \u00b7 before ' + grouped(Math.round(T.before[i] * FACTOR)) + ' (' + was.toFixed(2) + ' %), ' +
			(now >= was ? '+' : '\u2212') + Math.abs(now - was).toFixed(2) + ' points' +
			(!T.before[i] ? ', new' : !T.total[i] ? ', removed' : '');
	}
	var kind = kindText(where === '[kernel]' ? T.symFlags[s] & ~KERNEL : T.symFlags[s]);
	return {name: name, where: (where + kind).replace(/^, /, ''),
		text: text};
}

/* ---- elements ----------------------------------------------------------------------------- */

function el(ns, tag, attrs, parent) {
	var e = document.createElementNS(ns, tag);
	for (var k in attrs)
		e.setAttribute(k, attrs[k]);
	if (parent)
		parent.appendChild(e);
	return e;
}

/* Reuses elements: creating them is the slow part of drawing. */
function Pool(parent, tag) {
	this.parent = parent;
	this.tag = tag;
	this.all = [];
	this.used = 0;
}
Pool.prototype.take = function () {
	if (this.used === this.all.length)
		this.all.push(el(SVG, this.tag, {}, this.parent));
	var e = this.all[this.used++];
	if (e.style.display)
		e.style.display = '';
	return e;
};
Pool.prototype.finish = function () {
	for (var i = this.used; i < this.all.length; i++)
		this.all[i].style.display = 'none';
	if (this.all.length > 2 * this.used + 4000) {
		for (i = this.all.length; i-- > this.used + 1000;)
			this.all.pop().remove();
	}
	this.used = 0;
};

var legend = svg.querySelector('g.legend');
var flame = svg.querySelector('g.flame'), labels = svg.querySelector('g.labels');
flame.textContent = '';
labels.textContent = '';
svg.removeAttribute('viewBox');
flame.setAttribute('tabindex', '0');
flame.setAttribute('role', 'application');
flame.setAttribute('aria-label', 'Flame graph: arrow keys move, Enter zooms, slash searches');
var rects = new Pool(flame, 'rect'), paths = new Pool(flame, 'path'), texts = new Pool(labels, 'text');
var mark = el(SVG, 'rect', {'class': 'mark', display: 'none'}, labels);
var cursor = el(SVG, 'rect', {'class': 'cursor', display: 'none'}, labels);

/* ---- state and drawing -------------------------------------------------------------------- */

var zoomed = 0, focused = -1, hovered = -1;
var isInverted = setting('inverted') === '1', isNegated = setting('negate') === '1';
var isIgnoring = false, pattern = '', isHit = null, hits = [], hitAt = -1;
var W = 0, top0 = 0, maxDepth = 0, rows = [];
/* What widths and searches are of: both sides of a comparison, or one of them. */
var SIDES = ['both', 'before', 'after'], side = 'both';

function widths() {
	return side === 'both' ? T.width : sums();
}

function sums() {
	return side === 'before' ? T.before : T.total;
}

function colorOf(i) {
	if (!T.isDiff)
		return T.color[T.sym[i]];
	var isChanged = T.symFlags[T.sym[i]] & CHANGED && T.maxDelta;
	var delta = isChanged ? (T.total[i] - T.before[i] * T.scale) / T.maxDelta : 0;
	if (isNegated)
		delta = -delta;
	var step = Math.round(Math.sqrt(Math.min(1, Math.abs(delta))) * DELTA_MIDDLE);
	return DELTA_MIDDLE + (delta < 0 ? -step : step);
}

/* Computes rows of boxes {nodes, x, w} by depth: ancestors of the zoomed node in full width, then
   the part of its subtree that is at least MIN pixels wide. */
function layOut() {
	var inner = W - 2 * PAD, z = zoomed, d, i;
	rows = [];
	for (i = z; ; i = T.parent[i]) {
		rows[T.depth[i]] = {nodes: [i], x: [PAD], w: [inner]};
		if (!i)
			break;
	}
	var min = MIN_PCT ? inner * MIN_PCT / 100 : MIN;
	var width = widths(), scale = width[z] ? inner / width[z] : 0, at = [];
	maxDepth = d = T.depth[z];
	at[d + 1] = PAD;
	for (i = z + 1; i < T.end[z];) {
		d = T.depth[i];
		var w = width[i] * scale, x = at[d];
		at[d] = x + w;
		if (w < min || !w) {
			i = T.end[i];
			continue;
		}
		at[d + 1] = x;
		var row = rows[d] || (rows[d] = {nodes: [], x: [], w: []});
		row.nodes.push(i);
		row.x.push(x);
		row.w.push(w);
		if (d > maxDepth)
			maxDepth = d;
		i++;
	}
}

function rowY(depth) {
	return top0 + (isInverted ? depth : maxDepth - depth) * ROW;
}

function fix(v) {
	return Math.round(v * 100) / 100;
}

function drawRow(depth, thin) {
	var row = rows[depth], y = rowY(depth), h = ROW - 1;
	var isAncestor = depth < T.depth[zoomed];
	for (var k = 0; k < row.nodes.length; k++) {
		var i = row.nodes[k], x = row.x[k], w = row.w[k];
		var cls = isHit && i && isHit[T.sym[i]] ? 'hit' : 'c' + colorOf(i);
		if (w < THIN) {
			thin[cls] = (thin[cls] || '') + 'M' + fix(x) + ' ' + y + 'h' +
				fix(Math.max(w, 0.3)) + 'v' + h + 'h-' + fix(Math.max(w, 0.3)) + 'z';
			continue;
		}
		var r = rects.take();
		r.setAttribute('class', isAncestor ? cls + ' up' : cls);
		r.setAttribute('x', fix(x));
		r.setAttribute('y', y);
		r.setAttribute('width', fix(w - 0.6));
		r.setAttribute('height', h);
		r.setAttribute('rx', w > 8 ? 2 : 0);
		var text = label(T.sym[i], w - 7);
		if (!text)
			continue;
		var t = texts.take();
		t.setAttribute('x', fix(x + 3.5));
		t.setAttribute('y', fix(y + h / 2 + FONT * 0.35));
		t.setAttribute('class', cls === 'hit' ? 'on' : isAncestor ? 'up' : '');
		if (t.textContent !== text)
			t.textContent = text;
	}
}

function draw() {
	W = setting('fluid') === '1' ? Math.max(300, windowWidth()) : +svg.getAttribute('width');
	layOut();
	placeHeader();
	var thin = {}, height = top0 + (maxDepth + 1) * ROW + FOOT;
	if (isPage)
		height = Math.max(height, window.innerHeight - 1);
	svg.setAttribute('height', height);
	if (legend)
		legend.setAttribute('transform', 'translate(0,' + (height - FOOT) + ')');
	if (!isInverted)
		top0 = height - FOOT - (maxDepth + 1) * ROW;
	for (var d = 0; d <= maxDepth; d++)
		drawRow(d, thin);
	for (var cls in thin) {
		var p = paths.take();
		p.setAttribute('class', cls);
		p.setAttribute('d', thin[cls]);
	}
	rects.finish();
	paths.finish();
	texts.finish();
	placeBox(cursor, focused);
	placeBox(mark, -1);
	drawCrumbs();
	drawSearch();
	floatUi();
}

/* Returns the position of a node on the screen, or null. */
function boxOf(i) {
	if (i < 0)
		return null;
	var row = rows[T.depth[i]], k = row ? row.nodes.indexOf(i) : -1;
	return k < 0 ? null : {x: row.x[k], w: row.w[k], y: rowY(T.depth[i]), k: k, row: row};
}

function placeBox(e, i) {
	var b = boxOf(i);
	if (!b) {
		e.setAttribute('display', 'none');
		return;
	}
	e.removeAttribute('display');
	e.setAttribute('x', fix(b.x - 0.3));
	e.setAttribute('y', b.y - 0.5);
	e.setAttribute('width', fix(Math.max(b.w, 1)));
	e.setAttribute('height', ROW);
}

function nodeAt(x, y) {
	var r = Math.floor((y - top0) / ROW), d = isInverted ? r : maxDepth - r;
	var row = rows[d], lo = 0;
	if (r < 0 || !row)
		return -1;
	var hi = row.nodes.length - 1;
	while (lo < hi) {
		var mid = (lo + hi + 1) >> 1;
		if (row.x[mid] <= x)
			lo = mid;
		else
			hi = mid - 1;
	}
	/* Boxes under a pixel are hard to point at: accept half a pixel on each side. */
	return x >= row.x[lo] - 0.5 && x <= row.x[lo] + Math.max(row.w[lo], 1) ? row.nodes[lo] : -1;
}

/* ---- toolbar ------------------------------------------------------------------------------ */

var TOOLS_PX = T.isDiff ? 620 : 510, CRUMBS_PX = 24;
var ui = el(SVG, 'g', {'class': 'ui'}, svg);
var toolsBox = el(SVG, 'foreignObject', {width: TOOLS_PX, height: 36}, ui);
var tools = el(HTML, 'div', {'class': 'tools', role: 'search'}, toolsBox);
var found = el(HTML, 'span', {'class': 'found', role: 'status'}, tools);
var input = el(HTML, 'input', {type: 'search', placeholder: 'Search (regex)  /', spellcheck: 'false',
	autocomplete: 'off', 'aria-label': 'Search functions by regular expression'}, tools);
var caseButton = button('Aa', 'Ignore case (i)', function () {
	setSearch(pattern, !isIgnoring);
});
var prevButton = button('\u2039', 'Previous match (N)', function () {
	step(-1);
});
var nextButton = button('\u203a', 'Next match (n)', function () {
	step(1);
});
var sideButton = T.isDiff && button('', '', function () {
	setSide(SIDES[(SIDES.indexOf(side) + 1) % SIDES.length]);
});
button('\u21c5', 'Flip: root at the top or the bottom (f)', flip);
var resetButton = button('Reset', 'Reset zoom (Home)', function () {
	zoom(0);
});
var crumbsBox = el(SVG, 'foreignObject', {x: PAD, height: CRUMBS_PX}, ui);
var crumbs = el(HTML, 'div', {'class': 'crumbs', 'aria-label': 'Path of the zoomed frame'}, crumbsBox);
var infoBox = el(SVG, 'foreignObject', {x: 0, height: 60}, ui);
var info = el(HTML, 'div', {'class': 'info', 'aria-live': 'polite'}, infoBox);

function button(text, title, act) {
	var b = el(HTML, 'button', {type: 'button', title: title, 'aria-label': title}, tools);
	b.textContent = text;
	b.addEventListener('click', act);
	return b;
}

function windowWidth() {
	svg.setAttribute('width', '100%');
	return svg.getBoundingClientRect().width || window.innerWidth;
}

/* The toolbar is beside the title, or below the header if there is no room. */
function placeHeader() {
	var titleText = svg.querySelector('.head .title'), titlePx = 200;
	try {
		titlePx = titleText.getComputedTextLength();
	} catch (e) { /* not rendered */ }
	var isNarrow = W < TOOLS_PX + titlePx + 4 * PAD;
	var px = Math.min(TOOLS_PX, W - 2 * PAD);
	toolsBox.setAttribute('width', px);
	toolsBox.setAttribute('x', isNarrow ? PAD : W - PAD - px);
	toolsBox.rest = isNarrow ? HEAD - 8 : 8;
	top0 = HEAD + (isNarrow ? 32 : 0) + CRUMBS_PX - 6;
	crumbsBox.setAttribute('y', top0 - CRUMBS_PX);
	crumbsBox.setAttribute('width', Math.max(50, W - 2 * PAD));
}

/* Keeps toolbar and details in the window when the SVG is opened as a page of its own. */
function floatUi() {
	var y = isPage ? window.scrollY || 0 : 0;
	toolsBox.setAttribute('y', Math.max(toolsBox.rest, y + 4));
	tools.classList.toggle('over', y + 4 > toolsBox.rest);
	var height = +svg.getAttribute('height');
	var px = Math.ceil(info.getBoundingClientRect().height) || 24;
	var bottom = isPage ? Math.min(height, y + window.innerHeight) : height;
	infoBox.setAttribute('width', W);
	infoBox.setAttribute('height', px + 2);
	infoBox.setAttribute('y', bottom - px);
}

function drawCrumbs() {
	var path = [], i, px = 0;
	for (i = zoomed; i > 0; i = T.parent[i])
		path.unshift(i);
	crumbs.textContent = '';
	resetButton.disabled = !zoomed;
	if (!zoomed)
		return;
	path.unshift(0);
	/* As many of the innermost frames as fit. */
	var room = W - 3 * PAD - 40, from = path.length, names = path.map(function (node) {
		return label(T.sym[node], 220) || '?';
	});
	while (from > 0 && (px += widthOf(names[from - 1]) + 24) < room)
		from--;
	if (from > 0)
		el(HTML, 'span', {}, crumbs).textContent = '\u2026 \u203a ';
	path.slice(from).forEach(function (node, k) {
		if (k)
			el(HTML, 'span', {}, crumbs).textContent = ' \u203a ';
		var b = el(HTML, 'button', {type: 'button', title: T.name[T.sym[node]]}, crumbs);
		b.textContent = names[from + k];
		b.addEventListener('click', function () {
			zoom(node);
		});
	});
}

function showInfo(i) {
	info.textContent = '';
	if (i < 0) {
		info.classList.remove('some');
		return;
	}
	var d = details(i);
	info.classList.add('some');
	el(HTML, 'b', {}, info).textContent = d.name;
	if (d.where)
		el(HTML, 'span', {}, info).textContent = '  ' + d.where;
	el(HTML, 'div', {}, info).textContent = d.text;
	floatUi();
}

/* ---- zoom --------------------------------------------------------------------------------- */

function zoom(i, isQuiet) {
	zoomed = i;
	if (focused >= 0 && (focused < i || focused >= T.end[i]))
		focused = i;
	draw();
	if (isPage)
		reveal(i);
	if (!isQuiet)
		saveState(true);
}

/* Scrolls so that a node's row is in the window and not covered by toolbar or details. */
function reveal(i) {
	var b = boxOf(i);
	if (!b || !isPage)
		return;
	var y = window.scrollY || 0;
	if (b.y < y + 48)
		window.scrollTo(0, Math.max(0, b.y - 60));
	else if (b.y + ROW > y + window.innerHeight - FOOT)
		window.scrollTo(0, b.y + ROW + FOOT - window.innerHeight);
	floatUi();
}

var SIDE_TEXTS = {both: 'Before + after', before: 'Before', after: 'After'};

function setSide(to, isQuiet) {
	side = to;
	setSearch(pattern, isIgnoring, isQuiet);
	svg.dispatchEvent(new CustomEvent('assay-side', {detail: side}));
}

function flip() {
	isInverted = !isInverted;
	draw();
	reveal(zoomed);
	saveState(false);
}

/* ---- search ------------------------------------------------------------------------------- */

function compile(text, ignores) {
	try {
		return {re: new RegExp(text, ignores ? 'i' : ''), isText: false};
	} catch (e) { /* an incomplete regex while it is typed: search it as plain text */
		return {re: new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'),
			ignores ? 'i' : ''), isText: true};
	}
}

/*
 * Adds up the outermost matches over all nodes, drawn or not, so that each stack counts once: the
 * same sum as grep on the folded stacks. The root "all" is not a frame.
 */
function findAll(re) {
	isHit = new Uint8Array(T.nrSyms);
	hits = [];
	var sum = 0, i, exact = T.isBig ? BigInt(0) : 0;
	for (i = 0; i < T.nrSyms; i++)
		isHit[i] = re.test(T.name[i]) ? 1 : 0;
	for (i = 1; i < T.n;) {
		if (!isHit[T.sym[i]]) {
			i++;
			continue;
		}
		sum += sums()[i];
		if (T.isBig)
			exact += T.exact[i];
		hits.push(i);
		i = T.end[i];
	}
	return {sum: sum, exact: T.isBig && side !== 'before' ? exact : sum};
}

var result = null;

function setSearch(text, ignores, isQuiet) {
	pattern = text;
	isIgnoring = ignores;
	hitAt = -1;
	isHit = result = null;
	hits = [];
	if (text) {
		var c = compile(text, ignores);
		result = findAll(c.re);
		result.isText = c.isText;
	}
	if (input.value !== text)
		input.value = text;
	draw();
	if (!isQuiet)
		saveState(false);
}

function drawSearch() {
	caseButton.setAttribute('aria-pressed', String(isIgnoring));
	if (sideButton) {
		sideButton.textContent = SIDE_TEXTS[side];
		sideButton.title = 'Widths are of: ' + SIDE_TEXTS[side] + ' (b)';
	}
	prevButton.disabled = nextButton.disabled = !hits.length;
	input.classList.toggle('bad', !!result && result.isText);
	found.textContent = '';
	found.removeAttribute('title');
	if (!result)
		return;
	found.textContent = hits.length ? 'Matched ' + percent(result.sum, sums()[0]) : 'No match';
	found.setAttribute('title', (FACTOR === 1 ? grouped(result.exact) :
		grouped(Math.round(result.sum * FACTOR))) + ' of ' +
		(side === 'before' ? grouped(Math.round(T.before[0] * FACTOR)) : countText(0)) + ' ' + COUNT +
		(result.isText ? ' (invalid regular expression: searched as plain text)' : ''));
}

function step(by) {
	if (!hits.length)
		return;
	hitAt = (hitAt + by + hits.length) % hits.length;
	if (hitAt < 0)
		hitAt = hits.length - 1;
	var i = hits[hitAt];
	if (!boxOf(i))
		zoom(i);
	focus(i);
}

function focus(i) {
	focused = i;
	placeBox(cursor, i);
	showInfo(i);
	reveal(i);
}

/* ---- state in the URL --------------------------------------------------------------------- */

function saveState(isStep) {
	var parts = [];
	if (zoomed)
		parts.push('z=' + pathKey(T, zoomed));
	if (pattern)
		parts.push('s=' + encodeURIComponent(pattern));
	if (isIgnoring)
		parts.push('i=1');
	if (isInverted !== (setting('inverted') === '1'))
		parts.push('f=1');
	if (side !== 'both')
		parts.push('b=' + side);
	try { /* not allowed in sandboxes and in data: URLs; the graph works without */
		if (isStep)
			history.pushState(null, '', '#' + parts.join('&'));
		else
			history.replaceState(null, '', '#' + parts.join('&'));
	} catch (e) { /* as above */ }
}

function loadState() {
	var s = {};
	try {
		location.hash.replace(/^#/, '').split('&').forEach(function (part) {
			var eq = part.indexOf('=');
			if (eq > 0)
				s[part.slice(0, eq)] = decodeURIComponent(part.slice(eq + 1));
		});
	} catch (e) { /* not one of our fragments */ }
	isInverted = (setting('inverted') === '1') !== (s.f === '1');
	zoomed = s.z ? nodeFromKey(T, s.z) : 0;
	pattern = s.s || '';
	isIgnoring = s.i === '1';
	setSide(T.isDiff && SIDES.indexOf(s.b) > 0 ? s.b : 'both', true);
}

/* ---- events ------------------------------------------------------------------------------- */

function pointed(ev) {
	var r = svg.getBoundingClientRect();
	return nodeAt(ev.clientX - r.left, ev.clientY - r.top);
}

function hover(i) {
	if (i === hovered)
		return;
	hovered = i;
	placeBox(mark, i);
	showInfo(i >= 0 ? i : focused);
	svg.style.cursor = i >= 0 ? 'pointer' : '';
}

svg.addEventListener('pointermove', function (ev) {
	hover(ui.contains(ev.target) ? -1 : pointed(ev));
});
svg.addEventListener('pointerleave', function () {
	hover(-1);
});
svg.addEventListener('click', function (ev) {
	var i = ui.contains(ev.target) ? -1 : pointed(ev);
	if (i < 0)
		return;
	focused = -1;
	if (i !== zoomed)
		zoom(i);
});
flame.addEventListener('focus', function () {
	if (focused < 0 && flame.matches(':focus-visible'))
		focus(zoomed);
});

function walk(key) {
	if (focused < 0 || !boxOf(focused))
		return focus(zoomed);
	var b = boxOf(focused), inward = isInverted ? 'ArrowDown' : 'ArrowUp';
	if (key === 'ArrowLeft' || key === 'ArrowRight') {
		var k = b.k + (key === 'ArrowLeft' ? -1 : 1);
		if (k >= 0 && k < b.row.nodes.length)
			focus(b.row.nodes[k]);
		return undefined;
	}
	if (key !== inward)
		return focused ? focus(T.parent[focused]) : undefined;
	/* To the widest child. */
	var best = -1;
	for (var i = focused + 1; i < T.end[focused]; i = T.end[i])
		if (best < 0 || widths()[i] > widths()[best])
			best = i;
	if (best >= 0 && boxOf(best))
		focus(best);
	return undefined;
}

function startSearch() {
	input.focus();
	input.select();
}

var keys = {
	'/': startSearch,
	n: function () {
		step(1);
	},
	N: function () {
		step(-1);
	},
	i: function () {
		setSearch(pattern, !isIgnoring);
	},
	f: flip,
	b: function () {
		if (sideButton)
			sideButton.click();
	},
	r: function () {
		zoom(0);
	},
	Home: function () {
		zoom(0);
	},
	Enter: function () {
		if (focused >= 0)
			zoom(focused);
	},
	Escape: function () {
		if (zoomed)
			zoom(T.parent[zoomed]);
		else if (pattern)
			setSearch('', isIgnoring);
	},
	Backspace: function () {
		if (zoomed)
			zoom(T.parent[zoomed]);
	},
};

document.addEventListener('keydown', function (ev) {
	if ((ev.ctrlKey || ev.metaKey) && !ev.altKey && ev.key === 'f') {
		ev.preventDefault();
		startSearch();
		return;
	}
	if (ev.ctrlKey || ev.metaKey || ev.altKey || ev.target === input)
		return;
	if (ev.target.localName === 'button' && (ev.key === 'Enter' || ev.key === ' '))
		return;
	var isArrow = ev.key.indexOf('Arrow') === 0;
	if (!isArrow && !Object.prototype.hasOwnProperty.call(keys, ev.key))
		return;
	ev.preventDefault();
	if (isArrow)
		walk(ev.key);
	else
		keys[ev.key]();
});
input.addEventListener('keydown', function (ev) {
	if (ev.key === 'Enter') {
		step(ev.shiftKey ? -1 : 1);
	} else if (ev.key === 'Escape') {
		setSearch('', isIgnoring);
		input.blur();
		flame.focus();
	} else {
		return;
	}
	ev.preventDefault();
});
input.addEventListener('input', function () {
	setSearch(input.value, isIgnoring);
});
/* From a page around the graph. */
svg.addEventListener('assay-search', function (ev) {
	setSearch(ev.detail, false);
});
svg.addEventListener('assay-show', function (ev) {
	setSide(ev.detail);
});
window.addEventListener('popstate', loadState);
window.addEventListener('scroll', floatUi, {passive: true});

var redraw = 0;
window.addEventListener('resize', function () {
	cancelAnimationFrame(redraw);
	redraw = requestAnimationFrame(draw);
});

loadState();
reveal(0);
/* Some engines know the width of a page only after its script has run. */
setTimeout(function () {
	if (setting('fluid') === '1' && Math.abs(windowWidth() - W) > 1)
		draw();
	reveal(zoomed);
}, 0);
