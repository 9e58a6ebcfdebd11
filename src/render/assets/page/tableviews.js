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
		const b = el('button', {type: 'button', title: c.help || 'Sort by ' + (typeof c.title === 'function' ? 'it' : c.title)}, th);
		b.textContent = typeof c.title === 'function' ? '' : c.title;
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
		if (typeof this.columns[i].title === 'function')
			th.firstChild.textContent = this.columns[i].title();
	});
	this.table.hidden = !rows.length;
	this.heads.forEach((th, i) => th.setAttribute('aria-sort', i !== this.sortBy ? 'none' :
		this.isUp ? 'ascending' : 'descending'));
	const order = by ? rows.slice().sort((a, b) => {
		const x = by.value(a), y = by.value(b);
		return x < y ? -sign : x > y ? sign : 0;
	}) : rows;
	this.body.textContent = '';
	for (const row of order.slice(0, TABLE_ROWS)) {
		const tr = el('tr', {'class': this.select && this.select(row) ? 'on' : ''}, this.body);
		for (const [i, c] of this.columns.entries()) {
			if (!shown[i])
				continue;
			const td = el('td', {'class': c.isNumber ? 'num' : c.isKey ? 'key' : ''}, tr);
			if (c.bar)
				el('span', {'class': 'bar'}, td).style.width =
					Math.max(0, Math.min(100, c.bar(row))) + '%';
			const text = c.text(row);
			if (c.title_of)
				td.title = c.title_of(row);
			if (c.color)
				el('span', {'class': 'dot'}, td).style.background = c.color(row);
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
	const T = app.P.tree, unit = () => app.metricNow().unit;
	this.app = app;
	this.box = el('div', {'class': 'tables'}, parent);
	this.note = el('p', {'class': 'quiet'}, this.box);
	const share = (v) => percentText(v, this.sum);
	this.table = new Table(this.box, [
		{title: 'self', isNumber: true, isSorted: true, value: (s) => this.f.self[s],
			text: (s) => share(this.f.self[s]), bar: (s) => 100 * this.f.self[s] / this.sum,
			help: 'Share that is spent in the function itself'},
		{title: '±', isNumber: true, value: (s) => this.f.count[s],
			text: (s) => errorText(this.f.count[s], this.count).slice(1),
			isHidden: () => !app.metricNow().isSampled,
			help: 'Half width of the 95 % interval of self, in percentage points'},
		{title: 'amount', isNumber: true, value: (s) => this.f.self[s],
			text: (s) => amountText(this.f.self[s], unit()), help: 'Self, in the unit of the metric'},
		{title: 'total', isNumber: true, value: (s) => this.f.total[s],
			text: (s) => share(this.f.total[s]), bar: (s) => 100 * this.f.total[s] / this.sum,
			help: 'Share of the function and what it calls'},
		{title: 'amount', isNumber: true, value: (s) => this.f.total[s],
			text: (s) => amountText(this.f.total[s], unit()), help: 'Total, in the unit of the metric'},
		{title: () => app.metricNow().noun, isNumber: true, value: (s) => this.f.totalCount[s],
			text: (s) => grouped(this.f.totalCount[s]), help: 'Behind the total'},
		{title: 'function', isLink: true, value: (s) => T.name[s], title_of: (s) => T.name[s],
			text: (s) => shortName(T.name[s], 70), color: (s) => cssColor(
				app.P.head.colors[T.color[s]][darkMode() ? 1 : 0])},
		{title: 'module', value: (s) => T.module[s], text: (s) => shortName(T.module[s], 28),
			title_of: (s) => T.module[s]},
	], onDetails);
}

FunctionsView.prototype.draw = function () {
	const app = this.app, T = app.P.tree, m = app.metricNow();
	const re = app.search ? compileSearch(app.search) : null;
	this.f = app.model.functions;
	if (!this.f)
		return;
	this.sum = app.shownSum();
	this.count = app.model.sums.samples;
	const rows = [];
	for (let s = 0; s < T.nrSyms; s++)
		if (this.f.total[s] > 0 && (!re || re.test(T.name[s])))
			rows.push(s);
	this.note.textContent = m.isSampled && this.count < 100 ?
		countText(this.count, 'samples') + ': too few for shares; record longer or at a higher rate.' :
		countText(rows.length, 'functions') + (re && rows.length === 1 ? ' that matches' : re ? ' that match' : '') + ', ' +
		countText(this.count, m.noun) + '.';
	this.table.select = (s) => s === app.selected;
	this.table.fill(rows);
};

/* ---- waits -------------------------------------------------------------------------------------- */

/* "thread in function" with a short function. */
function shortWaker(text) {
	const at = text.indexOf(' in ');
	return at < 0 ? text : text.slice(0, at + 4) + shortName(text.slice(at + 4), 32);
}

/* What ended waits, with its part: of a lock, its holders. */
function wakersText(P, g) {
	return g.wakers.filter(([text, ns]) => ns >= 0.02 * g.ns && P.head.texts[text] !== '[not seen]').map(([text, ns]) => shortWaker(P.head.texts[text]) +
		(g.wakers.length > 1 || ns < 0.95 * g.ns ? ' ' + percentText(ns, g.ns) : '')).join(', ');
}

function WaitsView(app, parent) {
	const P = app.P, states = P.head.states;
	this.app = app;
	this.box = el('div', {'class': 'tables'}, parent);
	this.isShown = waitMetric(P) >= 0;
	this.note = el('p', {'class': 'quiet'}, this.box);
	if (!this.isShown)
		return;
	const help = 'Interpolated within buckets of powers of two; of the whole seconds that the range touches; ' +
		'-: no wait of known length ended in them';
	const columns = (last) => [
		{title: 'time', isNumber: true, isSorted: true, value: (g) => g.ns,
			text: (g) => timeText(g.ns), bar: (g) => 100 * g.ns / this.sum},
		{title: 'share', isNumber: true, value: (g) => g.ns, text: (g) => percentText(g.ns, this.sum)},
		{title: 'waits', isNumber: true, value: (g) => g.n, text: (g) => grouped(g.n)},
		{title: 'mean', isNumber: true, value: (g) => g.ns / (g.n || 1),
			text: (g) => g.n ? timeText(g.ns / g.n) : ''},
		{title: 'p50', isNumber: true, value: (g) => g.p50, text: (g) => quantileText(g.p50),
			help: help},
		{title: 'p99', isNumber: true, value: (g) => g.p99, text: (g) => quantileText(g.p99),
			help: help},
	].concat(last);
	const pick = (g) => app.set({state: app.state === g.state ? null : g.state, selected: -1});
	const reason = {title: 'reason', isLink: true, isKey: true, value: (g) => states[g.state][1],
		text: (g) => states[g.state][1], color: (g) => cssColor(states[g.state][darkMode() ? 4 : 3])};
	const object = (title) => ({title: title, value: (g) => P.head.texts[g.text],
		text: (g) => shortPath(P.head.texts[g.text], 60), title_of: (g) => P.head.texts[g.text]});
	const ended = (title) => ({title: title, value: (g) => g.wakers.length ? g.wakers[0][1] : 0,
		text: (g) => wakersText(P, g), title_of: (g) => wakersText(P, g)});
	this.sections = [
		['Reasons', columns([reason, ended('ended by')]), (w) => w.reason],
		['Locks', columns([object('lock'), ended('woken by, in (who released it last)')]),
			(w) => w.object.filter((g) => /^(lock|sync)$/.test(states[g.state][0]))],
		['Files, sockets and other objects', columns([reason, object('object')]),
			(w) => w.object.filter((g) => !/^(lock|sync)$/.test(states[g.state][0]))],
		['What ended waits', columns([object('thread and function')]), (w) => w.waker],
	].map(([title, cols, rows]) => {
		const box = el('section', {}, this.box);
		el('h3', {}, box).textContent = title;
		return {box: box, rows: rows, table: new Table(box, cols, pick)};
	});
}

WaitsView.prototype.draw = function () {
	const w = this.app.model.waits;
	if (!this.isShown) {
		this.note.textContent = 'This recording has no waits. Record them with assay offcpu.';
		return;
	}
	if (!w)
		return;
	this.sum = w.reason.reduce((sum, g) => sum + g.ns, 0);
	this.note.textContent = !this.sum ? 'No waits in the selection' + (w.idle ? ' but ' +
		timeText(w.idle) + ' of idle time, which is hidden.' : '.') :
		timeText(this.sum) + ' of waiting in the selection' + (w.idle ? '; ' + timeText(w.idle) +
		' of idle time is hidden.' : '.') +
		(this.app.cutSeconds() ? ' Parts of seconds are estimates; p50 and p99 are of whole seconds.' : '');
	for (const s of this.sections) {
		const rows = s.rows(w);
		s.box.hidden = !rows.length;
		s.table.select = (g) => g.state >= 0 && g.state === this.app.state;
		s.table.fill(rows);
	}
};

/* ---- memory --------------------------------------------------------------------------------------- */

function MemoryView(app, parent) {
	this.app = app;
	this.box = el('div', {'class': 'tables'}, parent);
}

MemoryView.prototype.draw = function () {
	const app = this.app, P = app.P, list = app.model.memory;
	if (!list)
		return;
	if (this.drawnFrom === list) {
		this.drawChart();
		return;
	}
	this.drawnFrom = list;
	this.box.textContent = '';
	if (!P.head.series.length && !list.length) {
		el('p', {'class': 'quiet'}, this.box).textContent =
			'This recording has no memory. Record it with assay heap or assay watch.';
		return;
	}
	for (const [k, s] of P.head.series.entries()) {
		const p = el('p', {}, this.box), n = s.value.length;
		el('span', {'class': 'dot'}, p).style.background = seriesColor(k);
		p.append(s.title + ': ' + bytesText(s.value[0]) + ' at the start, ' + bytesText(s.value[n - 1]) +
			' at the end, peak ' + bytesText(s.value.reduce((a, b) => Math.max(a, b), 0)) + ', ' +
			grouped(n) + ' readings');
	}
	this.canvas = P.head.series.length ? el('canvas', {role: 'img', 'aria-label': 'Memory over time'},
		this.box) : null;
	this.drawChart();
	for (const part of list)
		this.drawMetric(part);
};

/* Memory over time, from 0, with the selected range. */
MemoryView.prototype.drawChart = function () {
	const P = this.app.P, list = P.head.series, end = P.head.duration_ms, r = this.app.range;
	if (!this.canvas || !end)
		return;
	const W = Math.max(240, this.box.clientWidth), H = 220, x0 = 70, y0 = H - 20, c = fitCanvas(this.canvas, W, H);
	const css = getComputedStyle(this.box), color = (name) => css.getPropertyValue('--' + name).trim();
	const peak = Math.max(1, ...list.map((s) => s.value.reduce((a, b) => Math.max(a, b), 0)));
	const step = 2 ** Math.ceil(Math.log2(peak / 5)), top = Math.ceil(peak / step) * step;
	const x = (t) => x0 + (W - x0 - 8) * t / end, y = (v) => y0 - (y0 - 8) * v / top;
	c.clearRect(0, 0, W, H);
	c.font = '11px ' + css.fontFamily;
	c.textBaseline = 'middle';
	if (r) {
		c.fillStyle = color('panel');
		c.fillRect(x(r[0]), 8, x(r[1]) - x(r[0]), y0 - 8);
	}
	for (let v = 0; v <= top; v += step) {
		c.fillStyle = color('line');
		c.fillRect(x0, Math.round(y(v)), W - x0 - 8, 1);
		c.fillStyle = color('soft');
		c.textAlign = 'right';
		c.fillText(v ? bytesText(v) : '0', x0 - 8, y(v));
	}
	c.textAlign = 'left';
	c.fillText('0 s', x0, H - 7);
	c.textAlign = 'right';
	c.fillText(axisText(end, end / 100), W - 8, H - 7);
	list.forEach((s, k) => {
		c.strokeStyle = seriesColor(k);
		c.lineWidth = 2;
		c.lineJoin = 'round';
		c.beginPath();
		s.time_ms.forEach((t, i) => c.lineTo(x(t), y(s.value[i])));
		c.stroke();
	});
};

MemoryView.prototype.drawMetric = function (part) {
	const app = this.app, P = app.P, T = P.tree, m = P.metrics[part.metric], head = el('h3', {}, this.box);
	const b = el('button', {type: 'button', 'class': 'link', title: 'Show it in the flame graph'}, head);
	b.textContent = m.title + ': ' + bytesText(part.sum);
	b.addEventListener('click', () => app.set({metric: part.metric, view: 'flame', zoom: 0}));
	if (!m.hasTimes && app.range)
		el('p', {'class': 'quiet'}, this.box).textContent =
			'Without times: of the whole capture, not of the selected range.';
	if (!part.rows.length) {
		el('p', {'class': 'quiet'}, this.box).textContent = 'None in the selection.';
		return;
	}
	new Table(this.box, [
		{title: 'bytes', isNumber: true, isSorted: true, value: (r) => r[1],
			text: (r) => bytesText(r[1]), bar: (r) => 100 * r[1] / part.sum},
		{title: 'share', isNumber: true, value: (r) => r[1], text: (r) => percentText(r[1], part.sum)},
		{title: m.noun, isNumber: true, value: (r) => r[2], text: (r) => grouped(r[2])},
		{title: 'allocating function', isLink: true, value: (r) => T.name[r[0]],
			title_of: (r) => T.name[r[0]], text: (r) => shortName(T.name[r[0]], 80)},
		{title: 'module', value: (r) => T.module[r[0]], text: (r) => shortName(T.module[r[0]], 28)},
	], (r) => app.set({metric: part.metric, selected: r[0]})).fill(part.rows);
	if (part.nrRows > part.rows.length)
		el('p', {'class': 'quiet'}, this.box).textContent = 'and ' +
			grouped(part.nrRows - part.rows.length) + ' more, in Functions';
};

/* ---- tables of the first page ------------------------------------------------------------------- */

const FEW_ROWS = 10;
/* The report's tables as they are: files, devices, mappings, latencies. Cells are text; one unit a column. */
function TablesView(app, parent) {
	this.app = app;
	this.box = el('div', {'class': 'tables'}, parent);
}

TablesView.prototype.draw = function () {
	const app = this.app;
	if (this.search === app.search)
		return;
	this.search = app.search;
	this.box.textContent = '';
	el('p', {'class': 'quiet'}, this.box).textContent = 'Of the whole recording, whatever is selected above.';
	const links = el('p', {'class': 'legend'}, this.box);
	for (const t of app.P.head.tables) {
		const box = this.drawTable(t);
		if (!box)
			continue;
		const b = el('button', {type: 'button', 'class': 'chip'}, links);
		b.textContent = t.title;
		b.addEventListener('click', () => box.scrollIntoView());
	}
};

TablesView.prototype.drawTable = function (t) {
	const re = this.search ? compileSearch(this.search) : null;
	const rows = t.rows.filter((r) => !re || r.some((text, i) => !t.columns[i][1] && re.test(text)));
	const number = (text) => {
		const v = parseFloat(text.replace(/[<,]/g, ''));
		return isNaN(v) ? -Infinity : v;
	};
	if (!rows.length)
		return null;
	const box = el('section', {}, this.box), nr = t.rows_total, shown = rows.length - (re ? 0 : t.nr_sums);
	el('h3', {}, box).textContent = t.title + (shown < nr && (re || rows.length < nr) ? ': ' + grouped(shown) + ' of ' + grouped(nr) : '');
	if (t.note)
		el('p', {'class': 'quiet'}, box).textContent = t.note;
	const table = new Table(box, t.columns.map(([title, isNumber, isProse, help], i) => ({title: title || 'of',
		isNumber: isNumber, help: help, value: (r) => isNumber ? number(r[i]) : r[i], title_of: (r) => r[i],
		text: (r) => isNumber || isProse ? r[i] : /^\/|\/.*\//.test(r[i]) && !/::/.test(r[i]) ? shortPath(r[i], 70) :
			shortName(r[i], 70)})));
	table.table.className = 'own';
	const few = rows.length > FEW_ROWS + 3 && !re;
	table.fill(few ? rows.slice(0, FEW_ROWS) : rows);
	if (few) {
		const more = el('button', {type: 'button'}, box);
		more.textContent = 'All ' + rows.length + ' rows';
		more.addEventListener('click', () => {
			more.remove();
			table.fill(rows);
		});
	}
	return box;
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
};
