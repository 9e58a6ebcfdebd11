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
		kinds.isCpu[i] = s[0] === 'on_cpu';
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
	for (let i = first; i < last; i++) {
		if (isIn && !isIn[s.thread[i]])
			continue;
		let factor = 1, state = 0;
		if (s.state) {
			state = s.state[i];
			if (metric.states === 'cpu' ? !kinds.isCpu[state] :
				metric.states === 'waits' ? kinds.isCpu[state] : false)
				continue;
			if (onlyState !== null && state !== onlyState)
				continue;
		}
		if (hasRange) {
			const t = s.time[i], length = rowLength(P, s, i);
			if (length) {
				const part = Math.min(t + length, to) - Math.max(t, from);
				if (part <= 0)
					continue;
				factor = part / length;
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

/* Adds @weight of a row to bins of @width ms, in proportion to the time of the row in each. */
function addToBins(bins, at, step, width, time, length, weight) {
	const last = bins.length / step - 1;
	if (!length) {
		bins[Math.min(last, Math.floor(time / width)) * step + at] += weight;
		return;
	}
	const end = time + length;
	for (let k = Math.min(last, Math.floor(time / width)); k <= last && k * width < end; k++) {
		const part = Math.min(end, (k + 1) * width) - Math.max(time, k * width);
		bins[k * step + at] += weight * part / length;
	}
}

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
 * Frames of runtimes that stand between a program's own functions, and frames of allocators below
 * them. Runs of them are drawn as one frame; a click opens it.
 */
const RUNTIME = new RegExp('^(' + [
	'tokio::runtime::', 'tokio::task::', 'tokio::park::', 'tokio::loom::', 'tokio::util::',
	'tokio::macros::', 'tokio::coop::', 'rayon_core::', 'rayon::iter::plumbing',
	'std::rt::', 'std::sys::', 'std::sys_common::', 'std::panic', 'std::thread::local',
	'std::thread::Builder', 'std::thread::lifecycle', 'core::ops::function::', 'core::panic',
	'core::future::', 'alloc::boxed::', 'std::__invoke', 'std::invoke', 'std::_Function_handler',
	'std::function<', 'std::thread::_', 'tracing::instrument', '<?core::pin::Pin', '<alloc::boxed::Box',
	'<core::panic', '<std::panic', '<tracing::instrument', '<?futures_util::future', '__libc_start',
	'_start$', 'start_thread$', 'clone3?$', '__clone', 'thread_start', 'runtime\\.(goexit|main|mcall|call)',
	'std::thread::Thread', '__rust_begin_short_backtrace', 'lang_start', 'main::\\{\\{closure\\}\\}$',
].join('|') + ')|__rust_begin_short_backtrace|catch_unwind|::call_once');
const ALLOCATOR = new RegExp('^(' + [
	'(_rjem_|je_|mi_|tc_)?(m|c|re)alloc', '_int_(malloc|free|realloc)', 'sysmalloc', '_?_?libc_malloc',
	'__libc_(malloc|calloc|realloc|free|memalign)', 'malloc_consolidate', '_rjem_', 'je_',
	'__rustc?_?alloc', '__rust_(re|de)?alloc', '__rdl_', '__rg_', 'alloc::alloc::', 'alloc::raw_vec::',
	'operator new', 'operator delete', 'std::allocator', 'std::__new_allocator',
	'__gnu_cxx::new_allocator', '<alloc::alloc::Global', 'free$', 'cfree', 'arena_', 'tcache_',
	'mi_', 'tc_',
].join('|') + ')');

const FOLD_RUNTIME = 1, FOLD_ALLOCATOR = 2;

function foldKinds(tree) {
	const kind = new Uint8Array(tree.nrSyms);
	for (let s = 0; s < tree.nrSyms; s++) {
		const name = tree.name[s];
		if (name[0] === '[' || tree.symFlags[s] & 1) /* kernel and synthetic frames */
			continue;
		kind[s] = RUNTIME.test(name) ? FOLD_RUNTIME : ALLOCATOR.test(name) ? FOLD_ALLOCATOR : 0;
	}
	return kind;
}

/* Open addressing: (parent, symbol) -> node. */
function Children(n) {
	let size = 1024;
	while (size < 2 * n)
		size *= 2;
	this.mask = size - 1;
	this.parent = new Uint32Array(size);
	this.sym = new Uint32Array(size);
	this.node = new Uint32Array(size);
}
/* Returns the slot of the pair; its node is 0 if it is new. */
Children.prototype.slot = function (parent, sym) {
	let h = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(sym + 1, 0x85ebca6b)) >>> 0;
	h = (h ^ h >>> 15) & this.mask;
	while (this.node[h] && (this.parent[h] !== parent || this.sym[h] !== sym))
		h = (h + 1) & this.mask;
	return h;
};

/*
 * Makes a tree from that of the page: runtime frames folded, stacks without hidden functions, or only
 * the part below one function. A node of it has a parent with a smaller number.
 *
 * of[i]: node of the new tree that node i belongs to, -1: left out.
 */
function derive(P, how) {
	const T = P.tree, n = T.n, kinds = how.folds ? P.foldKinds : null;
	const hash = new Children(n), of = new Int32Array(n);
	const d = {parent: new Uint32Array(n), sym: new Uint32Array(n), depth: new Uint32Array(n),
		first: new Uint32Array(n), next: new Uint32Array(n), inner: [], n: 1, of: of};
	const open = how.opened || new Set();

	function child(parent, sym) {
		const h = hash.slot(parent, sym);
		if (hash.node[h])
			return hash.node[h];
		const id = d.n++;
		hash.parent[h] = parent;
		hash.sym[h] = sym;
		hash.node[h] = id;
		d.parent[id] = parent;
		d.sym[id] = sym;
		d.depth[id] = d.depth[parent] + 1;
		d.next[id] = d.first[parent];
		d.first[parent] = id;
		return id;
	}

	const OUTSIDE = -2; /* above the function that the tree begins with */
	of[0] = how.root === null ? 0 : OUTSIDE;
	for (let i = 1; i < n; i++) {
		const s = T.sym[i];
		let p = of[T.parent[i]];
		if (p === -1 || how.hidden[s]) {
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
		const kind = kinds && s !== how.root ? kinds[s] : 0;
		if (!kind || open.has(s)) {
			of[i] = child(p, s);
			continue;
		}
		const fold = T.nrSyms + kind - 1;
		of[i] = d.sym[p] === fold && p ? p : child(p, fold);
	}
	for (let i = 0; i < n; i++)
		if (of[i] === OUTSIDE)
			of[i] = -1;
	return d;
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
	return {self: self, total: totals(self, d.parent), count: totals(count, d.parent),
		selfCount: count};
}

/*
 * The two trees around one function: its callees below it (from derive with root), and its callers,
 * the function at the root, each caller below. Weights of recursive calls count once.
 */
function callersTree(P, w, total, root) {
	const T = P.tree, n = T.n, hash = new Children(n);
	const d = {parent: [0, 0], sym: [0, root], depth: [0, 1], first: [0, 0], next: [0, 0], n: 2,
		self: [0, 0], count: [0, 0]};
	d.first[0] = 1;
	let skip = 0;
	for (let i = 1; i < n; i++) {
		if (i < skip || T.sym[i] !== root)
			continue;
		skip = T.end[i];
		if (!total[i])
			continue;
		let at = 1;
		for (let p = T.parent[i]; p > 0; p = T.parent[p]) {
			const h = hash.slot(at, T.sym[p]);
			if (!hash.node[h]) {
				const id = d.n++;
				hash.parent[h] = at;
				hash.sym[h] = T.sym[p];
				hash.node[h] = id;
				d.parent.push(at);
				d.sym.push(T.sym[p]);
				d.depth.push(d.depth[at] + 1);
				d.next.push(d.first[at]);
				d.first.push(0);
				d.self.push(0);
				d.first[at] = id;
			}
			at = hash.node[h];
		}
		d.self[at] += total[i];
	}
	const weights = {self: Float64Array.from(d.self)};
	weights.total = totals(weights.self, d.parent);
	return {tree: d, weights: weights};
}

/* ---- by function -------------------------------------------------------------------------------- */

/* Self and total of each symbol; a recursive function counts once. */
function byFunction(P, w, skips) {
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
		if (!onPath[s]) {
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
function neighbours(P, total, sym) {
	const T = P.tree, up = new Map(), down = new Map();
	let skip = 0;
	for (let i = 1; i < T.n; i++) {
		if (T.sym[i] !== sym || !total[i])
			continue;
		for (let c = i + 1; c < T.end[i]; c = T.end[c])
			if (total[c] && T.sym[c] !== sym)
				down.set(T.sym[c], (down.get(T.sym[c]) || 0) + total[c]);
		if (i < skip)
			continue;
		skip = T.end[i];
		const p = T.parent[i];
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
