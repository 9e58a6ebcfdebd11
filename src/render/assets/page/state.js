/*
 * What the page shows: one selection (time, threads, state), one metric, and how the tree is drawn.
 * Everything on the page is computed from it, so that no two parts show different selections. It is
 * kept in the URL's fragment.
 */
function App(P) {
	P.kinds = stateKinds(P.head);
	P.foldKinds = foldKinds(P.tree);
	this.P = P;
	this.listeners = [];
	this.reset();
}

App.prototype.reset = function () {
	Object.assign(this, {metric: 0, range: null, groups: null, state: null, showsIdle: false,
		folds: this.P.foldKinds.some(Boolean), hidden: new Set(), root: null, callersOf: null,
		opened: new Set(), search: '', view: 'flame', selected: -1, zoom: 0});
	this.clean();
};

/* Forgets what was computed from the selection. */
App.prototype.clean = function () {
	this.sums = this.functions = this.drawn = null;
};

App.prototype.set = function (changes) {
	const keepsZoom = 'zoom' in changes || Object.keys(changes).every(function (k) {
		return ['selected', 'view', 'search'].includes(k);
	});
	const key = keepsZoom ? null : this.zoomKey();
	Object.assign(this, changes);
	if (!keepsZoom) {
		this.clean();
		this.zoom = this.nodeOfKey(key);
	}
	this.save();
	this.notify();
};

App.prototype.notify = function () {
	cancelAnimationFrame(this.frame);
	this.frame = requestAnimationFrame(() => {
		for (const fn of this.listeners)
			fn();
	});
};

/* ---- what follows from the selection ------------------------------------------------------------- */

App.prototype.metricNow = function () {
	return this.P.metrics[this.metric];
};

App.prototype.threadsIn = function () {
	if (!this.groups)
		return null;
	const of = this.P.groups.of, groups = this.groups;
	return Uint8Array.from(of, function (g) {
		return groups.has(g) ? 1 : 0;
	});
};

App.prototype.selection = function () {
	return {range: this.range, threads: this.threadsIn(), state: this.state,
		showsIdle: this.showsIdle};
};

App.prototype.sumsNow = function () {
	if (!this.sums)
		this.sums = sumRows(this.P, this.selection(), this.metricNow());
	return this.sums;
};

App.prototype.treeHow = function (folds) {
	const hidden = new Uint8Array(this.P.tree.nrSyms);
	for (const s of this.hidden)
		hidden[s] = 1;
	return {folds: folds, hidden: hidden, root: this.root, opened: this.opened};
};

/* Derived trees do not depend on weights: one stays until the way of drawing changes. */
App.prototype.treeNow = function (folds) {
	const key = [folds, this.root, Array.from(this.hidden), Array.from(this.opened)].join('|');
	const slot = folds ? 'foldedTree' : 'plainTree';
	if (!this[slot] || this[slot].key !== key)
		this[slot] = {key: key, tree: derive(this.P, this.treeHow(folds))};
	return this[slot].tree;
};

/* The tree that the flame graph draws, with its weights. */
App.prototype.drawnNow = function () {
	if (this.drawn)
		return this.drawn;
	if (this.callersOf !== null) {
		const w = this.sumsNow();
		this.drawn = callersTree(this.P, w, totals(w.self, this.P.tree.parent), this.callersOf);
		return this.drawn;
	}
	const d = this.treeNow(this.folds);
	this.drawn = {tree: d, weights: deriveWeights(d, this.sumsNow())};
	return this.drawn;
};

App.prototype.functionsNow = function () {
	if (this.functions)
		return this.functions;
	const isWhole = !this.hidden.size && this.root === null;
	const d = isWhole ? null : this.treeNow(false);
	this.functions = byFunction(this.P, this.sumsNow(), d ? d.of : null);
	return this.functions;
};

/* Weight of what is shown: the selection without hidden functions. */
App.prototype.shownSum = function () {
	return this.drawnNow().weights.total[0];
};

App.prototype.symName = function (s) {
	const nr = this.P.tree.nrSyms;
	return s < 0 ? '[none]' : s < nr ? this.P.tree.name[s] :
		s === nr + FOLD_RUNTIME - 1 ? '[runtime frames]' : '[allocator frames]';
};

/* ---- zoomed frame across trees ------------------------------------------------------------------- */

/* The path of the zoomed frame by symbols, from the root; folded frames are left out. */
App.prototype.zoomKey = function () {
	const path = [], d = this.zoom ? this.drawnNow().tree : null;
	for (let i = this.zoom; i > 0; i = d.parent[i])
		path.unshift(d.sym[i]);
	return path;
};

/* The deepest node of the present tree on the path. */
App.prototype.nodeOfKey = function (path) {
	if (!path || !path.length)
		return 0;
	const d = this.drawnNow().tree;
	let at = 0;
	for (const sym of path) {
		let c = d.first[at];
		while (c && d.sym[c] !== sym)
			c = d.next[c];
		if (!c)
			continue;
		at = c;
	}
	return at;
};

/* ---- the fragment of the URL ---------------------------------------------------------------------- */

App.prototype.save = function () {
	const T = this.P.tree, parts = [];
	const put = function (key, value) {
		parts.push(key + '=' + encodeURIComponent(value));
	};
	const names = function (syms) {
		return Array.from(syms, function (s) {
			return T.name[s];
		}).join('\n');
	};
	if (this.metric)
		put('m', this.metricNow().key);
	if (this.range)
		put('t', this.range.map(Math.round).join('-'));
	if (this.groups)
		put('g', Array.from(this.groups, (g) => this.P.groups.list[g].name).join('\n'));
	if (this.state !== null)
		put('r', this.P.head.states[this.state][0]);
	if (this.showsIdle)
		put('idle', 1);
	if (!this.folds)
		put('all', 1);
	if (this.hidden.size)
		put('hide', names(this.hidden));
	if (this.root !== null)
		put('in', T.name[this.root]);
	if (this.callersOf !== null)
		put('callers', T.name[this.callersOf]);
	if (this.search)
		put('s', this.search);
	if (this.view !== 'flame')
		put('v', this.view);
	if (this.selected >= 0 && this.selected < T.nrSyms)
		put('f', T.name[this.selected]);
	if (this.zoom)
		put('z', names(this.zoomKey().filter((s) => s < T.nrSyms)));
	try { /* not allowed in sandboxed frames and data: URLs */
		history.replaceState(null, '', parts.length ? '#' + parts.join('&') : location.pathname);
	} catch (e) { /* the page works without */ }
};

App.prototype.load = function () {
	const T = this.P.tree, got = {};
	try {
		for (const part of location.hash.slice(1).split('&')) {
			const eq = part.indexOf('=');
			if (eq > 0)
				got[part.slice(0, eq)] = decodeURIComponent(part.slice(eq + 1));
		}
	} catch (e) { /* not a fragment of this page */ }
	const sym = function (name) {
		return name === undefined ? -1 : T.name.indexOf(name);
	};
	const syms = function (text) {
		return text === undefined ? [] : text.split('\n').map(sym).filter((s) => s >= 0);
	};
	this.reset();
	this.metric = Math.max(0, this.P.metrics.findIndex((m) => m.key === got.m));
	const range = (got.t || '').split('-').map(Number);
	if (range.length === 2 && range[1] > range[0])
		this.range = range;
	if (got.g !== undefined) {
		const names = got.g.split('\n');
		this.groups = new Set();
		this.P.groups.list.forEach((g, i) => names.includes(g.name) && this.groups.add(i));
		this.groups = this.groups.size ? this.groups : null;
	}
	const state = this.P.head.states.findIndex((s) => s[0] === got.r);
	this.state = state < 0 ? null : state;
	this.showsIdle = got.idle === '1';
	this.folds = this.folds && got.all !== '1';
	this.hidden = new Set(syms(got.hide));
	this.root = sym(got['in']) < 0 ? null : sym(got['in']);
	this.callersOf = sym(got.callers) < 0 ? null : sym(got.callers);
	this.search = got.s || '';
	this.view = ['flame', 'functions', 'waits', 'memory', 'about'].includes(got.v) ? got.v : 'flame';
	this.selected = sym(got.f);
	this.zoom = this.nodeOfKey(syms(got.z));
};
