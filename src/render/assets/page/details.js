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

Details.prototype.list = function (title, rows, all) {
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
	if (rows.length > 8)
		el('li', {'class': 'quiet'}, ul).textContent = 'and ' + (rows.length - 8) + ' more';
	if (!rows.length)
		el('li', {'class': 'quiet'}, ul).textContent = 'none';
};

Details.prototype.draw = function () {
	const app = this.app, P = app.P, T = P.tree, sym = app.selected;
	this.box.textContent = '';
	if (sym < 0 || sym >= T.nrSyms) {
		this.line('Click a frame or a function for its callers, callees and waits.', 'quiet');
		return;
	}
	const f = app.functionsNow(), m = app.metricNow(), all = app.shownSum();
	const samples = app.sumsNow().samples;
	el('h2', {}, this.box).textContent = T.name[sym];
	this.line((T.module[sym] || 'no module') + kindText(T.symFlags[sym]), 'quiet');
	const part = (v, n) => percentText(v, all) + (m.isSampled ? ' ' + errorText(n, samples) : '') +
		' · ' + amountText(v, m.unit) + ' · ' + grouped(n) + ' ' + m.noun;
	this.line('total ' + part(f.total[sym], f.totalCount[sym]));
	this.line('self ' + part(f.self[sym], f.count[sym]));
	const actions = el('div', {'class': 'actions'}, this.box);
	this.button(actions, app.callersOf === sym ? 'Back' : 'Callers',
		'Draw the callers of this function (c)',
		() => app.set({callersOf: app.callersOf === sym ? null : sym, view: 'flame', zoom: 0}));
	this.button(actions, app.root === sym ? 'Back' : 'Only below',
		'Draw only what this function calls',
		() => app.set({root: app.root === sym ? null : sym, callersOf: null, view: 'flame', zoom: 0}));
	this.button(actions, 'Hide', 'Leave out stacks with this function (x)', () => {
		app.set({hidden: new Set(app.hidden).add(sym), selected: -1});
	});
	this.drawTime(sym);
	const near = neighbours(P, f.treeTotal, sym);
	this.list('Callers', near.callers, f.total[sym]);
	this.list('Callees', near.callees, f.total[sym]);
	this.drawWaits(sym);
	this.drawCommand(sym);
};

/* The function's weight over the whole time, of the selected threads. */
Details.prototype.drawTime = function (sym) {
	const app = this.app, P = app.P, m = app.metricNow(), s = P.streams[m.stream];
	if (!s.time || !P.head.duration_ms)
		return;
	const isIn = below(P, sym), nr = 120, bins = new Float64Array(nr), end = P.head.duration_ms;
	const sel = Object.assign(app.selection(), {range: null});
	eachRow(P, sel, m, function (i) {
		if (!isIn[s.node[i]])
			return;
		addToBins(bins, 0, 1, end / nr, s.time[i], rowLength(P, s, i), s.weight[i]);
	});
	const max = Math.max(...bins) || 1, canvas = el('canvas', {role: 'img',
		'aria-label': 'This function over the time of the capture'}, this.box);
	const W = Math.max(100, this.box.clientWidth - 24), c = fitCanvas(canvas, W, 34);
	c.fillStyle = getComputedStyle(this.box).getPropertyValue('--accent');
	for (let k = 0; k < nr; k++)
		c.fillRect(k * W / nr, 34 - 32 * bins[k] / max, W / nr + 0.3, 32 * bins[k] / max);
	this.line('over the whole capture', 'quiet');
};

Details.prototype.drawWaits = function (sym) {
	const app = this.app, P = app.P;
	if (waitStream(P) < 0)
		return;
	const {by} = sumWaits(app, below(P, sym));
	const rows = Array.from(by.reason.values()).sort((a, b) => b.ns - a.ns);
	if (!rows.length)
		return;
	el('h4', {}, this.box).textContent = 'Waits in it';
	const ul = el('ul', {'class': 'plain'}, this.box);
	for (const g of rows.slice(0, 6))
		el('li', {}, ul).textContent = P.head.states[g.key][1] + ': ' + timeText(g.ns) + ', ' +
			grouped(g.n) + (g.n === 1 ? ' wait, p50 ' : ' waits, p50 ') + quantileText(g, 0.5) + ', p99 ' +
			quantileText(g, 0.99);
};

/* The command that prints the same. */
Details.prototype.drawCommand = function (sym) {
	const app = this.app, P = app.P, m = app.metricNow();
	const words = ['assay', 'report'];
	if (m.report)
		words.push(...m.report.split(' '));
	if (app.range)
		words.push('--time', (app.range[0] / 1000).toFixed(3) + '..' + (app.range[1] / 1000).toFixed(3));
	if (app.groups) {
		const names = [];
		for (const g of app.groups)
			names.push(escapeRegex(P.groups.list[g].name).replace(/#/g, '[0-9]+'));
		words.push('--thread', '^(' + names.join('|') + ')$');
	}
	if (app.state !== null)
		words.push('--reason', P.head.states[app.state][0]);
	if (app.showsIdle)
		words.push('--idle');
	words.push('--callers', '^' + escapeRegex(P.tree.name[sym]) + '$');
	words.push(P.input || 'FILE');
	const text = words.map(shellWord).join(' ');
	el('h4', {}, this.box).textContent = 'In a terminal';
	const pre = el('pre', {'class': 'command'}, this.box);
	pre.textContent = text;
	const actions = el('div', {'class': 'actions'}, this.box);
	this.button(actions, 'Copy', 'Copy the command', () => copyText(text, pre));
};
