/*
 * The flame graph on a canvas: root at the top, the heaviest child left. Draws what is wide enough to
 * see; the rest is reached by zoom, search or the table of functions. Everything is drawn anew from
 * the tree at each change, so that labels and tooltips never show an old selection.
 */
const ROW_PX = 18, MIN_PX = 0.6, LABEL_MIN_PX = 24;

function FlameView(app, parent, onDetails) {
	this.app = app;
	this.onDetails = onDetails;
	this.box = el('div', {'class': 'flame'}, parent);
	const orders = el('div', {'class': 'orders', role: 'group', 'aria-label': 'Order of the graph'}, this.box);
	this.orders = [['', 'Heaviest left', 'Equal stacks together, the heaviest left'],
		['time', 'Time order', 'Thread by thread, stacks as they followed each other (t)'],
		['up', 'Inverted', 'What ran or waited (self) at the top, callers below (b)']].map(([order, text, title]) => {
		const b = el('button', {type: 'button', title: title}, orders);
		b.textContent = text;
		b.addEventListener('click', () => app.set({order: order, around: null, zoom: 0}));
		return [order, b];
	});
	this.crumbs = el('div', {'class': 'crumbs'}, this.box);
	this.legend = el('div', {'class': 'legend'}, this.box);
	this.hint = el('p', {'class': 'hint'}, this.box);
	this.canvas = el('canvas', {tabindex: '0', role: 'tree', 'aria-label':
		'Flame graph; arrow keys move, Enter zooms, Escape goes up'}, this.box);
	this.status = el('div', {'class': 'offscreen', 'aria-live': 'polite'}, this.box);
	this.tip = el('div', {'class': 'tip', hidden: ''}, this.box);
	this.focused = this.hovered = -1;
	this.widths = new Map();
	this.listen();
}

/* ---- layout -------------------------------------------------------------------------------------- */

/*
 * rows[i] = {node[], x[], w[]}, from the top of the picture; ancestors of the zoomed node over the whole
 * width. Around one function, its callers are above it, the outermost at the top.
 */
FlameView.prototype.layOut = function () {
	const {tree: d, weights} = this.app.model, total = weights.total;
	const z = this.app.zoom || (d.isUp ? 1 : 0), byDepth = new Map(), isUp = (i) => d.isUp && d.isUp[i];
	this.unseen = 0;
	this.levelOf = (i) => isUp(i) ? 2 - d.depth[i] : d.depth[i];
	const put = (node, x, w) => {
		const level = this.levelOf(node);
		let row = byDepth.get(level);
		if (!row)
			byDepth.set(level, row = {node: [], x: [], w: []});
		row.node.push(node);
		row.x.push(x);
		row.w.push(w);
	};
	for (let i = z; i > 0 || !d.isUp; i = d.parent[i]) {
		put(i, 0, this.W);
		if (!i)
			break;
	}
	const scale = total[z] > 0 ? this.W / total[z] : 0, stack = [[z, 0]];
	const add = (first, x) => {
		const kids = [];
		for (let c = first; c; c = d.next[c]) {
			if (d.start && total[c] * scale >= MIN_PX) { /* at its place */
				put(c, (d.start[c] - d.start[z]) * scale, total[c] * scale);
				stack.push([c, x]);
			} else if (total[c] * scale >= MIN_PX)
				kids.push(c);
			else if (total[c])
				this.unseen++;
		}
		kids.sort((a, b) => total[b] - total[a] || a - b);
		for (const c of kids) {
			put(c, x, total[c] * scale);
			stack.push([c, x]);
			x += total[c] * scale;
		}
	};
	while (stack.length) {
		const [node, x] = stack.pop();
		add(d.first[node], x);
		if (d.isUp && node === 1)
			add(d.firstUp, x);
	}
	const levels = Array.from(byDepth.keys()).sort((a, b) => a - b);
	this.firstLevel = levels[0];
	this.rows = levels.map((level) => {
		const row = byDepth.get(level), order = row.node.map((n, i) => i).sort((a, b) => row.x[a] - row.x[b]);
		const pick = (list) => order.map((i) => list[i]);
		return {node: pick(row.node), x: pick(row.x), w: pick(row.w)};
	});
};

FlameView.prototype.yOf = function (level) {
	return (level - this.firstLevel) * ROW_PX;
};

/* ---- drawing --------------------------------------------------------------------------------------- */

FlameView.prototype.textPx = function (c, text) {
	let w = this.widths.get(text);
	if (w === undefined) {
		w = c.measureText(text).width;
		this.widths.set(text, w);
	}
	return w;
};

/* The longest form of a name that fits, as flame_label() in flame.c. */
FlameView.prototype.labelOf = function (c, sym, avail) {
	if (avail < LABEL_MIN_PX)
		return '';
	this.forms = this.forms || new Map();
	let forms = this.forms.get(sym);
	if (!forms) {
		forms = nameForms(this.app.symName(sym));
		this.forms.set(sym, forms);
	}
	for (const f of forms)
		if (f.length * 3 < avail && this.textPx(c, f) <= avail)
			return f;
	const text = forms[forms.length - 1], per = this.textPx(c, text) / text.length;
	const n = Math.floor((avail - 8) / per);
	return n > 1 ? text.slice(0, n) + '…' : '';
};

FlameView.prototype.colorOf = function (sym) {
	const P = this.app.P, isDark = darkMode();
	if (sym >= P.tree.nrSyms)
		return isDark ? '#3a3f47' : '#d5d9de';
	this.css = this.css || [0, 1].map((k) => P.head.colors.map((c) => cssColor(c[k])));
	return this.css[isDark ? 1 : 0][P.tree.color[sym]];
};

FlameView.prototype.draw = function () {
	const a = this.app, {tree: d, weights} = a.model, W = Math.max(200, this.box.clientWidth);
	const now = [d, weights, a.zoom, a.search, W, darkMode(), window.devicePixelRatio, a.order];
	if (this.drawn && now.every((v, i) => v === this.drawn[i]))
		return; /* answers to other parts of the page */
	if (!this.drawn || this.drawn[0] !== d)
		this.focused = this.hovered = -1;
	this.drawn = now;
	this.W = W;
	this.layOut();
	this.paint();
	for (const [order, b] of this.orders) {
		b.hidden = order === 'time' && !a.isTimed();
		b.setAttribute('aria-pressed', String(a.around === null && order === (d.start || d.isInverted ? a.order : '')));
	}
	this.drawCrumbs();
	this.drawLegend();
	this.drawHint();
};

/* Why there is no graph. */
FlameView.prototype.drawHint = function () {
	const a = this.app, w = a.model.sums;
	if (a.order === 'time' && a.around === null && a.isTimed() && !a.model.tree.start && a.shownSum()) {
		this.hint.textContent = 'Too many stacks for the order of time: select a range of time or a thread. Below: heaviest left.';
		return;
	}
	this.hint.textContent = a.shownSum() || w.samples ? '' : w.idle ? 'Only idle time is selected: ' +
		timeText(w.idle) + '. ' : 'Nothing of ' + a.metricNow().title + ' is selected.';
	if (this.hint.textContent && w.idle) {
		const b = el('button', {type: 'button'}, this.hint);
		b.textContent = 'Show idle time (i)';
		b.addEventListener('click', () => a.set({showsIdle: true}));
	}
};

FlameView.prototype.paint = function () {
	const H = this.rows.length * ROW_PX + 2, c = fitCanvas(this.canvas, this.W, H);
	const css = getComputedStyle(this.box), {tree: d} = this.app.model;
	const isDark = darkMode(), hits = this.hitsNow();
	c.clearRect(0, 0, this.W, H);
	c.font = '12px ' + css.fontFamily;
	c.textBaseline = 'middle';
	const zoomDepth = d.depth[this.app.zoom], isUpZoom = d.isUp && d.isUp[this.app.zoom];
	this.rows.forEach((row, k0) => {
		const y = k0 * ROW_PX;
		for (let k = 0; k < row.node.length; k++) {
			const node = row.node[k], sym = node ? d.sym[node] : -1, w = row.w[k];
			const isHit = hits && node && hits.isHit[sym];
			const isOuter = this.app.zoom && d.depth[node] < zoomDepth &&
				(!d.isUp || !isUpZoom === !d.isUp[node] || node === 1);
			c.globalAlpha = isOuter ? 0.55 : hits && !isHit && node ? 0.45 : 1;
			c.fillStyle = !node ? (isDark ? '#2b3038' : '#e9ecef') : isHit ?
				(isDark ? '#d05fe0' : '#e26df0') : this.colorOf(sym);
			c.fillRect(row.x[k], y, Math.max(w - (w > 2 ? 0.7 : 0), 0.3), ROW_PX - 1);
			if (w < LABEL_MIN_PX)
				continue;
			c.globalAlpha = 1;
			c.fillStyle = isDark ? '#f2f4f7' : '#15181c';
			const text = node ? this.labelOf(c, sym, w - 8) : this.rootLabel();
			if (text)
				c.fillText(text, row.x[k] + 4, y + ROW_PX / 2);
		}
	});
	c.globalAlpha = 1;
	if (d.isUp)
		this.outline(c, 1, css.getPropertyValue('--ink').trim(), 2);
	this.outline(c, this.focused, css.getPropertyValue('--accent').trim(), 2);
	this.outline(c, this.hovered, css.getPropertyValue('--ink').trim(), 1);
};

FlameView.prototype.rootLabel = function () {
	const a = this.app, m = a.metricNow();
	return m.title + ': ' + (isBare(m, a.model.sums) ? countText(a.shownSum(), m.noun) :
		amountText(a.shownSum(), m.unit) + (m.unit === 'count' ? ' ' + m.countName : ''));
};

FlameView.prototype.outline = function (c, node, color, px) {
	const b = this.boxOf(node);
	if (!b)
		return;
	c.strokeStyle = color;
	c.lineWidth = px;
	c.strokeRect(b.x + 0.5, b.y + 0.5, Math.max(1, b.w - 1), ROW_PX - 2);
};

FlameView.prototype.boxOf = function (node) {
	if (node === undefined || node < 0)
		return null;
	const level = this.levelOf(node), row = this.rows[level - this.firstLevel];
	const k = row ? row.node.indexOf(node) : -1;
	return k < 0 ? null : {x: row.x[k], y: this.yOf(level), w: row.w[k], k: k, row: row};
};

/* The path of the zoomed frame, or what the graph is around. */
FlameView.prototype.drawCrumbs = function () {
	const a = this.app, {tree: d} = a.model, path = [];
	for (let i = a.zoom; i > 0; i = d.parent[i])
		path.unshift(i);
	this.crumbs.textContent = '';
	this.crumbs.hidden = !path.length && !d.isUp && !d.start && !d.isInverted;
	if (d.start && !path.length)
		this.crumbs.textContent = 'Stacks of each thread in order of time; widths are ' + a.metricNow().title +
			(a.metricNow().sliceMs ? '; a wait stands at its 10 ms or, if only that is known, its second' : '');
	if (d.isInverted && !path.length)
		this.crumbs.textContent = 'What ran or waited (self) at the top, callers below; callers of less than 0.001 % are left out';
	if (d.isUp && !path.length)
		this.crumbs.textContent = 'Callers above, callees below ' + shortName(a.symName(d.sym[1]), 60);
	if (!path.length)
		return;
	(d.isUp ? [] : [0]).concat(path.slice(-6)).forEach((node, k) => {
		if (k)
			this.crumbs.append(k === 1 && path.length > 6 ? ' › … › ' : ' › ');
		const b = el('button', {type: 'button', 'class': 'link'}, this.crumbs);
		b.textContent = node ? shortName(a.symName(d.sym[node]), 40) : 'all';
		b.addEventListener('click', () => a.set({zoom: d.isUp && node === 1 ? 0 : node}));
	});
};

/* What colours mean, of the widest frames first; and what is not drawn. */
FlameView.prototype.drawLegend = function () {
	const a = this.app, T = a.P.tree, {tree: d} = a.model, area = new Map();
	for (const row of this.rows)
		for (let k = 0; k < row.node.length; k++) {
			const sym = d.sym[row.node[k]];
			if (!row.node[k])
				continue;
			const text = a.isFold(sym) ? 'folded: click opens' : sym >= T.nrSyms ? 'thread' : this.meaningOf(sym);
			const g = area.get(text) || {w: 0, best: 0, sym: sym};
			g.w += row.w[k];
			if (row.w[k] > g.best)
				Object.assign(g, {best: row.w[k], sym: sym});
			area.set(text, g);
		}
	this.legend.textContent = '';
	const list = Array.from(area).sort((x, y) => y[1].w - x[1].w);
	for (const [text, g] of list.slice(0, 14)) {
		const item = el('span', {'class': 'key'}, this.legend);
		el('span', {'class': 'dot'}, item).style.background = this.colorOf(g.sym);
		item.append(text);
	}
	const more = [];
	if (list.length > 14)
		more.push((list.length - 14) + ' more colours');
	if (this.unseen)
		more.push(countText(this.unseen, 'frames') + ' too narrow to draw: zoom, search or the table of ' +
			'functions show them');
	if (more.length)
		el('span', {'class': 'key quiet'}, this.legend).textContent = more.join('; ');
};

/* The crate, namespace or module of a function, or what its colour says (kernel, a wait reason). */
FlameView.prototype.meaningOf = function (sym) {
	const P = this.app.P, T = P.tree, meaning = P.head.colors[T.color[sym]][2] || '';
	this.meanings = this.meanings || new Map();
	if (this.meanings.has(sym))
		return this.meanings.get(sym);
	const ns = /^code|^inlined/.test(meaning) ? /^[<&*]*([^<( :]+)::/.exec(T.name[sym]) : null;
	const text = ns ? ns[1].replace(/>$/, '') : /^code|^inlined/.test(meaning) ? T.module[sym] || 'no module' : meaning;
	this.meanings.set(sym, text);
	return text;
};

/* ---- search ---------------------------------------------------------------------------------------- */

/*
 * Matches of the search in the drawn tree: the symbols, the sum of the outermost matches (each row
 * counts once, frames too narrow to draw included) and the matching nodes.
 */
FlameView.prototype.hitsNow = function () {
	const a = this.app, {tree: d, weights} = a.model;
	if (!a.search)
		return null;
	if (this.found && this.found.text === a.search && this.found.weights === weights)
		return this.found;
	const base = a.model.base;
	const re = compileSearch(a.search), T = a.P.tree, isHit = new Uint8Array(T.nrSyms + 2);
	for (let s = 0; s < T.nrSyms; s++)
		isHit[s] = re.test(T.name[s]) ? 1 : 0;
	const nodes = outermost(d, weights, isHit);
	const all = base ? outermost(base.tree, base.weights, isHit) : nodes;
	const sum = all.reduce((v, i) => v + (base ? base.weights : weights).total[i], 0);
	this.found = {text: a.search, weights: weights, isHit: isHit, problem: re.problem, sum: sum, nodes: nodes, at: -1,
		isSorted: false};
	return this.found;
};

/* Nodes with a hit, without those below one. */
function outermost(d, weights, isHit) {
	const inside = new Uint8Array(d.n), nodes = [];
	for (let i = 1; i < d.n && !(d.isUp && d.isUp[i]); i++) {
		const isOuter = !inside[d.parent[i]];
		inside[i] = !isOuter || isHit[d.sym[i]] ? 1 : 0;
		if (inside[i] && isOuter && weights.total[i])
			nodes.push(i);
	}
	return nodes;
}

FlameView.prototype.nextHit = function (by) {
	const h = this.hitsNow();
	if (!h || !h.nodes.length)
		return;
	const a = this.app, {tree: d, weights: {total}} = a.model;
	if (!h.isSorted) /* not for each letter that is typed */
		h.nodes.sort((x, y) => total[y] - total[x] || x - y);
	h.isSorted = true;
	h.at = (h.at + by + h.nodes.length) % h.nodes.length;
	const node = h.nodes[h.at];
	if (!this.boxOf(node) || this.boxOf(node).w < 3) {
		a.set({zoom: d.parent[node]});
		this.draw();
	}
	this.focus(node);
};

/* ---- mouse and keyboard ------------------------------------------------------------------------------ */

FlameView.prototype.nodeAt = function (ev) {
	const r = this.canvas.getBoundingClientRect();
	const x = ev.clientX - r.left, depth = Math.floor((ev.clientY - r.top) / ROW_PX);
	const row = this.rows && this.rows[depth];
	if (!row)
		return -1;
	const k = lowerBound(row.x, row.x.length, x + 1e-6) - 1;
	return k >= 0 && x <= row.x[k] + Math.max(row.w[k], 1) ? row.node[k] : -1;
};

FlameView.prototype.tipLines = function (node) {
	const a = this.app, {tree: d, weights} = a.model, m = a.metricNow(), T = a.P.tree;
	const sym = d.sym[node], all = a.shownSum();
	const lines = [node ? a.symName(sym) : 'all'];
	if (node && sym < T.nrSyms && T.module[sym])
		lines.push(T.module[sym] + kindText(T.symFlags[sym]));
	if (node && a.isFold(sym))
		lines.push('click opens these frames');
	lines.push(amountText(weights.total[node], m.unit) + ' · ' + percentText(weights.total[node], all) +
		' of what is shown' + (node && d.parent[node] ?
		' · ' + percentText(weights.total[node], weights.total[d.parent[node]]) + (d.isInverted || d.isUp && d.isUp[node] ? ' of its callee' : ' of its caller') : ''));
	if (node && d.start)
		lines.push(axisText(d.from[node], 1) + ' to ' + axisText(d.till[node], 1));
	const n = countText(weights.count[node], m.noun);
	lines.push(d.isInverted || d.isUp && d.isUp[node] ? n : n + ' · self ' + amountText(weights.self[node], m.unit));
	return lines;
};

FlameView.prototype.listen = function () {
	this.canvas.addEventListener('pointermove', (ev) => {
		const node = this.nodeAt(ev);
		if (node !== this.hovered) {
			this.hovered = node;
			this.paint();
		}
		if (node >= 0)
			placeTip(this.tip, this.box, ev, this.tipLines(node));
		else
			this.tip.hidden = true;
	});
	this.canvas.addEventListener('pointerleave', () => {
		this.hovered = -1;
		this.tip.hidden = true;
		this.paint();
	});
	this.canvas.addEventListener('click', (ev) => this.open(this.nodeAt(ev)));
	this.canvas.addEventListener('keydown', (ev) => this.key(ev));
};

/* A click zooms, and shows the function at the right; on folded frames it opens them. */
FlameView.prototype.open = function (node) {
	const a = this.app, d = a.model.tree;
	if (node < 0)
		return;
	this.focused = -1;
	this.tip.hidden = true;
	if (node && a.isFold(d.sym[node])) {
		this.unfold(node);
		return;
	}
	a.set({zoom: d.isUp && node === 1 ? 0 : node, selected: node ? d.sym[node] : -1});
};

/* Opens the symbols that are folded into this node. */
FlameView.prototype.unfold = function (node) {
	const a = this.app;
	const d = a.model.tree;
	if (d.start || d.isInverted || d.isUp && d.isUp[node]) {
		a.set({folds: false});
		return;
	}
	a.engine.ask('foldedIn', node).then((syms) => a.set({opened: new Set([...a.opened, ...syms])}));
};

FlameView.prototype.focus = function (node) {
	this.focused = node;
	this.paint();
	this.status.textContent = this.tipLines(node).join(', ');
	const b = this.boxOf(node), r = this.canvas.getBoundingClientRect();
	if (b && (r.top + b.y < 0 || r.top + b.y > window.innerHeight - ROW_PX))
		window.scrollBy(0, r.top + b.y - window.innerHeight / 2);
	this.onDetails(this.app.model.tree.sym[node]);
};

FlameView.prototype.key = function (ev) {
	const a = this.app, {tree: d, weights} = a.model;
	const at = this.focused >= 0 ? this.focused : a.zoom || (d.isUp ? 1 : 0), b = this.boxOf(at);
	const isUp = d.isUp && d.isUp[at];
	const deeper = (first) => {
		let best = 0;
		for (let c = first; c; c = d.next[c])
			if (!best || weights.total[c] > weights.total[best])
				best = c;
		if (best && weights.total[best])
			this.focus(best);
	};
	const act = {
		ArrowUp: () => isUp ? deeper(d.first[at]) : at === 1 && d.isUp ? deeper(d.firstUp) :
			at && this.focus(d.parent[at]),
		ArrowDown: () => isUp ? this.focus(d.parent[at]) : deeper(d.first[at]),
		ArrowLeft: () => b && b.k > 0 && this.focus(b.row.node[b.k - 1]),
		ArrowRight: () => b && b.k + 1 < b.row.node.length && this.focus(b.row.node[b.k + 1]),
		Enter: () => this.open(at),
		Home: () => a.set({zoom: 0}),
	}[ev.key];
	if (!act || ev.ctrlKey || ev.metaKey || ev.altKey)
		return;
	ev.preventDefault();
	ev.stopPropagation();
	act();
};
