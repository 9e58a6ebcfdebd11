/*
 * Reads the data block of the page (format: src/render/page/pagepack.h) into P: the header, the tree
 * of all stacks (unpack.js) and the columns of each stream as typed arrays.
 */
const MAGIC = 'assay-page-2\n';

async function inflate(bytes) {
	if (bytes[0] !== 0x1f || bytes[1] !== 0x8b)
		return bytes;
	if (typeof DecompressionStream === 'undefined')
		return gunzip(bytes);
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

function decodeBase64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const raw = atob(text), out = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++)
		out[i] = raw.charCodeAt(i);
	return out;
}

function Reader(src) {
	this.src = src;
	this.at = 0;
}
Reader.prototype.uleb = function () {
	let v = 0, scale = 1, b;
	do {
		b = this.src[this.at++];
		v += (b & 127) * scale;
		scale *= 128;
	} while (b > 127);
	return v;
};
Reader.prototype.block = function () {
	const n = this.uleb(), from = this.at;
	this.at += n;
	return this.src.subarray(from, this.at);
};
/* A column of @n rows; a single value stands for all rows. */
Reader.prototype.column = function (into) {
	const src = this.src, end = this.uleb() + this.at, n = into.length;
	let i = 0, at = this.at;
	for (; at < end && i < n; i++) {
		let v = src[at++];
		if (v > 127) {
			v &= 127;
			for (let scale = 128, b = 128; b > 127; scale *= 128) {
				b = src[at++];
				v += (b & 127) * scale;
			}
		}
		into[i] = v;
	}
	if (i < n && i === 1)
		into.fill(into[0]);
	this.at = end;
	return into;
};
/* Nodes of rows: a table of nodes, then byte by byte the rows' indexes in it. */
Reader.prototype.nodes = function (into) {
	const leaves = this.column(new Uint32Array(this.uleb())), n = into.length, planes = this.block();
	for (let i = 0, last = 0; i < leaves.length; i++)
		leaves[i] = last += leaves[i] >>> 1 ^ -(leaves[i] & 1);
	if (!planes.length)
		return into.fill(leaves[0]);
	for (let p = 0; p < planes.length; p += n)
		for (let i = 0, scale = 256 ** (p / n); i < n; i++)
			into[i] += planes[p + i] * scale;
	for (let i = 0; i < n; i++)
		into[i] = leaves[into[i]];
	return into;
};

function readStream(r, head) {
	const n = head.rows, s = {head: head, n: n};
	if (head.has_times) {
		s.time = r.column(new Uint32Array(n));
		for (let i = 1; i < n; i++)
			s.time[i] += s.time[i - 1];
		s.length = r.column(new Uint32Array(n));
	}
	s.node = r.nodes(new Uint32Array(n));
	s.thread = r.column(new Uint32Array(n));
	s.count = r.column(new Float64Array(n));
	s.weight = r.column(new Float64Array(n));
	if (head.has_states) {
		s.state = r.column(new Uint8Array(n));
		s.log2 = r.column(new Uint8Array(n));
		s.object = r.column(new Uint32Array(n));
		s.waker = r.column(new Uint32Array(n));
		readShapes(r, s);
	}
	return s;
}

/* Shapes of waits: how those of a row's second were spread over it, in bins of 10 ms; 0: evenly. */
const BIN_MS = 10;
function readShapes(r, s) {
	const shape = r.column(new Uint32Array(s.n));
	let nr = 0;
	for (let i = 0; i < s.n; i++)
		shape[i] = shape[i] === 2 ? ++nr : shape[i] ? nr : 0;
	const rest = r.column(new Uint32Array(nr)), count = r.column(new Uint32Array(nr));
	const first = new Uint32Array(nr + 2), total = new Float64Array(nr + 1);
	for (let k = 1; k <= nr; k++)
		first[k + 1] = first[k] + count[k - 1];
	const bin = r.column(new Uint8Array(first[nr + 1])), weight = r.column(new Uint8Array(bin.length));
	for (let k = 1; k <= nr; k++) {
		total[k] = rest[k - 1];
		for (let i = first[k], at = 0; i < first[k + 1]; i++) {
			at = bin[i] += at;
			total[k] += weight[i];
		}
	}
	Object.assign(s, {shape: shape, rest: rest, firstBin: first, bin: bin, binWeight: weight,
		shapeTotal: total});
}

function emptyStream() {
	const none = new Uint32Array(0);
	return {n: 0, node: none, thread: none, count: none, weight: none};
}

async function readPage(text64) {
	const bytes = await inflate(decodeBase64(text64));
	const text = new TextDecoder();
	if (text.decode(bytes.subarray(0, MAGIC.length)) !== MAGIC)
		throw new Error('the data of this page are of another version');
	const r = new Reader(bytes);
	r.at = MAGIC.length;
	const head = JSON.parse(text.decode(r.block()));
	const tree = unpack(r.block());
	const streams = head.streams.map(function (s) {
		return readStream(r, s);
	});
	for (const s of streams) /* they follow all streams */
		if (s.head.has_places)
			s.place = r.column(new Uint32Array(s.n));
	const hasRows = threadsOf(head, streams), ofAxis = axisStream({head: head});
	if (!streams.length) { /* readings of memory only */
		head.streams.push({key: 'none', title: 'stacks', noun: 'samples', count_name: 'samples', report: '',
			unit: 'count', slice_ms: 0, rows: 0, has_times: false, has_states: false});
		streams.push(Object.assign(emptyStream(), {head: head.streams[0]}));
	}
	return {head: head, tree: tree, streams: streams, metrics: metricsOf(head, streams),
		groups: groupsOf(head, ofAxis < 0 ? hasRows : threadsOf(head, [streams[ofAxis]])), hasRows: hasRows,
		rowsOf: streams.map((s) => threadsOf(head, [s]))};
}

/* By thread: 1 if it has rows. Others only ended waits. */
function threadsOf(head, streams) {
	const has = new Uint8Array(head.threads.length);
	for (const s of streams)
		for (let i = 0; i < s.n; i++)
			has[s.thread[i]] = 1;
	has[0] = 0;
	return has;
}

/*
 * What the page can add up. Thread time is one stream with three metrics: all of it, the part on a
 * CPU, the part in waits.
 */
function metricsOf(head, streams) {
	const out = [];
	streams.forEach(function (s, i) {
		const h = s.head;
		const base = {stream: i, unit: h.unit, noun: h.noun, countName: h.count_name,
			report: h.report, states: 'all', isSampled: h.noun === 'samples',
			hasTimes: h.has_times, hasStates: h.has_states, sliceMs: h.slice_ms,
			isMemory: h.unit === 'bytes' && !/^(io|block|reclaim)$/.test(h.key)};
		const add = function (key, title, more) {
			out.push(Object.assign({}, base, {key: key, title: title}, more));
		};
		if (!h.has_states) {
			add(h.key, h.title, {});
			return;
		}
		add(h.key, h.key === 'thread-time' ? 'thread time' : h.title, {});
		if (h.key === 'thread-time') {
			add('on-cpu', 'time on CPU', {states: 'cpu', noun: 'samples', isSampled: true});
			add('waits', 'waiting time', {states: 'waits', noun: 'waits', report: '-e off-cpu'});
		}
	});
	return out;
}

/*
 * Threads whose names differ only in digits are one group, as in `assay report`. If there are few
 * threads, each is a group.
 */
const SINGLE_MAX = 15;
function groupsOf(head, hasRows) {
	const index = new Map(), groups = [], of = new Uint32Array(head.threads.length);
	const put = function (t, group) {
		if (!index.has(group.name)) {
			index.set(group.name, groups.length);
			groups.push(Object.assign(group, {threads: []}));
		}
		of[t] = index.get(group.name);
		groups[of[t]].threads.push(t);
	};
	const isFew = hasRows.reduce((sum, v) => sum + v, 0) <= SINGLE_MAX, used = new Map();
	head.threads.forEach((t, i) => used.set(t[3], (used.get(t[3]) || 0) + hasRows[i]));
	head.threads.forEach(function ([, tid, name, group], i) {
		const isOne = isFew && tid && hasRows[i] && used.get(group) > 1;
		put(i, isOne ? {name: name + ' ' + tid, tid: tid} : {name: group || '[no thread]'});
	});
	groups.forEach(function (g) {
		const name = g.threads.length && head.threads[g.threads[0]][2] || g.name;
		g.title = g.tid ? g.name : g.threads.length > 1 ? g.name + ' ×' + g.threads.length : name;
	});
	return {list: groups, of: of};
}
