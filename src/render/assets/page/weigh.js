/*
 * Adds up the rows of the selection over the tree, and makes the trees that are drawn from it.
 *
 *	rows --sumRows--> self by node --totals--> total by node
 *	tree --derive--> folded or re-rooted tree (which node of it each node belongs to)
 */

function lowerBound(a, n, v) {
	let lo = 0, hi = n;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (a[mid] < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Per state: is it running, is it idle. */
function stateKinds(head) {
	const kinds = {isCpu: [], isIdle: []};
	head.states.forEach(function (s, i) {
		kinds.isCpu[i] = s[0] === 'on_cpu'; /* with and without samples */
		kinds.isIdle[i] = s[2] === 1;
	});
	return kinds;
}

/*
 * Calls fn(row, factor) for each row of the selection; @factor is the part of the row's weight within
 * the time range: rows that are sums over a second count in proportion where the range cuts the second.
 * Returns the weight of idle rows, which are left out unless sel.showsIdle.
 */
function eachRow(P, sel, metric, fn) {
	const s = P.streams[metric.stream], slice = s.head.slice_ms;
	const hasRange = sel.range !== null && s.time;
	const from = hasRange ? sel.range[0] : 0, to = hasRange ? sel.range[1] : 0;
	const first = hasRange ? lowerBound(s.time, s.n, from - Math.max(slice - 1, 0)) : 0;
	const last = hasRange ? lowerBound(s.time, s.n, to) : s.n;
	const kinds = P.kinds, isIn = sel.threads, onlyState = sel.state;
	let idle = 0;
	if (!s.state && (!hasRange || !slice)) { /* whole rows */
		for (let i = first; i < last; i++)
			if (!isIn || isIn[s.thread[i]])
				fn(i, 1);
		return 0;
	}
	for (let i = first; i < last; i++) {
		if (isIn && !isIn[s.thread[i]])
			continue;
		let factor = 1, state = 0;
		if (s.state) {
			state = s.state[i];
			if (metric.states === 'cpu' ? !kinds.isCpu[state] :
				metric.states === 'waits' ? kinds.isCpu[state] : false)
				continue;
			if (onlyState !== null && state !== onlyState && !(kinds.isCpu[state] && kinds.isCpu[onlyState]))
				continue;
		}
		if (hasRange) {
			const t = s.time[i], length = rowLength(P, s, i);
			if (length) {
				const a = Math.max(t, from) - t, b = Math.min(t + length, to) - t;
				if (a >= b)
					continue;
				factor = a === 0 && b === length ? 1 : partOf(s, i, a, b, length);
				if (!factor)
					continue;
			} else if (t < from) {
				continue;
			}
		}
		if (kinds.isIdle[state] && s.state && !sel.showsIdle && onlyState === null) {
			idle += s.weight[i] * factor;
			continue;
		}
		fn(i, factor);
	}
	return idle;
}

/* Length in ms of row @i; 0: an instant. The last second of a capture is shorter. */
function rowLength(P, s, i) {
	return s.length[i] && Math.max(1, Math.min(s.length[i], P.head.duration_ms - s.time[i]));
}

/* The part of a row's weight from @a to @b ms after its time. */
function partOf(s, i, a, b, length) {
	const k = s.shape ? s.shape[i] : 0;
	if (!k || !s.shapeTotal[k])
		return (b - a) / length;
	let sum = s.rest[k - 1] * (b - a) / length;
	for (let j = s.firstBin[k]; j < s.firstBin[k + 1]; j++) {
		const t = s.bin[j] * BIN_MS, part = Math.min(t + BIN_MS, b) - Math.max(t, a);
		if (part > 0)
			sum += s.binWeight[j] * part / BIN_MS;
	}
	return sum / s.shapeTotal[k];
}

/*
 * Spreads weights of rows over bins of @width ms from @from on: add() takes the row and where its bins
 * are. Neighbours of one shape that go to the same bins are spread at once; flush() ends it.
 */
function Spread(P, s, from, width, nrBins, step) {
	Object.assign(this, {P: P, s: s, from: from, width: width, nr: nrBins, step: step, held: 0, shape: 0,
		bins: null, offset: 0, time: 0, length: 0});
}

Spread.prototype.add = function (i, weight, bins, offset) {
	const shape = this.s.shape ? this.s.shape[i] : 0;
	if (shape && shape === this.shape && bins === this.bins && offset === this.offset) {
		this.held += weight;
		return;
	}
	this.flush();
	Object.assign(this, {shape: shape, bins: bins, offset: offset, held: weight,
		time: this.s.time[i] - this.from, length: rowLength(this.P, this.s, i)});
	if (!shape)
		this.flush();
};

Spread.prototype.flush = function () {
	const weight = this.held, k = this.shape, s = this.s, time = this.time, end = time + this.length;
	const isInOne = Math.floor(time / this.width) === Math.floor(end / this.width);
	this.held = this.shape = 0;
	if (!weight)
		return;
	if (!k || !s.shapeTotal[k] || isInOne) {
		this.put(time, this.length, weight);
		return;
	}
	const unit = weight / s.shapeTotal[k];
	if (s.rest[k - 1])
		this.put(time, this.length, s.rest[k - 1] * unit);
	for (let j = s.firstBin[k]; j < s.firstBin[k + 1]; j++)
		this.put(time + s.bin[j] * BIN_MS, BIN_MS, s.binWeight[j] * unit);
};

/* @weight, spread evenly over @length ms; 0: an instant. */
Spread.prototype.put = function (time, length, weight) {
	const {bins, step, offset, width} = this, last = this.nr - 1;
	let k = Math.floor(time / width);
	if (!length || (k + 1) * width >= time + length) {
		if (k >= 0 && k <= last)
			bins[k * step + offset] += weight;
		return;
	}
	const end = time + length;
	for (k = Math.max(k, 0); k <= last && k * width < end; k++)
		bins[k * step + offset] += weight * (Math.min(end, (k + 1) * width) - Math.max(time, k * width)) /
			length;
};

/* Sums by node of the whole tree. */
function sumRows(P, sel, metric) {
	const s = P.streams[metric.stream], n = P.tree.n;
	const w = {self: new Float64Array(n), count: new Float64Array(n), sum: 0, samples: 0, idle: 0};
	w.idle = eachRow(P, sel, metric, function (i, factor) {
		const v = s.weight[i] * factor, c = s.count[i] * factor;
		w.self[s.node[i]] += v;
		w.count[s.node[i]] += c;
		w.sum += v;
		w.samples += c;
	});
	return w;
}

function totals(self, parent) {
	const total = self.slice();
	for (let i = total.length - 1; i > 0; i--)
		total[parent[i]] += total[i];
	return total;
}

/* ---- derived trees ---------------------------------------------------------------------------- */

/*
 * Frames of runtimes that stand between a program's own functions, frames of allocators below them, and
 * those of the kernel's entry and waiting. Runs of them are drawn as one frame; a click opens it. So
 * tasks of an executor stand side by side under one frame, each with its outermost future.
 */
const RUNTIME = new RegExp('^(' + [
	'tokio::(?!sync|time|fs)', 'mio::', 'rayon_core::', 'rayon::iter::plumbing', 'std::(rt|sys|sys_common|net|panic\\w*)::',
	'std::thread::(local|Builder|lifecycle|Thread|_)', 'core::(ops::function|panic|future|pin)::', 'alloc::boxed::', 'std::__invoke',
	'std::invoke', 'std::_Function_handler', 'std::function<', 'tracing::instrument', 'futures_util::future',
	'\\w as (tokio|core::future|std::io|futures_\\w+)::', '__libc_start', '_start$', 'start_thread$', 'clone3?$', '__clone',
	'thread_start', 'runtime\\.(goexit|main|mcall|call)', 'lang_start', 'main::\\{\\{closure\\}\\}$',
].join('|') + ')|__rust_begin_short_backtrace|catch_unwind|::call_once');
const ALLOCATOR = new RegExp('^(' + [
	'(_rjem_|je_|mi_|tc_)?(m|c|re)alloc', '_int_(malloc|free|realloc)', 'sysmalloc', '_?_?libc_malloc',
	'__libc_(malloc|calloc|realloc|free|memalign)', 'malloc_consolidate', '_rjem_', 'je_',
	'__rustc?_?alloc', '__rust_(re|de)?alloc', '__rdl_', '__rg_', 'alloc::alloc::', 'alloc::raw_vec::',
	'operator new', 'operator delete', 'std::allocator', 'std::__new_allocator',
	'__gnu_cxx::new_allocator', 'alloc::alloc::Global', 'free$', 'cfree', 'arena_', 'tcache_',
	'mi_', 'tc_', '(z|x|g_|ztry|xtry)(m|c|re)alloc', 'zfree',
].join('|') + ')');
/* The C library's own names of system calls, and the ways in which it waits. */
const LIBC_ENTRY = /^(syscall$|__(internal_)?syscall_cancel|(__GI_)?__libc_(?!start|main|\w*(alloc|free|memalign))|_*(do_|GI_+)?(lll|futex|new_sem)_\w*(lock|wait))/;
/* Between a system call and what it does or waits for. */
const KERNEL_ENTRY = new RegExp('^(' + [
	'entry_SYSCALL', 'do_syscall_64', 'x64_sys_call', '__(x64_|arm64_|do_|se_)?sys_', 'el0', 'do_el0', 'invoke_syscall',
	'syscall_', 'ret_from_fork', 'asm_', 'do_futex$', '_*futex_(do_)?wait', 'futex_wait', 'do_epoll_wait', 'ep_poll$',
	'do_sys_poll', 'do_poll', 'poll_schedule', '_*schedule(_|$)', 'io_schedule', 'hrtimer_nanosleep', 'do_nanosleep',
	'schedule_hrtimeout', 'common_nsleep', 'ksys_', 'vfs_(read|write|fsync)',
].join('|') + ')');

const FOLD_RUNTIME = 1, FOLD_ALLOCATOR = 2, FOLD_KERNEL = 3;
const FOLD_NAMES = ['', '[runtime frames]', '[allocator frames]', '[system call]'];
const SYM_KERNEL = 1; /* enum tree_flags */

function foldKinds(tree) {
	const kind = new Uint8Array(tree.nrSyms);
	for (let s = 0; s < tree.nrSyms; s++) {
		const name = tree.name[s];
		if (name[0] === '[') /* synthetic frames */
			continue;
		const own = name.replace(/^[<&*]+(mut )?/, ''); /* "<&T as Trait>::f" */
		kind[s] = (tree.symFlags[s] & SYM_KERNEL ? KERNEL_ENTRY : LIBC_ENTRY).test(name) ? FOLD_KERNEL :
			tree.symFlags[s] & SYM_KERNEL ? 0 : RUNTIME.test(own) ? FOLD_RUNTIME :
			ALLOCATOR.test(own) ? FOLD_ALLOCATOR : 0;
	}
	return kind;
}

/*
 * Builds a tree: child() finds or adds the node of a symbol below a parent. Parents have smaller numbers
 * than their children. The hash is open addressing over (parent, symbol).
 */
function TreeMaker(capacity) {
	this.n = 1;
	this.columns = ['parent', 'sym', 'depth', 'first', 'next'];
	for (const c of this.columns)
		this[c] = new Uint32Array(capacity + 1);
	this.hash = new Uint32Array(1024);
}

TreeMaker.prototype.slot = function (parent, sym) {
	const mask = this.hash.length - 1;
	let h = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(sym + 1, 0x85ebca6b)) >>> 0;
	h = (h ^ h >>> 15) & mask;
	for (let i = this.hash[h]; i && (this.parent[i] !== parent || this.sym[i] !== sym); i = this.hash[h])
		h = (h + 1) & mask;
	return h;
};

TreeMaker.prototype.child = function (parent, sym) {
	let h = this.slot(parent, sym);
	if (this.hash[h])
		return this.hash[h];
	if (2 * this.n > this.hash.length) {
		this.hash = new Uint32Array(4 * this.hash.length);
		for (let i = 1; i < this.n; i++)
			this.hash[this.slot(this.parent[i], this.sym[i])] = i;
		h = this.slot(parent, sym);
	}
	this.hash[h] = this.n;
	return this.add(parent, sym);
};

/* Adds a node that no call of child() will look for. */
TreeMaker.prototype.add = function (parent, sym) {
	if (this.n === this.parent.length)
		this.grow();
	const id = this.n++;
	this.parent[id] = parent;
	this.sym[id] = sym;
	this.depth[id] = this.depth[parent] + 1;
	this.next[id] = this.first[parent];
	this.first[parent] = id;
	return id;
};

TreeMaker.prototype.grow = function () {
	for (const c of this.columns) {
		const old = this[c];
		this[c] = new Uint32Array(2 * this.n);
		this[c].set(old);
	}
};

TreeMaker.prototype.finish = function () {
	const d = {n: this.n};
	for (const c of this.columns)
		d[c] = this[c].slice(0, this.n);
	return d;
};

/* The page's tree itself. */
function wholeTree(T) {
	const n = T.n, first = new Uint32Array(n), next = new Uint32Array(n), of = new Int32Array(n);
	for (let i = 1; i < n; i++) {
		const p = T.parent[i];
		next[i] = first[p];
		first[p] = of[i] = i;
	}
	return {n: n, parent: T.parent, sym: T.sym, depth: T.depth, first: first, next: next, of: of};
}

/*
 * Makes a tree from that of the page: runtime frames folded, merged functions taken out, stacks without
 * hidden functions, or only the part below one function.
 *
 * of[i]: node of the new tree that node i belongs to, -1: left out.
 */
function derive(P, how) {
	const T = P.tree, n = T.n, kinds = how.folds ? P.foldKinds : null;
	if (!how.hidden.length && !how.merged.length && how.root === null && !(kinds && kinds.some(Boolean)))
		return wholeTree(T);
	const made = new TreeMaker(n), of = new Int32Array(n), open = new Set(how.opened);
	const isHidden = new Uint8Array(T.nrSyms), OUTSIDE = -2; /* above the function that the tree begins with */
	for (const s of how.hidden)
		isHidden[s] = 1;
	const isMerged = flagsOf(T, how.merged);
	of[0] = how.root === null ? 0 : OUTSIDE;
	for (let i = 1; i < n; i++) {
		const s = T.sym[i];
		let p = of[T.parent[i]];
		if (p === -1 || isHidden[s]) {
			of[i] = -1;
			continue;
		}
		if (p === OUTSIDE) {
			if (s !== how.root) {
				of[i] = OUTSIDE;
				continue;
			}
			p = 0;
		}
		if (isMerged[s]) {
			of[i] = p;
			continue;
		}
		const kind = kinds && s !== how.root ? kinds[s] : 0;
		if (!kind || open.has(s)) {
			of[i] = made.child(p, s);
			continue;
		}
		const fold = T.nrSyms + kind - 1;
		of[i] = made.sym[p] === fold && p ? p : made.child(p, fold);
	}
	for (let i = 0; i < n; i++)
		if (of[i] === OUTSIDE)
			of[i] = -1;
	return Object.assign(made.finish(), {of: of});
}

/* By symbol: 1 if it is one of @syms. */
function flagsOf(T, syms) {
	const is = new Uint8Array(T.nrSyms);
	for (const s of syms)
		is[s] = 1;
	return is;
}

/* Sums by node where the merged functions' own part is their callers'. */
function mergeWeights(P, w, isMerged) {
	const T = P.tree, out = {self: w.self.slice(), count: w.count.slice()};
	for (let i = T.n - 1; i > 0; i--)
		if (isMerged[T.sym[i]])
			for (const column of [out.self, out.count]) {
				column[T.parent[i]] += column[i];
				column[i] = 0;
			}
	return out;
}

/* Sums of a derived tree. */
function deriveWeights(d, w) {
	const self = new Float64Array(d.n), count = new Float64Array(d.n);
	for (let i = 0; i < d.of.length; i++) {
		const to = d.of[i];
		if (to < 0 || !w.self[i] && !w.count[i])
			continue;
		self[to] += w.self[i];
		count[to] += w.count[i];
	}
	return {self: self, total: totals(self, d.parent), count: totals(count, d.parent)};
}

/*
 * The tree around one function, of a drawn tree with its weights: node 1 is the function. Below it are
 * its callees, above it its callers (isUp), where the child of a caller is its own caller. Recursive
 * calls count once.
 */
function around(d, w, sym) {
	const down = new TreeMaker(1024), up = new TreeMaker(1024), of = new Int32Array(d.n).fill(-1);
	down.child(0, sym);
	up.child(0, sym);
	const ends = []; /* of callers: where stacks begin */
	for (let i = 1; i < d.n; i++) {
		if (!w.total[i] && !w.count[i])
			continue;
		const p = of[d.parent[i]];
		if (p > 0) {
			of[i] = down.child(p, d.sym[i]);
			continue;
		}
		if (d.sym[i] !== sym)
			continue;
		of[i] = 1;
		let at = 1;
		for (let c = d.parent[i]; c > 0; c = d.parent[c])
			at = up.child(at, d.sym[c]);
		ends.push(at, i);
	}
	const t = joinTrees(down.finish(), up.finish()), nrDown = down.n, sums = {};
	t.of = of;
	for (const key of ['self', 'count']) {
		/* Counts of w are totals: those of the node alone follow. */
		const own = key === 'self' ? w.self : ownOf(w.count, d.parent);
		const self = new Float64Array(t.n), total = new Float64Array(t.n);
		for (let i = 1; i < d.n; i++)
			if (of[i] > 0)
				self[of[i]] += own[i];
		total.set(self);
		for (let k = 0; k < ends.length; k += 2)
			if (ends[k] > 1)
				total[ends[k] + nrDown - 2] += (key === 'self' ? w.total : w.count)[ends[k + 1]];
		for (let i = t.n - 1; i > 0; i--)
			if (!t.isUp[i] || t.parent[i] !== 1)
				total[t.parent[i]] += total[i];
		sums[key] = [self, total];
	}
	return {tree: t, weights: {self: sums.self[0], total: sums.self[1], count: sums.count[1]}};
}

/*
 * The tree upside down: frames where stacks end, below each its callers. Callers of what has less than
 * INVERT_SHARE of all are left out; the weight stays where they would begin.
 */
const INVERT_SHARE = 1e-5;
function inverted(d, w) {
	const made = new TreeMaker(d.n), counts = ownOf(w.count, d.parent), least = w.total[0] * INVERT_SHARE;
	/* Rows of a node are those from its place on: where the weight is, and the caller to add. */
	let rows = new Uint32Array(d.n), callers = new Uint32Array(d.n), nr = 0;
	let nextRows = new Uint32Array(d.n), nextCallers = new Uint32Array(d.n), lastSym = 0;
	for (let i = 1; i < d.n; i++) {
		lastSym = Math.max(lastSym, d.sym[i]);
		if (w.self[i] || counts[i])
			rows[nr] = callers[nr++] = i;
	}
	const child = new Uint32Array(lastSym + 1); /* of a symbol, below the node that is made */
	const self = [0], count = [0], sums = [least], sizes = [nr], places = [0];
	for (let at = 0, levelEnd = 1, put = 0; at < made.n; at++) {
		if (at === levelEnd) {
			[rows, nextRows, callers, nextCallers] = [nextRows, rows, nextCallers, callers];
			levelEnd = made.n;
			put = 0;
		}
		const from = places[at], to = from + sizes[at], firstChild = made.n, goesOn = sums[at] >= least;
		for (let r = from; r < to; r++) {
			const i = rows[r], s = d.sym[callers[r]];
			if (!callers[r] || !goesOn) {
				self[at] += w.self[i];
				count[at] += counts[i];
				continue;
			}
			if (child[s] < firstChild) {
				child[s] = made.add(at, s);
				self.push(0);
				count.push(0);
				sums.push(0);
				sizes.push(0);
				places.push(0);
			}
			sizes[child[s]]++;
			sums[child[s]] += w.self[i];
		}
		for (let c = firstChild; c < made.n; c++) {
			places[c] = put;
			put += sizes[c];
			sizes[c] = 0;
		}
		for (let r = from; r < to && goesOn; r++) {
			const c = child[d.sym[callers[r]]];
			if (callers[r]) {
				nextRows[places[c] + sizes[c]] = rows[r];
				nextCallers[places[c] + sizes[c]++] = d.parent[callers[r]];
			}
		}
	}
	const t = Object.assign(made.finish(), {isInverted: true}), own = new Float64Array(self), times = new Float64Array(count);
	return {tree: t, weights: {self: own, total: totals(own, t.parent), count: totals(times, t.parent)}};
}

/*
 * The stacks of each thread in order of time: equal frames of stacks that follow each other are one node.
 * start: the weight before the node; from, till: its time in ms. A wait stands at the 10 ms or at the
 * second that is known of it. Null: more nodes than can be shown.
 */
const ORDERED_MAX = 4e5;
function inOrder(P, sel, metric, d) {
	const s = P.streams[metric.stream], rows = [], [from, to] = sel.range || [0, Infinity];
	eachRow(P, sel, metric, (i, factor) => {
		const node = d.of[s.node[i]], k = s.shape ? s.shape[i] : 0, unit = k ? 1 / s.shapeTotal[k] : 0;
		const put = (time, length, share) => {
			const part = length ? (Math.min(time + length, to) - Math.max(time, from)) / length : 1;
			if (part > 0 && share)
				rows.push([s.thread[i], time, node, s.weight[i] * share * part, s.count[i] * share * part, length]);
		};
		if (node < 0)
			return;
		if (!unit)
			return put(s.time[i], rowLength(P, s, i), 1);
		put(s.time[i], rowLength(P, s, i), s.rest[k - 1] * unit);
		for (let j = s.firstBin[k]; j < s.firstBin[k + 1]; j++)
			put(s.time[i] + s.bin[j] * BIN_MS, BIN_MS, s.binWeight[j] * unit);
	});
	rows.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
	const made = new TreeMaker(1024), self = [0], count = [0], start = [0], first = [0], last = [0];
	let open = [], at = 0, thread = -1; /* open: [node of d, node made], from the thread on */
	const add = (parent, sym, time) => {
		first[made.n] = time;
		start[made.n] = at;
		self[made.n] = count[made.n] = 0;
		return made.add(parent, sym);
	};
	for (const [t, time, node, w, c, length] of rows) {
		const path = [];
		for (let i = node; i > 0; i = d.parent[i])
			path.unshift(i);
		if (t !== thread)
			open = [[0, add(0, P.tree.nrSyms + FOLD_NAMES.length + t, time)]];
		thread = t;
		let k = 0;
		while (k < path.length && k + 1 < open.length && open[k + 1][0] === path[k])
			k++;
		open.length = k + 1;
		for (; k < path.length; k++)
			open.push([path[k], add(open[k][1], d.sym[path[k]], time)]);
		for (const [, made] of open)
			last[made] = Math.max(last[made] || 0, time + length);
		const leaf = open[open.length - 1][1];
		self[leaf] += w;
		count[leaf] += c;
		at += w;
		if (made.n > ORDERED_MAX)
			return null;
	}
	const tree = Object.assign(made.finish(), {start: Float64Array.from(start), from: first, till: last});
	return {tree: tree, weights: {self: Float64Array.from(self), total: totals(Float64Array.from(self), tree.parent),
		count: totals(Float64Array.from(count), tree.parent)}};
}

/* Nodes of @up from 2 on follow those of @down; node 1 is the same in both. */
function joinTrees(down, up) {
	const n = down.n + up.n - 2, t = {n: n, isUp: new Uint8Array(n).fill(1, down.n)};
	const shift = (i) => i > 1 ? i + down.n - 2 : i;
	for (const c of ['parent', 'sym', 'depth', 'first', 'next']) {
		t[c] = new Uint32Array(n);
		t[c].set(down[c]);
		const isNode = c !== 'sym' && c !== 'depth';
		for (let i = 2; i < up.n; i++)
			t[c][i + down.n - 2] = isNode ? shift(up[c][i]) : up[c][i];
	}
	t.firstUp = shift(up.first[1]);
	return t;
}

function ownOf(total, parent) {
	const own = Float64Array.from(total);
	for (let i = total.length - 1; i > 0; i--)
		own[parent[i]] -= total[i];
	return own;
}

/* ---- by function -------------------------------------------------------------------------------- */

/* Self and total of each symbol, without merged ones; a recursive function counts once. */
function byFunction(P, w, skips, isMerged) {
	const T = P.tree, n = T.n, nr = T.nrSyms;
	const f = {self: new Float64Array(nr), total: new Float64Array(nr), count: new Float64Array(nr),
		totalCount: new Float64Array(nr)};
	const self = skips ? w.self.map(function (v, i) {
		return skips[i] < 0 ? 0 : v;
	}) : w.self;
	const counts = skips ? w.count.map(function (v, i) {
		return skips[i] < 0 ? 0 : v;
	}) : w.count;
	const total = totals(self, T.parent), totalCount = totals(counts, T.parent);
	const onPath = new Uint32Array(nr), open = [];
	for (let i = 1; i < n;) {
		while (open.length && T.end[open[open.length - 1]] <= i)
			onPath[T.sym[open.pop()]]--;
		if (!total[i] && !totalCount[i]) {
			i = T.end[i];
			continue;
		}
		const s = T.sym[i];
		f.self[s] += self[i];
		f.count[s] += counts[i];
		if (!onPath[s] && !(isMerged && isMerged[s])) {
			f.total[s] += total[i];
			f.totalCount[s] += totalCount[i];
		}
		onPath[s]++;
		open.push(i);
		i++;
	}
	f.treeTotal = total;
	return f;
}

/* Callers and callees of a symbol, by symbol, with their part of its total. */
function neighbours(P, total, sym, isMerged) {
	const T = P.tree, up = new Map(), down = new Map();
	const addCallees = (i) => {
		for (let c = i + 1; c < T.end[i]; c = T.end[c])
			if (isMerged[T.sym[c]])
				addCallees(c);
			else if (total[c] && T.sym[c] !== sym)
				down.set(T.sym[c], (down.get(T.sym[c]) || 0) + total[c]);
	};
	let skip = 0;
	for (let i = 1; i < T.n; i++) {
		if (T.sym[i] !== sym || !total[i])
			continue;
		addCallees(i);
		if (i < skip)
			continue;
		skip = T.end[i];
		let p = T.parent[i];
		while (p && isMerged[T.sym[p]])
			p = T.parent[p];
		up.set(p ? T.sym[p] : -1, (up.get(p ? T.sym[p] : -1) || 0) + total[i]);
	}
	const sorted = function (m) {
		return Array.from(m).sort(function (a, b) {
			return b[1] - a[1];
		});
	};
	return {callers: sorted(up), callees: sorted(down)};
}

/* By node: 1 if it is a frame of the symbol or below one. */
function below(P, sym) {
	const T = P.tree, isIn = new Uint8Array(T.n);
	for (let i = 1; i < T.n; i++)
		isIn[i] = T.sym[i] === sym || isIn[T.parent[i]] ? 1 : 0;
	return isIn;
}
