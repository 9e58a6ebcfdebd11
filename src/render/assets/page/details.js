/* The panel at the right: one function, for the selection and metric of the page. */
function Details(app, parent) {
	this.app = app;
	this.box = el('aside', {'class': 'details', 'aria-label': 'Selected function'}, parent);
}

Details.prototype.line = function (text, cls) {
	el('p', {'class': cls || ''}, this.box).textContent = text;
};

Details.prototype.button = function (parent, text, title, act) {
	const b = el('button', {type: 'button', title: title}, parent);
	b.textContent = text;
	b.addEventListener('click', act);
};

Details.prototype.list = function (title, rows, all, nrRows = rows.length) {
	const app = this.app, m = app.metricNow();
	el('h4', {}, this.box).textContent = title;
	const ul = el('ul', {'class': 'plain'}, this.box);
	for (const [sym, v] of rows.slice(0, 8)) {
		const li = el('li', {}, ul);
		el('span', {'class': 'num'}, li).textContent = percentText(v, all) + ' ';
		if (sym < 0) {
			li.append('[no caller]');
			continue;
		}
		const b = el('button', {type: 'button', 'class': 'link',
			title: app.P.tree.name[sym] + ', ' + amountText(v, m.unit)}, li);
		b.textContent = shortName(app.P.tree.name[sym], 44);
		b.addEventListener('click', () => app.set({selected: sym}));
	}
	if (nrRows > 8)
		el('li', {'class': 'quiet'}, ul).textContent = 'and ' + (nrRows - 8) + ' more';
	if (!rows.length)
		el('li', {'class': 'quiet'}, ul).textContent = 'none';
};

Details.prototype.draw = function () {
	const app = this.app, sym = app.selected, d = app.model.details;
	const isSym = sym >= 0 && sym < app.P.tree.nrSyms;
	if (isSym ? !d || d.sym !== sym : !app.model.functions)
		return; /* the answer comes */
	this.box.hidden = !app.P.summary.nrRows || /tables|about/.test(app.view);
	this.box.parentNode.classList.toggle('wide', this.box.hidden);
	this.box.classList.toggle('picked', isSym);
	const top = this.shown === sym ? this.box.scrollTop : 0;
	this.shown = sym;
	this.box.textContent = '';
	if (isSym)
		this.drawFunction(d);
	else
		this.drawSelection();
	this.box.scrollTop = top;
};

/* Nothing is selected: the heaviest functions, and the waits with what ended them. */
Details.prototype.drawSelection = function () {
	const app = this.app, f = app.model.functions, w = app.model.waits, all = app.shownSum();
	el('h2', {}, this.box).textContent = 'This selection';
	const rows = []; /* the first 8 of all that have a weight */
	let nr = 0;
	for (let s = 0; s < f.self.length; s++) {
		if (!(f.self[s] > 0) || w && app.P.tree.name[s][0] === '[')
			continue;
		nr++;
		let at = rows.length;
		while (at > 0 && rows[at - 1][1] < f.self[s])
			at--;
		if (at < 8)
			rows.splice(at, 0, [s, f.self[s]]);
		rows.length = Math.min(rows.length, 8);
	}
	const m = app.metricNow(), title = m.isMemory ? 'Allocating functions' : m.unit === 'bytes' ?
		'Functions by bytes' : m.isSampled || m.hasStates ?
		'Hottest functions (self)' : 'Functions by ' + (m.unit === 'ns' ? 'time' : m.unit === 'bytes' ? 'bytes' : m.noun);
	const parts = [() => this.list(title, rows, all, nr)];
	if (w && w.reason.length)
		parts.push(() => this.drawWaits(w.reason, w.object));
	if (w && 2 * w.reason.reduce((sum, g) => sum + g.ns, 0) > all)
		parts.reverse();
	parts.forEach((draw) => draw());
	this.drawCommand(-1);
	this.line('Click a frame, a function or a strip. Press ? for the keys.', 'quiet');
};

Details.prototype.drawFunction = function (f) {
	const app = this.app, P = app.P, T = P.tree, sym = f.sym, m = app.metricNow();
	const all = app.shownSum(), samples = app.model.sums.samples;
	el('h2', {}, this.box).textContent = T.name[sym];
	if (T.name[sym][0] !== '[') /* a wait reason, a marker */
		this.line((T.module[sym] || 'no module') + kindText(T.symFlags[sym]), 'quiet');
	const facts = el('dl', {'class': 'amounts'}, this.box);
	for (const [key, v, n] of [['total', f.total, f.totalCount], ['self', f.self, f.count]]) {
		el('dt', {}, facts).textContent = key;
		el('dd', {}, facts).textContent = percentText(v, all) +
			(m.isSampled ? ' ' + errorText(n, samples) : '') + ' · ' + amountText(v, m.unit) + ' · ' +
			countText(n, m.noun);
	}
	const actions = el('div', {'class': 'actions'}, this.box);
	this.button(actions, app.around === sym ? 'Whole graph' : 'Sandwich',
		'Callers above, callees below this function (c)',
		() => app.set({around: app.around === sym ? null : sym, view: 'flame', zoom: 0}));
	this.button(actions, app.root === sym ? 'Show all' : 'Focus', 'Only what this function calls (f)',
		() => app.set({root: app.root === sym ? null : sym, around: null, view: 'flame', zoom: 0}));
	this.button(actions, 'Hide', 'Leave out stacks with this function (x)', () =>
		app.set({hidden: new Set(app.hidden).add(sym), selected: -1}));
	this.button(actions, 'Merge', 'Take the function out of all stacks: what it calls joins its callers, its own part is theirs (m)',
		() => app.set({merged: new Set(app.merged).add(sym), selected: -1}));
	this.button(actions, '×', 'Close (Escape)', () => app.set({selected: -1}));
	if (f.bins)
		this.drawTime(f.bins);
	this.list('Callers', f.callers, f.total);
	this.list('Callees', f.callees, f.total);
	if (f.waits && f.waits.length)
		this.drawWaits(f.waits, []);
	this.drawLines(sym);
	this.drawCode(f);
	this.drawCommand(sym);
};

/* The function's weight over the whole time, of the selected threads. */
Details.prototype.drawTime = function (bins) {
	const app = this.app, end = app.P.head.duration_ms, max = Math.max(...bins) || 1;
	el('h4', {}, this.box).textContent = 'Over the whole capture';
	const canvas = el('canvas', {role: 'img', 'aria-label':
		'This function over the time of the capture'}, this.box);
	const W = Math.max(100, this.box.clientWidth - 26), H = 34, c = fitCanvas(canvas, W, H);
	const css = getComputedStyle(this.box), px = W / bins.length, r = app.range || [0, end];
	c.fillStyle = css.getPropertyValue('--accent');
	for (let k = 0; k < bins.length; k++) {
		const t = (k + 0.5) * end / bins.length;
		c.globalAlpha = t < r[0] || t > r[1] ? 0.35 : 1;
		c.fillRect(k * px, H - 1 - (H - 2) * bins[k] / max, px + 0.3, (H - 2) * bins[k] / max);
	}
	c.globalAlpha = 1;
	c.fillStyle = css.getPropertyValue('--line');
	c.fillRect(0, H - 1, W, 1);
};

/* Waits by reason: quantiles, the object waited for most, and the thread that ended most of them. */
Details.prototype.drawWaits = function (reasons, objects) {
	const P = this.app.P;
	el('h4', {}, this.box).textContent = this.app.cutSeconds() ? 'Waits (p50, p99: of whole seconds)' : 'Waits';
	const ul = el('ul', {'class': 'plain waits'}, this.box);
	for (const g of reasons.slice(0, 6)) {
		const li = el('li', {}, ul), s = P.head.states[g.state];
		el('span', {'class': 'dot'}, li).style.background = cssColor(s[darkMode() ? 4 : 3]);
		el('b', {}, li).textContent = s[1];
		li.append(' ' + timeText(g.ns) + (g.n ? ', ' + grouped(g.n) + (g.n < 1.5 ? ' wait' : ' waits') : '') +
			(g.p50 < 0 ? '' : ', p50 ' + quantileText(g.p50) + ', p99 ' + quantileText(g.p99)));
		const object = objects.find((o) => o.state === g.state && o.ns >= 0.05 * g.ns);
		const quiet = (text) => {
			el('div', {'class': 'quiet', title: text}, li).textContent = text;
		};
		if (object)
			quiet('for ' + shortPath(P.head.texts[object.text], 36) + ' (' + percentText(object.ns, g.ns) + ')');
		const by = wakersText(P, g);
		if (by)
			quiet((s[0] === 'lock' ? 'released by ' : 'ended by ') + by);
	}
};

/* This file, which assay report reads; elsewhere the name of the recording. */
function inputPath(P) {
	try {
		if (location.protocol === 'file:')
			return decodeURIComponent(location.pathname);
	} catch (e) { /* not a path of UTF-8 */ }
	return P.input || 'FILE';
}

/* The command that prints the same. Recordings have sums by second: of parts there is no command. */
Details.prototype.drawCommand = function (sym) {
	const app = this.app, P = app.P, m = app.metricNow();
	const words = ['assay', 'report'];
	if (m.report)
		words.push(...m.report.split(' '));
	const cut = app.cutSeconds(), range = cut || app.range, time = (t) => (t / 1000).toFixed(3);
	if (range)
		words.push('--time', time(range[0]) + '..' + (range[1] < P.head.duration_ms ? time(range[1]) : ''));
	if (app.groups) {
		const groups = Array.from(app.groups, (g) => P.groups.list[g]);
		const names = groups.filter((g) => !g.tid).map((g) => escapeRegex(g.name).replace(/#/g, '[0-9]+'));
		for (const g of groups.filter((x) => x.tid))
			words.push('--tid', String(g.tid));
		if (names.length)
			words.push('--thread', '^(' + names.join('|') + ')$');
	}
	if (app.state === null && m.states === 'cpu')
		words.push('--reason', 'on_cpu');
	if (app.state !== null)
		words.push('--reason', P.head.states[app.state][0]);
	if (app.showsIdle)
		words.push('--idle');
	for (const s of app.hidden)
		words.push('--exclude', '^' + escapeRegex(P.tree.name[s]) + '$');
	if (app.root !== null)
		words.push('--within', '^' + escapeRegex(P.tree.name[app.root]) + '$');
	if (sym >= 0)
		words.push('--callers', '^' + escapeRegex(P.tree.name[sym]) + '$');
	else
		words.push(app.order === 'up' ? '--reverse' : '--tree');
	words.push(inputPath(P));
	const text = words.map(shellWord).join(' ');
	el('h4', {}, this.box).textContent = !cut ? 'The same in a terminal' :
		'In a terminal: whole seconds, ' + range.map(time).join(' to ') + ' s';
	if (cut)
		this.line('Waits are recorded by second, so figures of parts of a second are estimates.', 'quiet');
	if (app.merged.size)
		this.line('The command has no option that merges functions.', 'quiet');
	const pre = el('pre', {'class': 'command'}, this.box);
	pre.textContent = text;
	const actions = el('div', {'class': 'actions'}, this.box);
	this.button(actions, 'Copy', 'Copy the command', () => copyText(text, pre));
	if (cut)
		this.button(actions, 'Select whole seconds', 'Then the command prints the same', () =>
			app.set({range: cut}));
};
