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

function darkMode() {
	const own = document.documentElement.dataset.theme;
	return own ? own === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
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
	const x = ev.clientX - r.left + 14, y = ev.clientY - r.top + 16;
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
	const P = app.P, m = P.metrics[0], all = {range: null, threads: null, state: null, showsIdle: false};
	if (!m) {
		const s = P.head.series[0];
		return !s ? 'Nothing was recorded.' : s.title + ': ' + bytesText(s.value[0]) +
			' at the start, ' + bytesText(s.value[s.value.length - 1]) + ' at the end.';
	}
	const s = P.streams[m.stream], w = sumRows(P, all, m), parts = new Map();
	const whole = amountText(w.sum, m.unit) + (m.unit === 'count' ? ' ' + m.countName : '');
	if (!s.state) {
		const cpus = m.unit === 'ns' && s.time && P.head.duration_ms ?
			', ' + (w.sum / 1e6 / P.head.duration_ms).toFixed(2) + ' CPUs on average' : '';
		return m.title + ': ' + whole + cpus + ' (' + grouped(w.samples) + ' ' + m.noun + ').';
	}
	eachRow(P, all, m, (i) => {
		const text = P.kinds.isCpu[s.state[i]] ? 'on CPU' : P.head.states[s.state[i]][1];
		parts.set(text, (parts.get(text) || 0) + s.weight[i]);
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
	for (const key of ['host', 'duration'])
		if (facts.get(key))
			parts.push(facts.get(key));
	if (h.is_incomplete)
		parts.push('incomplete: the recording ends early');
	const lost = h.losses.filter((l) => l[2] === 'lost').reduce((sum, l) => sum + l[0], 0);
	parts.push(lost ? grouped(lost) + ' samples lost, see About' : 'no samples lost');
	el('span', {'class': 'quiet'}, line).textContent = parts.join(' · ');
	const theme = el('button', {type: 'button', title: 'Light or dark'}, line);
	theme.textContent = '◐';
	theme.addEventListener('click', () => {
		document.documentElement.dataset.theme = darkMode() ? 'light' : 'dark';
		app.notify();
	});
	for (const s of [summary(app)].concat(h.sentences.slice(0, 2)))
		el('p', {'class': 'sentence'}, box).textContent = s;
}

/* ---- the line that says what is shown ----------------------------------------------------------------- */

function SelectionLine(app, parent) {
	this.app = app;
	this.box = el('div', {'class': 'selection', role: 'status'}, parent);
	this.metric = el('select', {'aria-label': 'What is added up'}, this.box);
	app.P.metrics.forEach((m, i) => {
		el('option', {value: String(i)}, this.metric).textContent = m.title;
	});
	this.metric.addEventListener('change', () => app.set({metric: +this.metric.value}));
	this.text = el('span', {}, this.box);
	this.chips = el('span', {}, this.box);
	this.idle = this.toggle('idle', 'Show idle time (i)', () => app.set({showsIdle: !app.showsIdle}));
	this.folds = this.toggle('runtime frames', 'Show frames of runtimes and allocators (r)',
		() => app.set({folds: !app.folds, opened: new Set()}));
	this.reset = this.toggle('reset', 'Show everything (0)', () => {
		app.reset();
		app.set({});
	});
}

SelectionLine.prototype.toggle = function (text, title, act) {
	const b = el('button', {type: 'button', title: title}, this.box);
	b.textContent = text;
	b.addEventListener('click', act);
	return b;
};

SelectionLine.prototype.chip = function (text, act) {
	const b = el('button', {type: 'button', 'class': 'chip', title: 'Remove'}, this.chips);
	b.textContent = text + ' ×';
	b.addEventListener('click', act);
};

SelectionLine.prototype.draw = function () {
	const app = this.app, P = app.P, w = app.sumsNow(), m = app.metricNow(), parts = [];
	const isTimed = P.streams[m.stream].time && P.head.duration_ms;
	const all = P.head.duration_ms / 1000, count = (a) => a.reduce((sum, v) => sum + v, 0);
	this.metric.value = String(app.metric);
	if (isTimed)
		parts.push((app.range ? ((app.range[1] - app.range[0]) / 1000).toFixed(2) : all.toFixed(1)) +
			' s of ' + all.toFixed(1) + ' s');
	else if (app.range)
		parts.push('whole capture (no times)');
	const on = app.threadsIn();
	parts.push(count(on ? on.map((v, i) => v & P.hasRows[i]) : P.hasRows) + ' of ' + count(P.hasRows) +
		' threads');
	parts.push(amountText(app.shownSum(), m.unit) + (m.unit === 'count' ? ' ' + m.countName : '') +
		', ' + grouped(w.samples) + ' ' + m.noun);
	if (w.idle)
		parts.push('idle hidden (' + timeText(w.idle) + ')');
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
	if (app.root !== null)
		this.chip('below ' + shortName(P.tree.name[app.root], 30), () => app.set({root: null, zoom: 0}));
	if (app.callersOf !== null)
		this.chip('callers of ' + shortName(P.tree.name[app.callersOf], 30),
			() => app.set({callersOf: null, zoom: 0}));
	this.idle.setAttribute('aria-pressed', String(app.showsIdle));
	this.idle.hidden = !P.streams[m.stream].state;
	this.folds.setAttribute('aria-pressed', String(!app.folds));
	this.folds.hidden = !P.foldKinds.some(Boolean);
};

/* ---- views and search ------------------------------------------------------------------------------- */

const VIEWS = [['flame', 'Flame'], ['functions', 'Functions'], ['waits', 'Waits'], ['memory', 'Memory'],
	['about', 'About']];

function Bar(app, parent, flame) {
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
	this.input.addEventListener('input', () => app.set({search: this.input.value}));
	this.input.addEventListener('keydown', (ev) => {
		if (ev.key === 'Enter') {
			app.view = 'flame';
			flame.nextHit(ev.shiftKey ? -1 : 1);
			app.notify();
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
	const app = this.app, hits = this.flame.hitsNow();
	VIEWS.forEach(([key], i) => this.tabs[i].setAttribute('aria-selected', String(app.view === key)));
	if (this.input.value !== app.search)
		this.input.value = app.search;
	this.found.textContent = !hits ? '' : !hits.nodes.length ? 'no match' :
		percentText(hits.sum, app.shownSum()) + ' of what is shown, ' +
		amountText(hits.sum, app.metricNow().unit);
};

/* ---- keys --------------------------------------------------------------------------------------------- */

function listenKeys(app, bar, flame) {
	const keys = {
		'/': () => bar.input.select(),
		n: () => flame.nextHit(1),
		N: () => flame.nextHit(-1),
		i: () => app.set({showsIdle: !app.showsIdle}),
		r: () => app.set({folds: !app.folds, opened: new Set()}),
		c: () => app.selected >= 0 && app.set({view: 'flame', zoom: 0,
			callersOf: app.callersOf === null ? app.selected : null}),
		x: () => app.selected >= 0 &&
			app.set({hidden: new Set(app.hidden).add(app.selected), selected: -1}),
		0: () => {
			app.reset();
			app.set({});
		},
		Escape: () => {
			if (app.zoom)
				app.set({zoom: app.drawnNow().tree.parent[app.zoom]});
			else if (app.search)
				app.set({search: ''});
			else if (app.range)
				app.set({range: null});
		},
	};
	VIEWS.forEach(([key], i) => {
		keys[i + 1] = () => app.set({view: key});
	});
	document.addEventListener('keydown', (ev) => {
		if (ev.ctrlKey || ev.metaKey || ev.altKey || /^(input|select|textarea)$/i.test(ev.target.tagName))
			return;
		if (!Object.prototype.hasOwnProperty.call(keys, ev.key))
			return;
		ev.preventDefault();
		keys[ev.key]();
	});
}

/* ---- start ---------------------------------------------------------------------------------------------- */

function build(P) {
	const app = new App(P), root = document.getElementById('app');
	new Head(app, root);
	const axis = new TimeAxis(app, root), line = new SelectionLine(app, root);
	const barBox = el('div', {}, root), main = el('div', {'class': 'main'}, root);
	const left = el('div', {'class': 'left'}, main);
	const pick = (sym) => app.set({selected: sym});
	const details = new Details(app, main);
	const show = (sym) => {
		app.selected = sym;
		details.draw();
	};
	const views = {flame: new FlameView(app, left, show), functions: new FunctionsView(app, left, pick),
		waits: new WaitsView(app, left), memory: new MemoryView(app, left),
		about: new AboutView(app, left)};
	const bar = new Bar(app, barBox, views.flame);
	app.listeners.push(() => {
		for (const key in views)
			views[key].box.hidden = app.view !== key;
		axis.draw();
		line.draw();
		bar.draw();
		views[app.view].draw();
		details.draw();
	});
	listenKeys(app, bar, views.flame);
	window.addEventListener('resize', () => app.notify());
	window.addEventListener('hashchange', () => {
		app.load();
		app.clean();
		app.notify();
	});
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => app.notify());
	root.hidden = false;
	document.getElementById('static').hidden = true;
	app.load();
	app.notify();
	window.assay = app; /* for tests and the console */
}

readPage(document.getElementById('data')).then(build).catch((e) => {
	document.getElementById('app').hidden = true;
	document.getElementById('static').hidden = false;
	document.getElementById('problem').textContent = 'The views of this page cannot be shown (' +
		e.message + '). Its text:';
});
