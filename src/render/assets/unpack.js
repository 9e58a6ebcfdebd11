/*
 * Decodes the packed tree of src/render/flame.h: base64, gzip, columns. Part of the single script of
 * an SVG file, before flame.js; the writer wraps both into a function.
 *
 * Decodes synchronously, so that the graph is complete when its file has been read, and without
 * DecompressionStream, which older browsers do not have.
 */
var PACK_DIFF = 1, PACK_NORMALISED = 2, PACK_REVERSED = 4, PACK_BIG = 8; /* enum flame_pack_flags */

function bytes_from_base64(text) {
	var raw = atob(text.replace(/\s+/g, ''));
	var out = new Uint8Array(raw.length);
	for (var i = 0; i < raw.length; i++)
		out[i] = raw.charCodeAt(i);
	return out;
}

/* Canonical Huffman decoding by code length: RFC 1951, 3.2.2. */
function huffman(lengths) {
	var count = new Uint16Array(16), offset = new Uint16Array(16);
	var symbol = new Uint16Array(lengths.length), i;
	for (i = 0; i < lengths.length; i++)
		count[lengths[i]]++;
	count[0] = 0;
	for (i = 1; i < 16; i++)
		offset[i] = offset[i - 1] + count[i - 1];
	for (i = 0; i < lengths.length; i++)
		if (lengths[i])
			symbol[offset[lengths[i]]++] = i;
	/* Lookup table for codes of up to 10 bits: symbol << 4 | length. */
	var fast = new Uint16Array(1024), code = 0, at = 0;
	for (var len = 1; len <= 10; len++, code <<= 1) {
		for (i = 0; i < count[len]; i++, code++, at++) {
			var rev = 0;
			for (var b = 0; b < len; b++)
				rev |= (code >> b & 1) << (len - 1 - b);
			for (; rev < 1024; rev += 1 << len)
				fast[rev] = symbol[at] << 4 | len;
		}
	}
	return {count: count, symbol: symbol, fast: fast};
}

var LENGTH_BASE = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83,
	99, 115, 131, 163, 195, 227, 258];
var LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5,
	5, 0];
var DIST_BASE = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769,
	1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
var DIST_BITS = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11,
	12, 12, 13, 13];
var CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/* Decompresses gzip as assay writes it: a ten byte header, deflate, CRC, size. */
function gunzip(src) {
	var size = src.length;
	var out = new Uint8Array((src[size - 4] | src[size - 3] << 8 | src[size - 2] << 16 |
		src[size - 1] << 24) >>> 0);
	var at = 10, to = 0, bits = 0, nr = 0;

	function take(n) {
		while (nr < n) {
			bits |= src[at++] << nr;
			nr += 8;
		}
		var v = bits & ((1 << n) - 1);
		bits >>>= n;
		nr -= n;
		return v;
	}
	function decode(h) {
		while (nr < 15 && at < size) {
			bits |= src[at++] << nr;
			nr += 8;
		}
		var hit = h.fast[bits & 1023];
		if (hit) {
			bits >>>= hit & 15;
			nr -= hit & 15;
			return hit >> 4;
		}
		var code = 0, first = 0, index = 0;
		for (var len = 1; len < 16; len++) {
			code |= take(1);
			var count = h.count[len];
			if (code - count < first)
				return h.symbol[index + code - first];
			index += count;
			first = (first + count) << 1;
			code <<= 1;
		}
		throw new Error('bad deflate code');
	}
	function tables() {
		var nlen = take(5) + 257, ndist = take(5) + 1, ncode = take(4) + 4;
		var lengths = new Uint8Array(320), i;
		for (i = 0; i < ncode; i++)
			lengths[CODE_ORDER[i]] = take(3);
		var h = huffman(lengths.subarray(0, 19));
		lengths = new Uint8Array(320);
		for (i = 0; i < nlen + ndist;) {
			var s = decode(h);
			if (s < 16) {
				lengths[i++] = s;
				continue;
			}
			var prev = s === 16 ? lengths[i - 1] : 0;
			var n = s === 16 ? 3 + take(2) : s === 17 ? 3 + take(3) : 11 + take(7);
			while (n--)
				lengths[i++] = prev;
		}
		return [huffman(lengths.subarray(0, nlen)),
			huffman(lengths.subarray(nlen, nlen + ndist))];
	}
	function fixed() {
		var l = new Uint8Array(288).fill(8, 0, 144).fill(9, 144, 256).fill(7, 256, 280)
			.fill(8, 280);
		return [huffman(l), huffman(new Uint8Array(30).fill(5))];
	}
	function stored() {
		at -= nr >> 3;
		bits = nr = 0;
		var n = src[at] | src[at + 1] << 8;
		out.set(src.subarray(at + 4, at + 4 + n), to);
		at += 4 + n;
		to += n;
	}
	for (var isLast = 0; !isLast;) {
		isLast = take(1);
		var type = take(2);
		if (type === 0) {
			stored();
			continue;
		}
		var h = type === 1 ? fixed() : tables();
		for (;;) {
			var s = decode(h[0]);
			if (s < 256) {
				out[to++] = s;
				continue;
			}
			if (s === 256)
				break;
			s -= 257;
			var len = LENGTH_BASE[s] + take(LENGTH_BITS[s]);
			var d = decode(h[1]);
			var from = to - DIST_BASE[d] - take(DIST_BITS[d]);
			while (len--)
				out[to++] = out[from++];
		}
	}
	return out;
}

/* Reads the tree into columns in preorder; end[i] is the index after the last node of i's subtree. */
function unpack(src) {
	var at = 0;

	function uleb() {
		var v = 0, scale = 1, b;
		do {
			b = src[at++];
			v += (b & 127) * scale;
			scale *= 128;
		} while (b > 127);
		return v;
	}
	function ulebBig() {
		var v = BigInt(0), shift = BigInt(0), b;
		do {
			b = src[at++];
			v |= BigInt(b & 127) << shift;
			shift += BigInt(7);
		} while (b > 127);
		return v;
	}
	function column(into) {
		var end = uleb();
		end += at;
		for (var i = 0; at < end; i++)
			into[i] = src[at] < 128 ? src[at++] : uleb();
		return into;
	}
	function bigs(n) {
		var end = uleb(), into = new BigUint64Array(n);
		end += at;
		for (var i = 0; at < end; i++)
			into[i] = ulebBig();
		return into;
	}

	if (uleb() !== 1)
		throw new Error('unknown version of the packed tree');
	var t = {flags: uleb(), symHash: []};
	var nrNames = uleb(), nrModules = uleb(), nrSyms = uleb(), n = t.n = uleb();
	var textBytes = uleb(), i;
	var lines = new TextDecoder().decode(src.subarray(at, at + textBytes)).split('\n');
	at += textBytes;
	t.name = new Array(nrSyms);
	t.module = new Array(nrSyms);
	t.symFlags = new Uint8Array(nrSyms);
	t.color = new Uint8Array(nrSyms);
	t.nrSyms = nrSyms;
	for (i = 0; i < nrSyms; i++) {
		t.name[i] = lines[uleb()];
		t.module[i] = lines[nrNames + uleb()];
		t.symFlags[i] = uleb();
		t.color[i] = uleb();
	}
	var up = column(new Uint32Array(n));
	t.sym = column(new Uint32Array(n));
	t.isBig = (t.flags & PACK_BIG) !== 0;
	t.isDiff = (t.flags & PACK_DIFF) !== 0;
	t.isReversed = (t.flags & PACK_REVERSED) !== 0;
	if (t.isBig) {
		t.exact = bigs(n);
		t.self = Float64Array.from(t.exact, Number);
		t.beforeSelf = Float64Array.from(bigs(n), Number);
	} else {
		t.self = column(new Float64Array(n));
		t.beforeSelf = column(new Float64Array(t.isDiff ? n : 0));
	}
	link(t, up);
	return t;
}

function link(t, up) {
	var n = t.n, i, d = 0;
	t.parent = new Int32Array(n);
	t.depth = new Uint32Array(n);
	t.end = new Uint32Array(n).fill(n);
	var open = [0];
	for (i = 1; i < n; i++) {
		for (var k = up[i]; k > 0; k--)
			t.end[open[d--]] = i;
		t.parent[i] = open[d];
		open[++d] = i;
		t.depth[i] = d;
	}
	t.total = t.self.slice();
	t.before = t.beforeSelf.slice();
	for (i = n - 1; i > 0; i--) {
		t.total[t.parent[i]] += t.total[i];
		if (t.isDiff)
			t.before[t.parent[i]] += t.before[i];
		if (t.isBig)
			t.exact[t.parent[i]] += t.exact[i];
	}
	t.width = t.total;
	if (t.isDiff)
		compare(t);
}

/* As in flame.c: self is the larger of before and after, colour the change of the whole subtree. */
function compare(t) {
	var isNorm = t.flags & PACK_NORMALISED && t.total[0] && t.before[0], i;
	t.scale = isNorm ? t.total[0] / t.before[0] : 1;
	t.width = new Float64Array(t.n);
	t.maxDelta = 0;
	for (i = 0; i < t.n; i++) {
		t.width[i] = Math.max(t.self[i], t.beforeSelf[i] * t.scale);
		if (i)
			t.maxDelta = Math.max(t.maxDelta,
				Math.abs(t.total[i] - t.before[i] * t.scale));
	}
	for (i = t.n - 1; i > 0; i--)
		t.width[t.parent[i]] += t.width[i];
}

/* ---- links to nodes ----------------------------------------------------------------------- */

/* A link identifies a node by the names on its path, so it remains valid for a new profile. */
function hashName(text) {
	var a = 0x811c9dc5, b = 0x1b873593;
	for (var i = 0; i < text.length; i++) {
		a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
		b = Math.imul(b ^ text.charCodeAt(i), 0x5bd1e995);
	}
	return [a, b];
}

function nextHash(t, parent, sym) {
	var h = t.symHash[sym] || (t.symHash[sym] = hashName(t.name[sym]));
	var a = Math.imul(parent[0] ^ h[0], 0x85ebca6b), b = Math.imul(parent[1] ^ h[1], 0xc2b2ae35);
	return [a ^ a >>> 15, b ^ b >>> 13];
}

function hex(h) {
	return ('0000000' + (h[0] >>> 0).toString(16)).slice(-8) +
		('0000000' + (h[1] >>> 0).toString(16)).slice(-8);
}

function pathKey(t, i) {
	var path = [], h = [0, 0];
	for (; i > 0; i = t.parent[i])
		path.push(t.sym[i]);
	while (path.length)
		h = nextHash(t, h, path.pop());
	return hex(h);
}

function nodeFromKey(t, key) {
	var at = [[0, 0]], a = parseInt(key.slice(0, 8), 16) | 0, b = parseInt(key.slice(8), 16) | 0;
	for (var i = 1; i < t.n; i++) {
		var d = t.depth[i];
		at[d] = nextHash(t, at[d - 1], t.sym[i]);
		if (at[d][0] === a && at[d][1] === b)
			return i;
	}
	return 0;
}
