/*
 * What the page shows: one selection (time, threads, state), one metric, and how the tree is drawn.
 * All parts of the page are drawn from the answer to it (model), so that no two parts show different
 * selections. It is kept in the URL's fragment.
 */
const VIEW_KEYS = ['flame', 'functions', 'waits', 'memory', 'tables', 'about'];

function App(P, engine) {
	this.P = P;
	this.engine = engine;
	this.hasFolds = P.foldKinds.some(Boolean);
	this.listeners = [];
	this.idle = [];
	this.model = null; /* {key, sums, id, tree, weights, shown, base, functions, details, waits, memory, heat} */
	this.reset();
}

App.prototype.reset = function () {
	Object.assign(this, {metric: 0, range: null, groups: null, state: null, showsIdle: false,
		folds: this.hasFolds, hidden: new Set(), merged: new Set(), root: null, around: null, opened: new Set(),
		search: '', view: this.firstView(), selected: -1, zoom: 0, heat: false, order: ''});
	if (this.onReset)
		this.onReset();
};

/* The first view that has something to show. */
App.prototype.firstView = function () {
	return this.P.summary.nrRows ? 'flame' : this.P.head.series.length ? 'memory' : 'about';
};

App.prototype.set = function (changes) {
	if (this.pendingZoom && 'zoom' in changes)
		this.pendingZoom = null;
	Object.assign(this, changes);
	if (this.range)
		this.range = this.range.map(Math.round);
	this.save();
	this.refresh();
};

App.prototype.question = function () {
	const sorted = (set) => Array.from(set).sort((a, b) => a - b);
	return {metric: this.metric, range: this.range, groups: this.groups && sorted(this.groups),
		state: this.state, showsIdle: this.showsIdle, folds: this.folds, hidden: sorted(this.hidden), merged: sorted(this.merged),
		root: this.root, around: this.around, order: this.isTimed() || this.order === 'up' ? this.order : '', opened: sorted(new Set([...this.opened, ...this.foldedHits()]))};
};

/* The slowest measured calls, [ms, us, thread, name] each, of the selected threads. */
App.prototype.spans = function () {
	const P = this.P;
	return this.groups ? P.head.spans.filter(([, , t]) => this.groups.has(P.groups.of[t])) : P.head.spans;
};

/* Frames that the search finds are not folded. */
App.prototype.foldedHits = function () {
	if (this.hitsOf === this.search)
		return this.foldedOnes;
	const re = this.search && compileSearch(this.search), T = this.P.tree, hits = [];
	for (let s = 0; re && s < T.nrSyms; s++)
		if (this.P.foldKinds[s] && re.test(T.name[s]))
			hits.push(s);
	this.hitsOf = this.search;
	return this.foldedOnes = hits;
};

/* The parts that the page needs now and the model does not have. */
App.prototype.wants = function (key) {
	const m = this.model && this.model.key === key ? this.model : {}, wants = {};
	const isSym = this.selected >= 0 && this.selected < this.P.tree.nrSyms;
	if (!m.tree) /* the graph first, the rest follows */
		return {drawn: true};
	if ((this.view === 'functions' || !isSym) && !m.functions)
		wants.functions = true;
	if (isSym && (!m.details || m.details.sym !== this.selected))
		wants.details = this.selected;
	if ((this.view === 'waits' || !isSym) && !m.waits && waitMetric(this.P) >= 0)
		wants.waits = true;
	if (this.view === 'memory' && !m.memory)
		wants.memory = true;
	if (this.heat && !m.heat && this.isTimed())
		wants.heat = heatSize(this.P.head.duration_ms);
	return wants;
};

App.prototype.isComplete = function () {
	return !this.isAsking && !Object.keys(this.wants(JSON.stringify(this.question()))).length;
};

/* Asks for what is missing, one question at a time: the newest when the last is answered. */
App.prototype.refresh = function () {
	if (this.isAsking)
		return;
	if (this.isComplete()) {
		this.notify();
		return;
	}
	const q = this.question(), key = JSON.stringify(q), wants = this.wants(key);
	this.isAsking = true;
	this.engine.ask('show', q, wants, this.model ? this.model.id : null).then((answer) => {
		this.isAsking = false;
		this.take(key, answer);
		this.draw();
		if (!this.isComplete())
			this.refresh();
	}).catch((e) => {
		this.isAsking = false;
		this.onError(e);
		this.idle.splice(0).forEach((fn) => fn());
	});
};

App.prototype.take = function (key, answer) {
	if (this.model && this.model.key === key) {
		Object.assign(this.model, answer);
		return;
	}
	const d = answer.drawn, old = this.model;
	const path = this.pendingZoom || (d.tree && old ? this.zoomPath() : null);
	delete answer.drawn;
	this.model = Object.assign({key: key, id: d.id, tree: d.tree || old.tree, weights: d.weights,
		shown: d.shown, base: d.base}, answer);
	this.pendingZoom = null;
	if (path)
		this.zoom = this.nodeOfPath(path);
};

/* Draws with the next frame. */
App.prototype.notify = function () {
	cancelAnimationFrame(this.frame);
	this.frame = requestAnimationFrame(() => this.draw());
};

App.prototype.draw = function () {
	cancelAnimationFrame(this.frame);
	if (!this.model)
		return;
	for (const fn of this.listeners)
		fn();
	if (this.isComplete())
		this.idle.splice(0).forEach((fn) => fn());
};

/* For tests: resolves when the page shows what is set. */
App.prototype.whenDrawn = function () {
	return new Promise((ok) => {
		this.idle.push(ok);
		this.refresh();
	});
};

/* ---- what follows from the selection ------------------------------------------------------------- */

App.prototype.metricNow = function () {
	return this.P.metrics[this.metric];
};

App.prototype.isTimed = function () {
	const m = this.metricNow();
	return m && m.hasTimes && this.P.head.duration_ms > 0;
};

/* The whole seconds (or other slices) that the range touches, if it cuts one and rows are sums over them; or null. */
App.prototype.cutSeconds = function () {
	const step = this.metricNow().sliceMs, r = this.range, end = this.P.head.duration_ms;
	if (!r || !step || !this.isTimed() || (r[0] % step === 0 && (r[1] % step === 0 || r[1] >= end)))
		return null;
	return [Math.floor(r[0] / step) * step, Math.min(end, Math.ceil(r[1] / step) * step)];
};

/* Weight of what is shown: the selection without hidden functions. */
App.prototype.shownSum = function () {
	return this.model.shown;
};

App.prototype.symName = function (s) {
	const nr = this.P.tree.nrSyms;
	const thread = this.P.head.threads[s - nr - FOLD_NAMES.length];
	return s < 0 ? '[none]' : s < nr ? this.P.tree.name[s] : FOLD_NAMES[s - nr + 1] || thread[2] + ' ' + thread[1];
};

App.prototype.isFold = function (s) {
	return s >= this.P.tree.nrSyms && s < this.P.tree.nrSyms + FOLD_NAMES.length - 1;
};

/* ---- zoomed frame across trees ------------------------------------------------------------------- */

/* The path of the zoomed frame by symbols, from the root; folded frames are left out. */
App.prototype.zoomPath = function () {
	const path = [], d = this.model && this.zoom ? this.model.tree : null;
	for (let i = this.zoom; i > 0; i = d.parent[i])
		path.unshift(d.sym[i]);
	return path;
};

/* The deepest node of the present tree on the path; in order of time a path is not unique: a node's number. */
App.prototype.nodeOfPath = function (path) {
	const d = this.model.tree;
	if (path > 0)
		return d.start && path < d.n ? path : 0;
	let at = 0;
	for (const sym of path) {
		let c = d.first[at];
		while (c && d.sym[c] !== sym)
			c = d.next[c];
		at = c || at;
	}
	return at;
};

/* ---- the fragment of the URL ---------------------------------------------------------------------- */

App.prototype.save = function () {
	const T = this.P.tree, parts = [];
	const put = function (key, value) {
		parts.push(key + '=' + encodeURIComponent(value));
	};
	const names = (syms) => Array.from(syms, (s) => T.name[s]).join('\n');
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
	if (!this.folds && this.hasFolds)
		put('all', 1);
	if (this.heat)
		put('heat', 1);
	if (this.hidden.size)
		put('hide', names(this.hidden));
	if (this.merged.size)
		put('merge', names(this.merged));
	if (this.root !== null)
		put('in', T.name[this.root]);
	if (this.around !== null)
		put('around', T.name[this.around]);
	if (this.search)
		put('s', this.search);
	if (this.view !== this.firstView())
		put('v', this.view);
	if (this.selected >= 0 && this.selected < T.nrSyms)
		put('f', T.name[this.selected]);
	if (this.order)
		put('o', this.order);
	const isOrdered = this.zoom && this.model && this.model.tree.start;
	const path = this.pendingZoom || (isOrdered ? this.zoom : this.zoomPath());
	if (path > 0)
		put('n', path);
	else if (path.length)
		put('z', names(path.filter((s) => s < T.nrSyms)));
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
	const sym = (name) => name === undefined ? -1 : T.name.indexOf(name);
	const syms = (text) => text === undefined ? [] : text.split('\n').map(sym).filter((s) => s >= 0);
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
	this.heat = got.heat === '1';
	this.hidden = new Set(syms(got.hide));
	this.merged = new Set(syms(got.merge));
	this.root = sym(got['in']) < 0 ? null : sym(got['in']);
	this.around = sym(got.around) < 0 ? null : sym(got.around);
	this.search = got.s || '';
	this.view = VIEW_KEYS.includes(got.v) ? got.v : this.view;
	this.selected = sym(got.f);
	this.order = /^(time|up)$/.test(got.o) ? got.o : '';
	this.pendingZoom = Math.floor(+got.n) || syms(got.z);
};
