/* Builds the page and connects its parts. Names become text nodes only, never markup. */

/* ---- helpers -------------------------------------------------------------------------------------- */

function el(tag, attrs, parent) {
	const e = document.createElement(tag);
	for (const k in attrs)
		if (attrs[k] !== '')
			e.setAttribute(k, attrs[k]);
		else if (k === 'hidden')
			e.hidden = true;
	if (parent)
		parent.append(e);
	return e;
}

let darkQuery = null;
function darkMode() {
	const own = document.documentElement.dataset.theme;
	darkQuery = darkQuery || matchMedia('(prefers-color-scheme: dark)');
	return own ? own === 'dark' : darkQuery.matches;
}

function cssColor(rgb) {
	return '#' + ('00000' + rgb.toString(16)).slice(-6);
}

/* Sizes a canvas for the screen's pixels and returns its context, in CSS pixels. */
function fitCanvas(canvas, w, h) {
	const ratio = window.devicePixelRatio || 1, W = Math.round(w * ratio), H = Math.round(h * ratio);
	if (canvas.width !== W || canvas.height !== H) {
		canvas.width = W;
		canvas.height = H;
		canvas.style.width = w + 'px';
		canvas.style.height = h + 'px';
	}
	const c = canvas.getContext('2d');
	c.setTransform(ratio, 0, 0, ratio, 0, 0);
	return c;
}

function kindText(flags) {
	return (flags & 2 ? ', inlined' : '') + (flags & 4 ? ', JIT' : '') +
		(flags & 16 ? ', no symbol' : '') + (flags & 32 ? ', inferred from a tail call' : '');
}

function placeTip(tip, box, ev, lines) {
	const r = box.getBoundingClientRect();
	tip.textContent = '';
	lines.forEach((text, i) => {
		el(i ? 'div' : 'b', {}, tip).textContent = text;
	});
	tip.hidden = false;
	const x = ev.clientX - r.left + 14, isLow = ev.clientY + 20 + tip.offsetHeight > window.innerHeight;
	const y = ev.clientY - r.top + (isLow && ev.clientY > tip.offsetHeight + 12 ? -tip.offsetHeight - 8 : 16);
	tip.style.left = Math.max(0, Math.min(x, r.width - tip.offsetWidth - 4)) + 'px';
	tip.style.top = y + 'px';
}

/* The clipboard is not allowed in sandboxed frames: then the text is selected instead. */
function copyText(text, shown) {
	const select = function () {
		const range = document.createRange();
		range.selectNodeContents(shown);
		getSelection().removeAllRanges();
		getSelection().addRange(range);
	};
	if (!navigator.clipboard)
		return select();
	return navigator.clipboard.writeText(text).catch(select);
}

/* The first sentence: what the default metric consists of, in the whole capture. */
function summary(app) {
	const P = app.P, m = P.metrics[0], w = P.summary;
	if (!w.nrRows && P.head.series.length) {
		const s = P.head.series[0];
		return s.title + ': ' + bytesText(s.value[0]) +
			' at the start, ' + bytesText(s.value[s.value.length - 1]) + ' at the end.';
	}
	if (!w.nrRows)
		return 'No samples were recorded.';
	const whole = amountText(w.sum, m.unit) + (m.unit === 'count' ? ' ' + m.countName : '');
	if (!w.states) {
		const cpus = m.unit === 'ns' && m.isSampled && m.hasTimes && P.head.duration_ms ?
			', ' + (w.sum / 1e6 / P.head.duration_ms).toFixed(2) + ' CPUs on average' : '';
		if (isBare(m, w))
			return m.title + ': ' + countText(w.samples, m.noun) + '.';
		return m.title + ': ' + whole + cpus + (w.samples ? ' (' + countText(w.samples, m.noun) + ').' : '.');
	}
	const parts = new Map();
	w.states.forEach((v, i) => {
		const text = P.kinds.isCpu[i] ? 'on CPU' : P.head.states[i][1];
		if (v)
			parts.set(text, (parts.get(text) || 0) + v);
	});
	const list = Array.from(parts).sort((a, b) => b[1] - a[1]).slice(0, 4)
		.map(([text, v]) => text + ' ' + percentText(v, w.sum));
	return whole + ' of thread time that was not idle: ' + list.join(', ') +
		(w.idle ? '; idle: ' + timeText(w.idle) + '.' : '.');
}

/* ---- the head -------------------------------------------------------------------------------------- */

function Head(app, parent) {
	const h = app.P.head, box = el('header', {}, parent);
	const line = el('div', {'class': 'title'}, box);
	el('h1', {}, line).textContent = h.title;
	const facts = new Map(h.facts), parts = [];
	for (const text of [facts.get('host'), facts.get('duration') || h.duration_ms && timeText(h.duration_ms * 1e6)])
		if (text)
			parts.push(text);
	if (h.is_incomplete)
		parts.push('incomplete: parts of the recording are missing');
	const lost = h.losses.filter((l) => l[2] === 'lost').reduce((sum, l) => sum + l[0], 0);
	parts.push(lost ? grouped(lost) + ' lost, see About' : 'nothing lost');
	el('span', {'class': 'quiet'}, line).textContent = parts.join(' · ');
	const theme = el('button', {type: 'button', title: 'Light or dark'}, line);
	theme.textContent = '◐';
	theme.addEventListener('click', () => {
		document.documentElement.dataset.theme = darkMode() ? 'light' : 'dark';
		app.notify();
	});
	/* The sentences of the first text page; what all of it consists of, if there is room. */
	const said = h.sentences.slice(0, 3);
	for (const s of said.concat(said.length < 3 ? [summary(app)] : []))
		el('p', {'class': 'sentence'}, box).textContent = s + (/[.!?]$/.test(s) ? '' : '.');
	drawDiagnosis(h.diagnosis, box);
}

/* The findings of assay diagnose, each with what proves it; closed, as it is long. */
function drawDiagnosis({findings, notes}, parent) {
	const nr = findings.filter((f) => f[1]).length, box = el('details', {'class': 'diagnosis'}, parent);
	el('summary', {}, box).textContent = 'Diagnosis: ' + (nr ? countText(nr, 'findings') +
		', with measured values, tests, remedies and what would refute them' : 'inconclusive');
	for (const [sentence, rule, ...parts] of findings) {
		el('h3', {}, box).textContent = sentence;
		const dl = el('dl', {}, box);
		for (const [title, text] of rule ? [['rule', rule], ...parts] : []) {
			el('dt', {}, dl).textContent = title;
			el('dd', {}, dl).textContent = text;
		}
	}
	for (const text of notes)
		el('p', {'class': 'quiet'}, box).textContent = text;
}

/* ---- the line that says what is shown ----------------------------------------------------------------- */

function SelectionLine(app, parent) {
	this.app = app;
	this.box = el('div', {'class': 'selection'}, parent);
	this.metric = el('select', {'aria-label': 'What is added up'}, this.box);
	app.P.metrics.forEach((m, i) => {
		el('option', {value: String(i)}, this.metric).textContent = m.title;
	});
	this.metric.addEventListener('change', () => app.set({metric: +this.metric.value}));
	this.text = el('span', {role: 'status'}, this.box);
	this.chips = el('span', {}, this.box);
	this.toggles = el('span', {'class': 'toggles'}, this.box);
	this.idle = this.toggle('idle', 'Show idle time (i)', () => app.set({showsIdle: !app.showsIdle}));
	this.folds = this.toggle('all frames', 'Show folded frames: runtimes, allocators, system calls (r)',
		() => app.set({folds: !app.folds, opened: new Set()}));
	this.reset = this.toggle('reset', 'Show everything (0)', () => {
		const view = app.view;
		app.reset();
		app.set({view: view});
	});
}

SelectionLine.prototype.toggle = function (text, title, act) {
	const b = el('button', {type: 'button', title: title}, this.toggles);
	b.textContent = text;
	b.addEventListener('click', act);
	return b;
};

SelectionLine.prototype.chip = function (text, act) {
	const b = el('button', {type: 'button', 'class': 'chip', title: 'Remove'}, this.chips);
	b.textContent = text + ' ×';
	b.addEventListener('click', act);
};

/* The samples are what is counted. */
function isBare(m, w) {
	return m.unit === 'count' && w.sum === w.samples;
}

SelectionLine.prototype.draw = function () {
	const app = this.app, P = app.P, w = app.model.sums, m = app.metricNow(), parts = [];
	const isTimed = app.isTimed();
	this.box.hidden = !P.summary.nrRows;
	const all = P.head.duration_ms / 1000, count = (a) => a.reduce((sum, v) => sum + v, 0);
	this.metric.value = String(app.metric);
	if (isTimed)
		parts.push((app.range ? ((app.range[1] - app.range[0]) / 1000).toFixed(2) : all.toFixed(1)) +
			' s of ' + all.toFixed(1) + ' s');
	else if (app.range)
		parts.push('whole capture (no times)');
	const hasRows = P.rowsOf[m.stream]; /* of this metric */
	const isOn = (i) => hasRows[i] && (!app.groups || app.groups.has(P.groups.of[i])) ? 1 : 0;
	if (count(hasRows))
		parts.push(count(Array.from(hasRows, (v, i) => isOn(i))) + ' of ' +
			countText(count(hasRows), 'threads') + ' with ' + m.noun);
	parts.push((isBare(m, w) ? '' : amountText(app.shownSum(), m.unit) + (m.unit === 'count' ?
		' ' + m.countName : '') + (w.samples ? ', ' : '')) + (w.samples ? countText(w.samples, m.noun) : ''));
	if (w.idle)
		parts.push('idle hidden (' + timeText(w.idle) + ')');
	if (app.cutSeconds())
		parts.push('parts of seconds are estimates');
	this.text.textContent = parts.join(' · ');
	this.chips.textContent = '';
	if (app.range)
		this.chip(app.range.map((t) => (t / 1000).toFixed(2)).join('–') + ' s',
			() => app.set({range: null}));
	for (const g of app.groups || [])
		this.chip(P.groups.list[g].title, () => {
			const next = new Set(app.groups);
			next.delete(g);
			app.set({groups: next.size ? next : null});
		});
	if (app.state !== null)
		this.chip('only ' + P.head.states[app.state][1], () => app.set({state: null}));
	for (const s of app.hidden)
		this.chip('without ' + shortName(P.tree.name[s], 30), () => {
			const next = new Set(app.hidden);
			next.delete(s);
			app.set({hidden: next});
		});
	for (const s of app.merged)
		this.chip('merged ' + shortName(P.tree.name[s], 30), () => {
			const next = new Set(app.merged);
			next.delete(s);
			app.set({merged: next});
		});
	if (app.root !== null)
		this.chip('below ' + shortName(P.tree.name[app.root], 30), () => app.set({root: null, zoom: 0}));
	if (app.around !== null)
		this.chip('around ' + shortName(P.tree.name[app.around], 30),
			() => app.set({around: null, zoom: 0}));
	if (app.opened.size)
		this.chip(app.opened.size + ' folded opened', () => app.set({opened: new Set()}));
	this.idle.setAttribute('aria-pressed', String(app.showsIdle));
	this.idle.hidden = !m.hasStates;
	this.folds.setAttribute('aria-pressed', String(!app.folds));
	this.folds.hidden = !app.hasFolds;
};

/* ---- views and search ------------------------------------------------------------------------------- */

const VIEWS = VIEW_KEYS.map((key) => [key, key[0].toUpperCase() + key.slice(1)]);

function Bar(app, parent, flame, help) {
	this.app = app;
	this.flame = flame;
	const box = el('nav', {'class': 'bar'}, parent), tabs = el('div', {role: 'tablist'}, box);
	this.tabs = VIEWS.map(([key, title]) => {
		const b = el('button', {type: 'button', role: 'tab'}, tabs);
		b.textContent = title;
		b.addEventListener('click', () => app.set({view: key}));
		return b;
	});
	const find = el('div', {role: 'search', 'class': 'search'}, box);
	this.input = el('input', {type: 'search', placeholder: 'Search (regex)  /', spellcheck: 'false',
		autocomplete: 'off', 'aria-label': 'Search functions by regular expression'}, find);
	this.found = el('span', {role: 'status'}, find);
	const keys = el('button', {type: 'button', title: 'Keys (?)'}, find);
	keys.textContent = '?';
	keys.addEventListener('click', () => help.toggle());
	this.input.addEventListener('input', () => app.set({search: this.input.value}));
	this.input.addEventListener('keydown', (ev) => {
		if (ev.key === 'Enter') {
			app.set({view: 'flame'});
			app.draw();
			flame.nextHit(ev.shiftKey ? -1 : 1);
		} else if (ev.key === 'Escape') {
			app.set({search: ''});
			this.input.blur();
		} else {
			return;
		}
		ev.preventDefault();
		ev.stopPropagation();
	});
}

Bar.prototype.draw = function () {
	const app = this.app, hits = this.flame.hitsNow(), m = app.metricNow();
	const isOfMemory = !app.P.summary.nrRows;
	const isEmpty = {memory: !app.P.head.series.length && !app.P.metrics.some((x) => x.isMemory),
		waits: waitMetric(app.P) < 0, tables: !app.P.head.tables.length};
	VIEWS.forEach(([key], i) => {
		this.tabs[i].setAttribute('aria-selected', String(app.view === key));
		this.tabs[i].hidden = isEmpty[key] || isOfMemory && !/memory|tables|about/.test(key);
	});
	this.input.hidden = isOfMemory;
	if (this.input.value !== app.search)
		this.input.value = app.search;
	this.found.textContent = !hits ? '' : (hits.problem ? 'not a regex (' + hits.problem +
		'), searched as text: ' : '') + (!hits.nodes.length ? 'no match' :
		percentText(hits.sum, app.shownSum()) + ' of ' + m.title + ' shown, ' + amountText(hits.sum, m.unit));
};

/* ---- keys --------------------------------------------------------------------------------------------- */

const KEYS = [['/', 'search; Enter goes to the widest match'], ['n N', 'next, previous match'],
	['1 – 6', 'Flame, Functions, Waits, Memory, Tables, About'], ['← ↑ ↓ →', 'move in the graph, move the range'],
	['Enter', 'zoom into the frame'], ['Esc', 'up, end the search, close, remove the range'],
	['i', 'show or hide idle time'], ['r', 'show or fold frames of runtimes, allocators, system calls'],
	['t', 'order of time'], ['b', 'inverted: what ran or waited (self), callers below'],
	['c', 'sandwich: callers and callees of the function'], ['f', 'focus: only below the function'],
	['x', 'hide stacks with the function'], ['m', 'merge the function into its callers'], ['z', 'stretch the range over the time axis'],
	['h', 'heat map'], ['0', 'show everything'], ['?', 'this list']];

function Help(parent) {
	this.box = el('dialog', {'class': 'help', 'aria-label': 'Keys'}, parent);
	el('h2', {}, this.box).textContent = 'Keys';
	const dl = el('dl', {}, this.box);
	for (const [key, text] of KEYS) {
		el('kbd', {}, el('dt', {}, dl)).textContent = key;
		el('dd', {}, dl).textContent = text;
	}
	el('p', {'class': 'quiet'}, this.box).textContent = 'Mouse: drag on the time axis selects a range, a ' +
		'click on a strip its threads (with Shift: more), a click on a frame zooms and shows its callers ' +
		'and waits. The address keeps what is shown.';
	const close = el('button', {type: 'button'}, this.box);
	close.textContent = 'Close';
	close.addEventListener('click', () => this.box.close());
	this.box.addEventListener('click', (ev) => ev.target === this.box && this.box.close());
}

Help.prototype.toggle = function () {
	if (this.box.open)
		this.box.close();
	else
		this.box.showModal();
};

function listenKeys(app, bar, flame, axis, help) {
	const ofSelected = (changes) => () => app.selected >= 0 && app.set(changes(app.selected));
	const keys = {
		'/': () => bar.input.select(),
		'?': () => help.toggle(),
		n: () => flame.nextHit(1),
		N: () => flame.nextHit(-1),
		i: () => app.set({showsIdle: !app.showsIdle}),
		r: () => app.set({folds: !app.folds && app.hasFolds, opened: new Set()}),
		h: () => app.set({heat: !app.heat}),
		z: () => axis.isShown && axis.zoom(),
		t: () => app.isTimed() && app.set({view: 'flame', zoom: 0, around: null, order: app.order === 'time' ? '' : 'time'}),
		b: () => app.set({view: 'flame', zoom: 0, around: null, order: app.order === 'up' ? '' : 'up'}),
		c: ofSelected((s) => ({view: 'flame', zoom: 0, around: app.around === s ? null : s})),
		f: ofSelected((s) => ({view: 'flame', zoom: 0, around: null, root: app.root === s ? null : s})),
		x: ofSelected((s) => ({hidden: new Set(app.hidden).add(s), selected: -1})),
		m: ofSelected((s) => ({merged: new Set(app.merged).add(s), selected: -1})),
		0: () => {
			app.reset();
			app.set({});
		},
		Escape: () => {
			if (app.zoom)
				app.set({zoom: app.model.tree.parent[app.zoom]});
			else if (app.search)
				app.set({search: ''});
			else if (app.around !== null)
				app.set({around: null});
			else if (app.selected >= 0)
				app.set({selected: -1});
			else if (app.range)
				app.set({range: null});
		},
	};
	VIEWS.forEach(([key], i) => {
		keys[i + 1] = () => bar.tabs[i].hidden || app.set({view: key});
	});
	document.addEventListener('keydown', (ev) => {
		if (ev.ctrlKey || ev.metaKey || ev.altKey || !app.model || (help.box.open && ev.key !== '?') ||
			/^(input|select|textarea)$/i.test(ev.target.tagName))
			return;
		if (!Object.prototype.hasOwnProperty.call(keys, ev.key))
			return;
		ev.preventDefault();
		keys[ev.key]();
	});
}

/* Paper is white: canvases are drawn anew in light colours, and back after it. */
function listenPrint(app) {
	const set = document.documentElement.dataset;
	let theme;
	window.addEventListener('beforeprint', () => {
		theme = set.theme;
		set.theme = 'light';
		app.draw();
	});
	window.addEventListener('afterprint', () => {
		if (theme)
			set.theme = theme;
		else
			delete set.theme;
		app.draw();
	});
}

/* ---- start ---------------------------------------------------------------------------------------------- */

function build(P, engine) {
	const app = new App(P, engine), root = document.getElementById('app');
	app.onError = fail;
	new Head(app, root);
	const axis = new TimeAxis(app, root);
	app.onReset = () => axis.isShown && axis.show([0, P.head.duration_ms]);
	const line = new SelectionLine(app, root);
	const barBox = el('div', {}, root), main = el('div', {'class': 'main'}, root);
	const left = el('div', {'class': 'left'}, main);
	const pick = (sym) => app.set({selected: sym});
	const details = new Details(app, main), help = new Help(root);
	const views = {flame: new FlameView(app, left, pick), functions: new FunctionsView(app, left, pick),
		waits: new WaitsView(app, left), memory: new MemoryView(app, left),
		tables: new TablesView(app, left), about: new AboutView(app, left)};
	const bar = new Bar(app, barBox, views.flame, help);
	app.listeners.push(() => {
		for (const key in views)
			views[key].box.hidden = app.view !== key;
		axis.draw();
		line.draw();
		bar.draw();
		views[app.view].draw();
		details.draw();
	});
	listenKeys(app, bar, views.flame, axis, help);
	window.addEventListener('resize', () => app.notify());
	window.addEventListener('hashchange', () => {
		app.load();
		app.refresh();
	});
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => app.notify());
	listenPrint(app);
	root.hidden = false;
	document.getElementById('static').hidden = true;
	app.load();
	app.refresh(); /* the graph is asked for before the axis */
	axis.load();
	window.assay = app; /* for tests and the console */
	return app;
}

/* The text of the page instead of its views. */
function fail(e) {
	document.getElementById('app').hidden = true;
	document.getElementById('static').hidden = false;
	const problem = document.getElementById('problem');
	problem.hidden = false;
	problem.textContent = 'The views of this page cannot be shown (' +
		e.message + '). Its text:';
}

/*
 * Until the returned function is called, the page does not count as loaded: a frame that is being written
 * keeps it waiting. So a program that takes a picture of the loaded page gets its views.
 */
function holdLoad() {
	const frame = el('iframe', {hidden: ''}, document.body), inner = frame.contentDocument;
	if (inner)
		inner.open();
	return () => {
		if (inner)
			inner.close();
		frame.remove();
	};
}

/* The script comes before the data, so that the worker starts while they are read. */
async function start() {
	document.getElementById('problem').hidden = true;
	const engine = new EngineClient(document.currentScript.textContent);
	const isRead = new Promise((ok) => document.addEventListener('DOMContentLoaded', ok));
	await Promise.all([engine.start(), isRead]);
	const data = document.getElementById('data');
	const P = await engine.ask('open', data.textContent);
	P.input = data.dataset.input || '';
	data.textContent = '';
	await build(P, engine).whenDrawn();
}

if (typeof document === 'undefined')
	serveEngine();
else
	start().catch(fail).finally(holdLoad());
