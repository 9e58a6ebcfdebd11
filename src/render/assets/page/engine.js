/*
 * Everything that is added up over the rows of the recording. It runs in a worker, so that the page
 * answers while it adds; where none may be started, the same code runs in the page. The rows stay
 * here; trees and sums are sent.
 *
 *	open(text) -> what the page is built from
 *	show(question, wants, treeId) -> the parts of one selection's picture that are wanted
 */
function Engine() {}

Engine.prototype.open = async function (text) {
	const P = await readPage(text);
	this.P = P;
	P.kinds = stateKinds(P.head);
	P.foldKinds = foldKinds(P.tree);
	this.trees = new Map();
	const T = P.tree;
	return {head: P.head, metrics: P.metrics, groups: P.groups, hasRows: P.hasRows, rowsOf: P.rowsOf, kinds: P.kinds,
		foldKinds: P.foldKinds, summary: sumStates(P), tree: {n: T.n, nrSyms: T.nrSyms, name: T.name,
			module: T.module, symFlags: T.symFlags, color: T.color}};
};

/* What the page asks for first, unless its address says otherwise; while the page is built. */
Engine.prototype.prepare = function () {
	const q = {metric: 0, range: null, groups: null, state: null, showsIdle: false, hidden: [], merged: [], root: null, opened: []};
	this.sumsOf(q);
	this.treeOf(q, this.P.foldKinds.some(Boolean));
};

/* What the default metric consists of in the whole capture. */
function sumStates(P) {
	const m = P.metrics[0], s = P.streams[m.stream], by = new Float64Array(P.head.states.length);
	const out = {sum: 0, samples: 0, nrRows: P.streams.reduce((sum, x) => sum + x.n, 0)};
	out.idle = eachRow(P, {range: null, threads: null, state: null, showsIdle: false}, m, (i) => {
		out.sum += s.weight[i];
		out.samples += s.count[i];
		if (s.state)
			by[s.state[i]] += s.weight[i];
	});
	out.states = s.state ? by : null;
	return out;
}

/*
 * A sample stands for the time since the one before, so a short bin can get more of it than it is long.
 * Limits sums of time by bin to the bin's length times its threads, and to the CPUs if there are any.
 */
function Limits(P, from, width, nrBins, nrCpus) {
	Object.assign(this, {from: from, width: width, nrCpus: nrCpus || Infinity,
		threads: new Uint32Array(nrBins), last: new Int32Array(P.head.threads.length).fill(-1)});
}

/* Rows are in order of time. */
Limits.prototype.add = function (thread, time, length) {
	const t = time - this.from, n = this.threads.length;
	const b = Math.min(n - 1, Math.ceil((t + Math.max(length, 1)) / this.width) - 1);
	for (let k = Math.max(0, this.last[thread] + 1, Math.floor(t / this.width)); k <= b; k++)
		this.threads[this.last[thread] = k]++;
};

Limits.prototype.apply = function (bins) {
	for (let k = 0; k < bins.length; k++)
		bins[k] = Math.min(bins[k], this.width * 1e6 * Math.min(this.threads[k], this.nrCpus));
};

/* ---- the time axis ---------------------------------------------------------------------------------- */

/*
 * Sums of weights by (group, bin, state) from @from to @to, of the busiest groups, and the CPU time of
 * all. Rows that are sums over a time are spread over it evenly.
 */
const CPU_BIN_MS = 100;
function cpusOf(P) {
	const fact = P.head.facts.find((f) => f[0] === 'cpus');
	return fact ? Number(fact[1]) : 0;
}

Engine.prototype.axis = function (want) {
	const P = this.P, s = P.streams[want.stream], nr = want.nrBins;
	const nrGroups = P.groups.list.length, nrStates = P.head.states.length, kinds = P.kinds;
	const bins = new Array(nrGroups), active = new Float64Array(nrGroups);
	const width = (want.to - want.from) / nr;
	const first = want.from ? lowerBound(s.time, s.n, want.from - Math.max(s.head.slice_ms - 1, 0)) : 0;
	const spread = new Spread(P, s, want.from, width, nr, nrStates);
	/* CPUs in use: over 100 ms at least, a few samples are no number of CPUs. */
	const nrCpu = Math.max(1, Math.min(nr, Math.floor((want.to - want.from) / CPU_BIN_MS)));
	const cpu = new Float64Array(nrCpu), cpuWidth = (want.to - want.from) / nrCpu;
	const cpuSpread = new Spread(P, s, want.from, cpuWidth, nrCpu, 1);
	const limits = new Limits(P, want.from, cpuWidth, nrCpu, cpusOf(P));
	for (let i = first; i < s.n && s.time[i] < want.to; i++) {
		const g = P.groups.of[s.thread[i]], state = s.state ? s.state[i] : 0;
		const b = bins[g] || (bins[g] = new Float32Array(nr * nrStates));
		if (s.time[i] + Math.max(rowLength(P, s, i), 1) <= want.from)
			continue;
		if (!kinds.isIdle[state] || !s.state)
			active[g] += s.weight[i];
		spread.add(i, s.weight[i], b, state);
		if (kinds.isCpu[state] || !s.state) {
			cpuSpread.add(i, s.weight[i], cpu, 0);
			limits.add(s.thread[i], s.time[i], rowLength(P, s, i));
		}
	}
	spread.flush();
	cpuSpread.flush();
	if (s.head.unit === 'ns')
		limits.apply(cpu);
	const order = want.strips || P.groups.list.map((g, i) => i).filter((i) => bins[i])
		.sort((a, b) => active[b] - active[a] || a - b);
	const strips = order.slice(0, want.nrStrips), rest = order.slice(want.nrStrips);
	return {from: want.from, to: want.to, width: width, nrBins: nr, nrStates: nrStates, strips: strips,
		order: order, nrRest: rest.length, restActive: rest.reduce((sum, g) => sum + active[g], 0),
		bins: strips.map((g) => bins[g] || new Float32Array(nr * nrStates)), cpu: cpu,
		cpuWidth: cpuWidth};
};

/* ---- one selection ------------------------------------------------------------------------------------- */

Engine.prototype.selection = function (q) {
	const of = this.P.groups.of;
	return {range: q.range, state: q.state, showsIdle: q.showsIdle,
		threads: q.groups ? Uint8Array.from(of, (g) => q.groups.includes(g) ? 1 : 0) : null};
};

/* Trees do not depend on weights: those of the last ways of drawing are kept. */
Engine.prototype.treeOf = function (q, folds) {
	const how = {folds: folds, hidden: q.hidden, merged: q.merged, root: q.root, opened: folds ? q.opened : []};
	const key = JSON.stringify(how);
	let t = this.trees.get(key);
	if (!t) {
		if (this.trees.size > 3)
			this.trees.delete(this.trees.keys().next().value);
		t = derive(this.P, how);
		t.id = key;
		this.trees.set(key, t);
	}
	return t;
};

Engine.prototype.sumsOf = function (q) {
	const key = JSON.stringify([q.metric, q.range, q.groups, q.state, q.showsIdle]);
	if (this.sumsKey !== key) {
		this.sums = sumRows(this.P, this.selection(q), this.P.metrics[q.metric]);
		this.sumsKey = key;
	}
	return this.sums;
};

Engine.prototype.functionsOf = function (q) {
	const isWhole = !q.hidden.length && q.root === null, P = this.P, isMerged = flagsOf(P.tree, q.merged.filter((s) => !q.hidden.includes(s)));
	const w = q.merged.length ? mergeWeights(P, this.sumsOf(q), isMerged) : this.sumsOf(q);
	return byFunction(P, w, isWhole ? null : this.treeOf(q, false).of, isMerged);
};

/* @wants: {drawn, functions, details: symbol, waits, memory, heat}; @treeId: what the asker has. */
Engine.prototype.show = function (q, wants, treeId) {
	const w = this.sumsOf(q), out = {sums: {sum: w.sum, samples: w.samples, idle: w.idle}};
	if (wants.drawn)
		out.drawn = this.draw(q, treeId);
	const f = wants.functions || wants.details !== undefined ? this.functionsOf(q) : null;
	if (wants.functions)
		out.functions = {self: f.self, total: f.total, count: f.count, totalCount: f.totalCount};
	if (wants.details !== undefined)
		out.details = this.details(q, f, wants.details);
	if (wants.waits)
		out.waits = sumWaits(this.P, this.selection(q), null);
	if (wants.memory)
		out.memory = this.memory(q);
	if (wants.heat)
		out.heat = this.heat(q, wants.heat);
	return out;
};

Engine.prototype.draw = function (q, treeId) {
	const d = this.treeOf(q, q.folds);
	let id = d.id, tree = d, weights = deriveWeights(d, this.sumsOf(q));
	const shown = weights.total[0];
	this.innerOf = null;
	if (q.around !== null) {
		({tree, weights} = around(d, weights, q.around));
		this.innerOf = tree.of;
		id = this.nrAround = (this.nrAround || 0) + 1;
	}
	const sent = (t) => Object.assign({}, t, {of: null}), out = {shown: shown, base: null};
	const other = q.around !== null || !q.order ? null : q.order === 'up' ? inverted(d, weights) :
		inOrder(this.P, this.selection(q), this.P.metrics[q.metric], d);
	if (other) {
		out.base = {tree: sent(d), weights: weights};
		({tree, weights} = other);
		id = q.order + id + this.sumsKey;
	}
	this.drawnOf = d.of;
	return Object.assign(out, {id: id, tree: id === treeId ? null : sent(tree), weights: weights});
};

/* The symbols that are folded into a node of the tree drawn last. */
Engine.prototype.foldedIn = function (node) {
	const T = this.P.tree, inner = this.innerOf, syms = new Set();
	for (let i = 1; i < T.n; i++) {
		const d = this.drawnOf[i];
		if (d >= 0 && (inner ? inner[d] : d) === node)
			syms.add(T.sym[i]);
	}
	return Array.from(syms);
};

Engine.prototype.details = function (q, f, sym) {
	const P = this.P, near = neighbours(P, f.treeTotal, sym, flagsOf(P.tree, q.merged)), isIn = below(P, sym);
	const nr = 120, metric = P.metrics[q.metric], s = P.streams[metric.stream];
	const out = {sym: sym, self: f.self[sym], total: f.total[sym], count: f.count[sym],
		totalCount: f.totalCount[sym], callers: near.callers.slice(0, 50),
		callees: near.callees.slice(0, 50), bins: null, waits: null};
	if (s.time && P.head.duration_ms) {
		const sel = Object.assign(this.selection(q), {range: null}), width = P.head.duration_ms / nr;
		out.bins = new Float64Array(nr);
		const spread = new Spread(P, s, 0, width, nr, 1);
		eachRow(P, sel, metric, (i) => {
			if (isIn[s.node[i]])
				spread.add(i, s.weight[i], out.bins, 0);
		});
		spread.flush();
	}
	out.places = this.places(q, sym);
	if (waitMetric(P) >= 0)
		out.waits = sumWaits(P, this.selection(q), isIn).reason;
	return out;
};

/*
 * Weights of instructions, as [place, of the function's own frame, of all code there] each: inlined
 * functions have a frame of their own. Null: the metric has no instructions.
 */
Engine.prototype.places = function (q, sym) {
	const P = this.P, metric = P.metrics[q.metric], s = P.streams[metric.stream], T = P.tree;
	if (!s.place || metric.states === 'waits')
		return null;
	const of = q.hidden.length || q.root !== null ? this.treeOf(q, false).of : null;
	const own = new Map(), all = new Map();
	eachRow(P, this.selection(q), metric, (i, factor) => {
		const at = s.place[i], node = s.node[i];
		if (!at || of && of[node] < 0)
			return;
		all.set(at, (all.get(at) || 0) + s.weight[i] * factor);
		if (T.sym[node] === sym)
			own.set(at, (own.get(at) || 0) + s.weight[i] * factor);
	});
	return Array.from(all, ([at, v]) => [at, own.get(at) || 0, v]);
};

Engine.prototype.memory = function (q) {
	const P = this.P, out = [];
	P.metrics.forEach((m, k) => {
		if (!m.isMemory)
			return;
		const w = sumRows(P, this.selection(q), m), rows = [];
		const f = byFunction(P, w, null);
		for (let i = 0; i < P.tree.nrSyms; i++)
			if (f.self[i] > 0)
				rows.push([i, f.self[i], f.count[i]]);
		rows.sort((x, y) => y[1] - x[1]);
		out.push({metric: k, sum: w.sum, nrRows: rows.length, rows: rows.slice(0, 50)});
	});
	return out;
};

/* Weights of the metric by slices of @rowMs within columns of @columnMs, without the range. */
Engine.prototype.heat = function (q, want) {
	const P = this.P, m = P.metrics[q.metric], s = P.streams[m.stream];
	if (!s.time || !P.head.duration_ms)
		return null;
	const nr = Math.ceil(P.head.duration_ms / want.rowMs), bins = new Float32Array(nr);
	const spread = new Spread(P, s, 0, want.rowMs, nr, 1);
	const limits = new Limits(P, 0, want.rowMs, nr, m.states === 'cpu' ? cpusOf(P) : 0);
	eachRow(P, Object.assign(this.selection(q), {range: null}), m, (i) => {
		spread.add(i, s.weight[i], bins, 0);
		limits.add(s.thread[i], s.time[i], rowLength(P, s, i));
	});
	spread.flush();
	if (m.unit === 'ns' && (s.state || m.isSampled))
		limits.apply(bins);
	return {rowMs: want.rowMs, columnMs: want.columnMs, bins: bins};
};

/* ---- waits --------------------------------------------------------------------------------------------- */

/* Index of the metric that contains waits; -1: none. */
function waitMetric(P) {
	return P.metrics.findIndex((m) => m.hasStates && m.states !== 'cpu');
}

/*
 * Quantile of durations from counts and sums by floor(log2(ns)), interpolated within a bucket so that
 * its mean is kept, as analyze/wait/quantile.c does; at most the longest wait. Counts are whole numbers:
 * a part of a second has no quantiles of its own. -1: not known.
 */
function quantile(g, q) {
	const all = g.nr.reduce((sum, n) => sum + n, 0), rank = Math.max(1, Math.ceil(q * all));
	let under = 0;
	for (let k = 0; all && k < g.nr.length; k++) {
		const n = g.nr[k];
		if (under + n < rank) {
			under += n;
			continue;
		}
		const lo = k ? 2 ** k : 0, hi = Math.max(lo + 1, Math.min(2 ** (k + 1), g.longest || Infinity));
		if (n === 1)
			return Math.max(lo, Math.min(hi, g.sums[k]));
		const m = Math.min(0.9995, Math.max(0.0005, (g.sums[k] / n - lo) / (hi - lo)));
		return lo + (hi - lo) * ((rank - under - 0.5) / n) ** (1 / m - 1);
	}
	return -1;
}

/*
 * Sums waits of the selection by reason, by reason and object, and by waking thread. Objects have the
 * threads that ended their waits: of a lock, its holders.
 */
function sumWaits(P, sel, onlyNodes) {
	const m = P.metrics[waitMetric(P)], maps = {reason: new Map(), object: new Map(), waker: new Map()};
	if (!m)
		return null;
	const s = P.streams[m.stream], nrStates = P.head.states.length;
	const add = function (map, key, i, factor) {
		let g = map.get(key);
		if (!g)
			map.set(key, g = {ns: 0, n: 0, nr: new Float64Array(64), sums: new Float64Array(64),
				longest: 0, wakers: new Map()});
		g.ns += s.weight[i] * factor;
		g.n += s.count[i] * factor;
		g.longest = Math.max(g.longest, P.head.states[s.state[i]][5]);
		if (s.log2[i]) { /* of the whole second, also where the range cuts it */
			g.nr[s.log2[i] - 1] += s.count[i];
			g.sums[s.log2[i] - 1] += s.weight[i];
		}
		if (s.waker[i])
			g.wakers.set(s.waker[i], (g.wakers.get(s.waker[i]) || 0) + s.weight[i] * factor);
	};
	const metric = Object.assign({}, m, {states: 'waits'});
	const idle = eachRow(P, sel, metric, (i, factor) => {
		if (onlyNodes && !onlyNodes[s.node[i]])
			return;
		add(maps.reason, s.state[i], i, factor);
		if (s.object[i])
			add(maps.object, s.object[i] * nrStates + s.state[i], i, factor);
		if (s.waker[i])
			add(maps.waker, s.waker[i], i, factor);
	});
	const out = {idle: idle};
	for (const key in maps)
		out[key] = Array.from(maps[key], ([k, g]) => ({ns: g.ns, n: g.n, p50: quantile(g, 0.5),
			p99: quantile(g, 0.99), wakers: Array.from(g.wakers).sort((a, b) => b[1] - a[1]).slice(0, 3),
			state: key === 'waker' ? -1 : key === 'object' ? k % nrStates : k,
			text: key === 'waker' ? k : key === 'object' ? Math.floor(k / nrStates) : 0}))
			.sort((a, b) => b.ns - a.ns);
	return out;
}

/* ---- the worker ------------------------------------------------------------------------------------------ */

/* Buffers of typed arrays in an answer that its sender no longer needs. */
function movable(answer) {
	const list = [], w = answer && answer.drawn && answer.drawn.weights;
	if (w)
		list.push(w.self.buffer, w.total.buffer, w.count.buffer);
	return list;
}

function serveEngine() {
	const engine = new Engine();
	self.onmessage = async function (ev) {
		const [id, method, args] = ev.data;
		try {
			const answer = await engine[method](...args);
			self.postMessage([id, answer, ''], movable(answer));
			if (method === 'open')
				engine.prepare();
		} catch (e) {
			self.postMessage([id, null, e.message]);
		}
	};
}

/* The engine in a worker made from the page's own script, or in the page. ask() returns promises. */
function EngineClient(script) {
	this.nr = 0;
	this.waiting = new Map();
	this.script = script;
}

EngineClient.prototype.start = function () {
	return new Promise((done) => {
		const here = () => {
			this.worker = null;
			this.engine = this.engine || new Engine();
			done();
		};
		try {
			const url = URL.createObjectURL(new Blob([this.script], {type: 'text/javascript'}));
			this.worker = new Worker(url);
			this.worker.onmessage = (ev) => {
				const [id, answer, problem] = ev.data;
				if (id === 0) {
					URL.revokeObjectURL(url);
					done();
					return;
				}
				const [ok, fail] = this.waiting.get(id);
				this.waiting.delete(id);
				if (problem)
					fail(new Error(problem));
				else
					ok(answer);
			};
			this.worker.onerror = here;
			this.worker.postMessage([0, 'isReady', []]);
		} catch (e) { /* workers are not allowed here */
			here();
		}
	});
};

Engine.prototype.isReady = function () {
	return true;
};

EngineClient.prototype.ask = function (method, ...args) {
	if (!this.worker)
		return new Promise((ok) => setTimeout(ok)).then(() => this.engine[method](...args));
	const id = ++this.nr;
	return new Promise((ok, fail) => {
		this.waiting.set(id, [ok, fail]);
		this.worker.postMessage([id, method, args]);
	});
};
