/* The views that are tables: functions, waits, memory, about. All numbers are of the selection. */
const TABLE_ROWS = 200;

/*
 * A table that sorts by its heads. columns: {title, text(row), value(row), isNumber, help}; rows are
 * any values. Keeps its sort order when it is drawn again.
 */
function Table(parent, columns, onPick) {
	this.columns = columns;
	this.onPick = onPick;
	this.sortBy = columns.findIndex((c) => c.isSorted);
	this.isUp = false;
	this.table = el('table', {}, parent);
	const head = el('tr', {}, el('thead', {}, this.table));
	this.heads = columns.map((c, i) => {
		const th = el('th', {scope: 'col', 'class': c.isNumber ? 'num' : ''}, head);
		const b = el('button', {type: 'button', title: c.help || 'Sort by ' + c.title}, th);
		b.textContent = c.title;
		b.addEventListener('click', () => {
			this.isUp = this.sortBy === i ? !this.isUp : !c.isNumber;
			this.sortBy = i;
			this.fill(this.rows);
		});
		return th;
	});
	this.body = el('tbody', {}, this.table);
	this.more = el('p', {'class': 'quiet'}, parent);
}

Table.prototype.fill = function (rows) {
	const by = this.columns[this.sortBy], sign = this.isUp ? 1 : -1;
	this.rows = rows;
	const shown = this.columns.map((c) => !c.isHidden || !c.isHidden());
	this.heads.forEach((th, i) => {
		th.hidden = !shown[i];
	});
	this.heads.forEach((th, i) => th.setAttribute('aria-sort', i !== this.sortBy ? 'none' :
		this.isUp ? 'ascending' : 'descending'));
	const order = by ? rows.slice().sort((a, b) => {
		const x = by.value(a), y = by.value(b);
		return x < y ? -sign : x > y ? sign : 0;
	}) : rows;
	this.body.textContent = '';
	for (const row of order.slice(0, TABLE_ROWS)) {
		const tr = el('tr', {}, this.body);
		for (const [i, c] of this.columns.entries()) {
			if (!shown[i])
				continue;
			const td = el('td', {'class': c.isNumber ? 'num' : ''}, tr);
			if (c.bar)
				el('span', {'class': 'bar'}, td).style.width =
					Math.max(0, Math.min(100, c.bar(row))) + '%';
			const text = c.text(row);
			if (c.title_of)
				td.title = c.title_of(row);
			if (c.isLink) {
				const b = el('button', {type: 'button', 'class': 'link'}, td);
				b.textContent = text;
				b.addEventListener('click', () => this.onPick(row));
			} else {
				td.append(text);
			}
		}
	}
	this.more.textContent = rows.length > TABLE_ROWS ?
		'The first ' + TABLE_ROWS + ' of ' + grouped(rows.length) + ' rows; search finds the others.' : '';
};

/* ---- functions ------------------------------------------------------------------------------------ */

function FunctionsView(app, parent, onDetails) {
	const T = app.P.tree;
	this.app = app;
	this.box = el('div', {'class': 'tables'}, parent);
	this.note = el('p', {'class': 'quiet'}, this.box);
	const share = (v) => percentText(v, this.sum);
	const error = (row, which) => app.metricNow().isSampled ? errorText(which[row], this.count) : '';
	this.table = new Table(this.box, [
		{title: 'self', isNumber: true, isSorted: true, value: (s) => this.f.self[s],
			text: (s) => share(this.f.self[s]), bar: (s) => 100 * this.f.self[s] / this.sum,
			help: 'in the function itself'},
		{title: '±', isNumber: true, value: (s) => this.f.count[s],
			text: (s) => error(s, this.f.count), isHidden: () => !app.metricNow().isSampled,
			help: 'half width of the 95 % interval, in percentage points'},
		{title: 'total', isNumber: true, value: (s) => this.f.total[s],
			text: (s) => share(this.f.total[s]), help: 'in the function and what it calls'},
		{title: 'amount', isNumber: true, value: (s) => this.f.total[s],
			text: (s) => amountText(this.f.total[s], app.metricNow().unit)},
		{title: 'rows', isNumber: true, value: (s) => this.f.totalCount[s],
			text: (s) => grouped(this.f.totalCount[s]),
			help: 'samples, waits or calls behind the total'},
		{title: 'function', isLink: true, value: (s) => T.name[s], title_of: (s) => T.name[s],
			text: (s) => shortName(T.name[s], 70)},
		{title: 'module', value: (s) => T.module[s], text: (s) => T.module[s]},
	], onDetails);
}

FunctionsView.prototype.draw = function () {
	const app = this.app, T = app.P.tree, m = app.metricNow();
	const re = app.search ? compileSearch(app.search) : null;
	this.f = app.functionsNow();
	this.sum = app.shownSum();
	this.count = app.sumsNow().samples;
	const rows = [];
	for (let s = 0; s < T.nrSyms; s++)
		if (this.f.total[s] > 0 && (!re || re.test(T.name[s])))
			rows.push(s);
	this.note.textContent = m.isSampled && this.count < 100 ?
		grouped(this.count) + ' samples: too few for shares; record longer or at a higher rate.' :
		grouped(rows.length) + ' functions' + (re ? ' that match' : '') + ', ' +
		grouped(this.count) + ' ' + m.noun + '.';
	this.table.fill(rows);
};

/* ---- waits -------------------------------------------------------------------------------------- */

/*
 * Quantile of durations from counts and sums by floor(log2(ns)), interpolated within a bucket so that
 * its mean is kept, as analyze/wait/quantile.c does.
 */
function quantileText(g, q) {
	const all = g.nr.reduce((sum, n) => sum + n, 0), rank = Math.max(1, Math.ceil(q * all));
	let under = 0;
	for (let k = 0; all && k < g.nr.length; k++) {
		const n = g.nr[k];
		if (under + n < rank) {
			under += n;
			continue;
		}
		if (n === 1)
			return timeText(g.sums[k]);
		const lo = k ? 2 ** k : 0, width = 2 ** (k + 1) - lo;
		const m = Math.min(0.9995, Math.max(0.0005, (g.sums[k] / n - lo) / width));
		return timeText(lo + width * ((rank - under - 0.5) / n) ** (1 / m - 1));
	}
	return '';
}

function waitStream(P) {
	return P.metrics.findIndex((m) => P.streams[m.stream].head.has_states && m.states !== 'cpu');
}

function newGroup(key) {
	return {key: key, ns: 0, n: 0, nr: new Float64Array(64), sums: new Float64Array(64)};
}

/* Sums waits of the selection by reason, object and waker. */
function sumWaits(app, onlyNodes) {
	const P = app.P, m = P.metrics[waitStream(P)], s = P.streams[m.stream];
	const by = {reason: new Map(), object: new Map(), waker: new Map()};
	const add = function (map, key, i, factor) {
		let g = map.get(key);
		if (!g)
			map.set(key, g = newGroup(key));
		g.ns += s.weight[i] * factor;
		g.n += s.count[i] * factor;
		if (s.log2[i]) {
			g.nr[s.log2[i] - 1] += s.count[i] * factor;
			g.sums[s.log2[i] - 1] += s.weight[i] * factor;
		}
	};
	const metric = Object.assign({}, m, {states: 'waits'});
	const idle = eachRow(P, app.selection(), metric, function (i, factor) {
		if (onlyNodes && !onlyNodes[s.node[i]])
			return;
		add(by.reason, s.state[i], i, factor);
		if (s.object[i])
			add(by.object, s.object[i] * 64 + s.state[i], i, factor);
		if (s.waker[i])
			add(by.waker, s.waker[i], i, factor);
	});
	return {by: by, idle: idle};
}

function WaitsView(app, parent) {
	const P = app.P, states = P.head.states;
	this.app = app;
	this.box = el('div', {'class': 'tables'}, parent);
	this.isShown = waitStream(P) >= 0;
	this.note = el('p', {'class': 'quiet'}, this.box);
	if (!this.isShown)
		return;
	const columns = (last) => [
		{title: 'time', isNumber: true, isSorted: true, value: (g) => g.ns,
			text: (g) => timeText(g.ns), bar: (g) => 100 * g.ns / this.sum},
		{title: 'share', isNumber: true, value: (g) => g.ns, text: (g) => percentText(g.ns, this.sum)},
		{title: 'waits', isNumber: true, value: (g) => g.n, text: (g) => grouped(g.n)},
		{title: 'mean', isNumber: true, value: (g) => g.ns / (g.n || 1),
			text: (g) => g.n ? timeText(g.ns / g.n) : ''},
		{title: 'p50', isNumber: true, value: (g) => g.n, text: (g) => quantileText(g, 0.5),
			help: 'interpolated within buckets of powers of two'},
		{title: 'p99', isNumber: true, value: (g) => g.n, text: (g) => quantileText(g, 0.99),
			help: 'interpolated within buckets of powers of two'},
	].concat(last);
	const section = (title) => {
		el('h3', {}, this.box).textContent = title;
		return el('div', {}, this.box);
	};
	this.reasons = new Table(section('By reason'), columns([
		{title: 'reason', isLink: true, value: (g) => states[g.key][1], text: (g) => states[g.key][1]},
	]), (g) => app.set({state: app.state === g.key ? null : g.key}));
	this.objects = new Table(section('By lock, file or socket'), columns([
		{title: 'reason', value: (g) => states[g.key % 64][1], text: (g) => states[g.key % 64][1]},
		{title: 'object', value: (g) => P.head.texts[Math.floor(g.key / 64)],
			text: (g) => P.head.texts[Math.floor(g.key / 64)]},
	]));
	this.wakers = new Table(section('By the thread that ended the wait'), columns([
		{title: 'waker', value: (g) => P.head.texts[g.key], text: (g) => P.head.texts[g.key]},
	]));
}

WaitsView.prototype.draw = function () {
	if (!this.isShown) {
		this.note.textContent = 'This recording has no waits. Record them: assay cpu --offcpu';
		return;
	}
	const {by, idle} = sumWaits(this.app, null), list = (m) => Array.from(m.values());
	this.sum = list(by.reason).reduce((sum, g) => sum + g.ns, 0);
	this.note.textContent = timeText(this.sum) + ' of waiting in the selection' +
		(idle ? '; ' + timeText(idle) + ' of idle time is not included.' : '.');
	this.reasons.fill(list(by.reason));
	this.objects.fill(list(by.object));
	this.wakers.fill(list(by.waker));
};

/* ---- memory --------------------------------------------------------------------------------------- */

function MemoryView(app, parent) {
	this.app = app;
	this.box = el('div', {'class': 'tables'}, parent);
}

MemoryView.prototype.draw = function () {
	const app = this.app, P = app.P, T = P.tree, box = this.box;
	box.textContent = '';
	const series = P.head.series;
	const metrics = P.metrics.map((m, i) => i).filter((i) => P.metrics[i].unit === 'bytes');
	if (!series.length && !metrics.length) {
		el('p', {'class': 'quiet'}, box).textContent =
			'This recording has no memory. Record it: assay heap, assay watch';
		return;
	}
	for (const s of series) {
		const first = s.value[0], last = s.value[s.value.length - 1];
		const peak = s.value.reduce((a, b) => Math.max(a, b), 0);
		el('p', {}, box).textContent = s.title + ': ' + bytesText(first) + ' at the start, ' +
			bytesText(last) + ' at the end, peak ' + bytesText(peak) + '.';
	}
	for (const i of metrics) {
		const m = P.metrics[i], w = sumRows(P, app.selection(), m), f = byFunction(P, w, null);
		const head = el('h3', {}, box), rows = [];
		const b = el('button', {type: 'button', 'class': 'link'}, head);
		b.textContent = m.title + ': ' + bytesText(w.sum);
		b.title = 'Show it in the flame graph';
		b.addEventListener('click', () => app.set({metric: i, view: 'flame', zoom: 0}));
		if (!P.streams[m.stream].time && app.range)
			el('p', {'class': 'quiet'}, box).textContent =
				'Without times: of the whole capture, not of the selected range.';
		for (let s = 0; s < T.nrSyms; s++)
			if (f.self[s] > 0)
				rows.push(s);
		rows.sort((x, y) => f.self[y] - f.self[x]);
		new Table(box, [
			{title: 'bytes', isNumber: true, value: (s) => f.self[s],
				text: (s) => bytesText(f.self[s]), bar: (s) => 100 * f.self[s] / w.sum},
			{title: 'share', isNumber: true, value: (s) => f.self[s],
				text: (s) => percentText(f.self[s], w.sum)},
			{title: 'allocating function', isLink: true, value: (s) => T.name[s],
				title_of: (s) => T.name[s], text: (s) => shortName(T.name[s], 80)},
			{title: 'module', value: (s) => T.module[s], text: (s) => T.module[s]},
		], (s) => app.set({metric: i, selected: s})).fill(rows.slice(0, 15));
	}
};

/* ---- about ---------------------------------------------------------------------------------------- */

function AboutView(app, parent) {
	this.app = app;
	this.box = el('div', {'class': 'tables'}, parent);
}

AboutView.prototype.draw = function () {
	const h = this.app.P.head, box = this.box;
	if (box.firstChild)
		return;
	el('h3', {}, box).textContent = 'Losses';
	el('pre', {}, box).textContent = h.losses_text.trim() || 'none';
	const notes = Array.from(new Set(h.sentences.concat(h.notes)));
	if (notes.length) {
		el('h3', {}, box).textContent = 'Findings and notes';
		const ul = el('ul', {}, box);
		for (const s of notes)
			el('li', {}, ul).textContent = s;
	}
	el('h3', {}, box).textContent = 'Recording';
	const dl = el('dl', {}, box);
	for (const [key, value] of h.facts) {
		el('dt', {}, dl).textContent = key;
		el('dd', {}, dl).textContent = value;
	}
	el('h3', {}, box).textContent = 'Keys';
	el('p', {}, box).textContent = '/ search, n and N next and previous match, 1 to 5 views, arrows in ' +
		'the graph, Enter zoom, Escape up, i idle time, r runtime frames, c callers of the selected ' +
		'function, x hide it, 0 reset';
};
