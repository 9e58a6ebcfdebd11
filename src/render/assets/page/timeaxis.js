/*
 * The time axis: CPUs in use and memory over time, a strip for each of the busiest thread groups,
 * coloured by state, and marks. Dragging selects a range of time, a click on a strip its threads. The
 * pictures are on one canvas, the selected range and the mouse's moment on a second one above.
 */
const STRIPS_MAX = 15, STRIP_PX = 16, GRAPH_PX = 44, LABEL_PX = 150, AXIS_PX = 20, AXIS_BINS = 600, HEAT_PX = 3;

/* The stream of which the strips are: thread time, else samples, else any; -1: none has times. */
function axisStream(P) {
	const find = (is) => P.head.streams.findIndex((s) => s.has_times && is(s));
	return [(s) => s.has_states, (s) => s.noun === 'samples', () => true].map(find).find((i) => i >= 0) ?? -1;
}

function TimeAxis(app, parent) {
	const P = app.P;
	this.app = app;
	this.stream = axisStream(P);
	this.of = this.stream >= 0 ? P.head.streams[this.stream] : {};
	this.unit = this.of.unit;
	this.isOther = this.stream >= 0 && !this.of.has_states && this.of.noun !== 'samples'; /* of I/O, faults, events */
	this.nrGroups = this.stream < 0 ? 0 :
		P.groups.list.filter((g) => g.threads.some((t) => P.hasRows[t])).length;
	/* Waits alone have no time on a CPU. */
	this.hasCpu = this.stream >= 0 && (!this.of.has_states || this.of.key === 'thread-time');
	this.view = [0, P.head.duration_ms];
	this.isShown = (this.stream >= 0 || P.head.series.length > 0) && P.head.duration_ms > 0;
	this.box = el('section', {'class': 'axis', 'aria-label': 'Time axis'}, parent);
	if (!this.isShown) {
		el('p', {'class': 'quiet'}, this.box).textContent =
			'This recording has no times, so there is no time axis.';
		return;
	}
	const layers = el('div', {'class': 'layers'}, this.box);
	this.canvas = el('canvas', {'aria-hidden': 'true'}, layers);
	this.top = el('canvas', {tabindex: '0', role: 'img', 'aria-label': 'Threads over time; drag or ' +
		'arrow keys select a range, a click on a strip selects its threads'}, layers);
	this.tip = el('div', {'class': 'tip', hidden: ''}, this.box);
	this.row = el('div', {'class': 'legend'}, this.box);
	this.legend = el('span', {'class': 'legend'}, this.row);
	this.zoomed = this.button('Zoom to range', 'Stretch the selected range over the axis (z)',
		() => this.zoom());
	this.heatBox = el('div', {'class': 'heat', hidden: ''}, this.box);
	this.heated = this.button('Heat map', 'A column a second, a cell a few milliseconds (h)',
		() => app.set({heat: !app.heat}));
	this.heatMap = new HeatMap(app, this.heatBox, this);
	this.listen();
}

TimeAxis.prototype.button = function (text, title, act) {
	const b = el('button', {type: 'button', title: title}, this.row);
	b.textContent = text;
	b.addEventListener('click', act);
	return b;
};

/* Asks for the sums that are drawn, of the part of the time that the axis shows. */
TimeAxis.prototype.load = function () {
	if (this.stream < 0)
		return Promise.resolve();
	return this.app.engine.ask('axis', {stream: this.stream, from: this.view[0], to: this.view[1],
		nrBins: AXIS_BINS, nrStrips: STRIPS_MAX, strips: this.order}).then((d) => {
		this.data = d;
		this.order = d.order;
		if (!this.legend.firstChild)
			this.drawLegend();
		this.app.notify();
	});
};

/* Stretches the selected range over the axis, or shows the whole capture again. */
TimeAxis.prototype.zoom = function () {
	const all = [0, this.app.P.head.duration_ms], isWhole = this.view[1] - this.view[0] >= all[1];
	if (isWhole && !this.app.range)
		return;
	this.show(isWhole ? this.app.range.slice() : all);
};

TimeAxis.prototype.show = function (view) {
	if (String(view) === String(this.view))
		return;
	this.view = view;
	this.load();
};

TimeAxis.prototype.drawLegend = function () {
	const P = this.app.P, d = this.data, used = new Set();
	for (const b of this.of.has_states ? d.bins : [])
		for (let i = 0; i < b.length; i++)
			if (b[i])
				used.add(i % d.nrStates);
	/* "On CPU" has two states: with and without samples. */
	const isFirst = (i) => !P.kinds.isCpu[i] || i === P.kinds.isCpu.indexOf(true);
	if (P.kinds.isCpu.some((v, i) => v && used.has(i)))
		used.add(P.kinds.isCpu.indexOf(true));
	this.chips = this.states().filter((i) => used.has(i) && isFirst(i)).map((i) => {
		const s = P.head.states[i];
		const chip = el('button', {type: 'button', 'class': 'chip',
			title: 'Show only ' + s[1] + (s[2] ? ' (idle)' : '')}, this.legend);
		const dot = el('span', {'class': 'dot'}, chip);
		chip.append(s[1]);
		chip.addEventListener('click', () => this.app.set(
			{state: this.app.state === i ? null : i}));
		return {state: i, chip: chip, dot: dot};
	});
};

TimeAxis.prototype.colorOf = function (state) {
	const s = this.app.P.head.states[state], isDark = darkMode();
	if (this.isOther)
		return isDark ? '#5b8fd6' : '#5a8fd8';
	if (this.app.P.kinds.isCpu[state])
		return isDark ? '#4fae68' : '#3f9a58';
	if (s[2])
		return isDark ? '#2f353d' : '#e3e6ea';
	return cssColor(s[isDark ? 4 : 3]);
};

/* Running states first, idle ones last. */
TimeAxis.prototype.states = function () {
	const P = this.app.P, rank = (s) => P.kinds.isCpu[s] ? 0 : P.kinds.isIdle[s] ? 2 : 1;
	return P.head.states.map((s, k) => k).sort((a, b) => rank(a) - rank(b) || a - b);
};

/* ---- drawing ---------------------------------------------------------------------------------------- */

TimeAxis.prototype.layOut = function () {
	const d = this.data, W = Math.max(300, this.box.clientWidth);
	this.W = W;
	this.x0 = Math.min(LABEL_PX, Math.round(W / 5));
	this.w = W - this.x0 - 1;
	this.memoryY = this.hasCpu ? GRAPH_PX : 0;
	this.spanY = this.memoryY + (this.app.P.head.series.length ? GRAPH_PX : 0) + 2;
	this.stripY = this.spanY + (this.app.P.head.spans.length ? STRIP_PX : 0);
	this.nrStrips = d ? d.strips.length : Math.min(this.nrGroups, STRIPS_MAX);
	this.H = this.stripY + (this.nrStrips + (this.nrGroups > STRIPS_MAX ? 1 : 0)) * STRIP_PX + AXIS_PX;
};

TimeAxis.prototype.xOf = function (ms) {
	return this.x0 + this.w * (ms - this.view[0]) / (this.view[1] - this.view[0]);
};

TimeAxis.prototype.draw = function () {
	if (!this.isShown)
		return;
	const isWhole = this.view[1] - this.view[0] >= this.app.P.head.duration_ms;
	this.zoomed.textContent = isWhole ? 'Zoom to range' : 'Whole capture';
	this.zoomed.hidden = isWhole && !this.app.range;
	this.heated.setAttribute('aria-pressed', String(this.app.heat));
	this.heated.hidden = !this.app.isTimed();
	this.heatBox.hidden = !this.app.heat || !this.app.isTimed();
	for (const c of this.chips || []) {
		c.dot.style.background = this.colorOf(c.state);
		c.chip.setAttribute('aria-pressed', String(this.app.state === c.state));
	}
	this.drawBase();
	this.drawTop();
	if (!this.heatBox.hidden)
		this.heatMap.draw();
};

/* The pictures; drawn again only if they changed. */
TimeAxis.prototype.drawBase = function () {
	const app = this.app, groups = app.groups ? Array.from(app.groups).join() : '';
	const key = [this.box.clientWidth, this.view, groups, darkMode(), window.devicePixelRatio].join('|');
	if (this.drawnKey === key && this.drawnData === this.data)
		return;
	this.drawnKey = key;
	this.drawnData = this.data;
	this.layOut();
	const c = fitCanvas(this.canvas, this.W, this.H), css = getComputedStyle(this.box);
	for (const name of ['ink', 'soft', 'accent', 'line', 'panel'])
		this[name] = css.getPropertyValue('--' + name).trim();
	this.font = '11px ' + css.fontFamily;
	c.clearRect(0, 0, this.W, this.H);
	c.font = this.font;
	c.textBaseline = 'middle';
	this.drawTimes(c);
	if (this.data && this.hasCpu)
		this.drawCpu(c);
	if (app.P.head.series.length)
		this.drawMemory(c);
	const colors = app.P.head.states.map((s, k) => this.colorOf(k)), order = this.states();
	for (let i = 0; this.data && i < this.nrStrips; i++)
		this.drawStrip(c, i, colors, order);
	if (this.data && this.data.nrRest) {
		const y = this.stripY + this.nrStrips * STRIP_PX + STRIP_PX / 2;
		this.label(c, '+ ' + this.data.nrRest + ' more', y, false);
		c.fillStyle = this.soft;
		c.fillText(amountText(this.data.restActive, this.unit) +
			(this.unit === 'count' ? ' ' + this.of.count_name : this.isOther ? '' : ' active'), this.x0 + 4, y);
	}
	if (app.P.head.spans.length)
		this.drawSpans(c);
	this.drawMarks(c);
};

TimeAxis.prototype.drawSpans = function (c) {
	const y = this.spanY, h = STRIP_PX - 5, right = this.x0 + this.w;
	this.label(c, 'slowest calls', y + h / 2 + 1, true);
	c.fillStyle = this.accent;
	c.globalAlpha = 0.7;
	for (const [t, us] of this.app.spans()) {
		const a = Math.max(this.x0, this.xOf(t)), b = Math.min(right, this.xOf(t + us / 1000));
		if (b >= this.x0 && a <= right)
			c.fillRect(a, y + 1, Math.max(2, b - a), h);
	}
	c.globalAlpha = 1;
};

/* The measured calls under the mouse, if it is in their row. */
TimeAxis.prototype.spansAt = function (ev) {
	const y = ev.clientY - this.top.getBoundingClientRect().top, x = this.xOf(this.msAt(ev));
	return y < this.spanY || y >= this.stripY ? [] : this.app.spans().filter(([t, us]) =>
		x >= this.xOf(t) - 2 && x <= Math.max(this.xOf(t) + 2, this.xOf(t + us / 1000)) + 1);
};

TimeAxis.prototype.label = function (c, text, y, isOn, color) {
	c.fillStyle = color || (isOn ? this.ink : this.soft);
	c.textAlign = 'right';
	let t = text;
	while (t.length > 3 && c.measureText(t).width > this.x0 - 10)
		t = t.slice(0, t.endsWith('…') ? -2 : -1) + '…';
	c.fillText(t, this.x0 - 8, y);
	c.textAlign = 'left';
};

/* Time on a CPU in a bin of its own length, as a number of CPUs. */
TimeAxis.prototype.cpuAt = function (k) {
	const d = this.data;
	return d.cpu[k] / (this.unit === 'ns' ? d.cpuWidth * 1e6 : d.cpuWidth);
};

TimeAxis.prototype.drawCpu = function (c) {
	const values = Array.from(this.data.cpu, (v, k) => this.cpuAt(k));
	const isCpus = this.unit === 'ns' && !this.isOther, peak = Math.max(...values);
	const max = Math.max(this.unit === 'ns' ? 1 : 0, peak) || 1;
	const h = GRAPH_PX - 8, y = 2, n = values.length;
	c.fillStyle = this.colorOf(0);
	c.beginPath();
	c.moveTo(this.x0, y + h);
	for (let i = 0; i < n; i++) {
		const v = y + h - h * Math.min(1, values[i] / max);
		c.lineTo(this.x0 + this.w * i / n, v);
		c.lineTo(this.x0 + this.w * (i + 1) / n, v);
	}
	c.lineTo(this.x0 + this.w, y + h);
	c.fill();
	c.fillStyle = this.line;
	c.fillRect(this.x0, y + h, this.w, 1);
	const text = (v) => v < 10 ? v.toFixed(2) : grouped(v);
	this.label(c, isCpus ? 'CPUs in use' : this.isOther ? this.of.title : 'samples a ms', y + 10, true);
	this.label(c, 'up to ' + (!this.isOther ? text(peak) : this.unit === 'ns' ? text(peak) + ' threads' :
		amountText(1000 * peak, this.unit) + '/s'), y + 25, false);
};

/* Of memory over time, in the order of the page's series. */
function seriesColor(k) {
	const colors = darkMode() ? ['#e0a458', '#7db0ff', '#c583ba', '#ff8371'] :
		['#b3701a', '#2467c9', '#a05195', '#c0392b'];
	return colors[k % colors.length];
}

TimeAxis.prototype.drawMemory = function (c) {
	const list = this.app.P.head.series, y = this.memoryY + 2, h = GRAPH_PX - 8;
	const max = Math.max(1, ...list.map((s) => s.value.reduce((a, b) => Math.max(a, b), 0)));
	c.save();
	c.beginPath();
	c.rect(this.x0, 0, this.w, this.H);
	c.clip();
	list.forEach((s, k) => {
		c.strokeStyle = seriesColor(k);
		c.lineWidth = 1.5;
		c.beginPath();
		s.time_ms.forEach((t, i) => {
			const x = this.xOf(t), v = y + h - (h - 2) * s.value[i] / max;
			if (i)
				c.lineTo(x, v);
			else
				c.moveTo(x, v);
		});
		c.stroke();
	});
	c.restore();
	c.fillStyle = this.line;
	c.fillRect(this.x0, y + h, this.w, 1);
	list.slice(0, 2).forEach((s, k) => {
		const peak = s.value.reduce((a, b) => Math.max(a, b), 0);
		this.label(c, s.title + ' ≤ ' + bytesText(peak), y + 10 + 15 * k, true, seriesColor(k));
	});
};

/*
 * A bin's column is divided by state, the running part at the bottom. Its height is all threads of
 * the group during the whole bin.
 */
TimeAxis.prototype.drawStrip = function (c, i, colors, order) {
	const d = this.data, b = d.bins[i], h = STRIP_PX - 3, g = d.strips[i], n = d.nrStates;
	const group = this.app.P.groups.list[g], y = this.stripY + i * STRIP_PX;
	const isOn = !this.app.groups || this.app.groups.has(g), sums = new Float64Array(d.nrBins);
	for (let k = 0; k < d.nrBins; k++)
		for (let s = 0; s < n; s++)
			sums[k] += b[k * n + s];
	const most = sums.reduce((x, v) => Math.max(x, v), 0);
	const full = this.unit === 'ns' ? Math.min(most, group.threads.length * d.width * 1e6) || most : most;
	c.globalAlpha = isOn ? 1 : 0.3;
	const px = this.w / d.nrBins;
	for (let k = 0; k < d.nrBins; k++) {
		const x = Math.round(this.x0 + k * px), scale = sums[k] ? h / Math.max(sums[k], full) : 0;
		const w = Math.max(1, Math.round(this.x0 + (k + 1) * px) - x);
		let at = y + h;
		for (const s of scale ? order : []) {
			const v = b[k * n + s] * scale;
			if (!v)
				continue;
			c.fillStyle = colors[s];
			c.fillRect(x, at - v, w, v);
			at -= v;
		}
	}
	c.globalAlpha = 1;
	this.label(c, group.title, y + h / 2 + 0.5, isOn);
};

TimeAxis.prototype.drawTimes = function (c) {
	const [from, to] = this.view, want = (to - from) / Math.max(2, this.w / 90), y = this.H - AXIS_PX;
	const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 36e5];
	const step = steps.find((s) => s >= want) || 36e5;
	for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
		const x = Math.round(this.xOf(t)), text = axisText(t, step), half = c.measureText(text).width / 2;
		c.fillStyle = this.line;
		c.fillRect(x, 2, 1, y - 2);
		c.fillStyle = this.soft;
		if (x + half < this.W)
			c.fillText(text, Math.max(x - half, this.x0), y + 11);
	}
};

TimeAxis.prototype.drawMarks = function (c) {
	let right = 0;
	for (const [t, text] of this.app.P.head.marks) {
		const x = this.xOf(t);
		if (t < this.view[0] || t > this.view[1])
			continue;
		c.strokeStyle = c.fillStyle = this.accent;
		c.setLineDash([3, 2]);
		c.beginPath();
		c.moveTo(x, 0);
		c.lineTo(x, this.H - AXIS_PX);
		c.stroke();
		c.setLineDash([]);
		const shown = text.length > 40 ? text.slice(0, 39) + '…' : text;
		if (x < right) /* no room beside the text before */
			continue;
		c.fillText(shown, x + 3, 8);
		right = x + 6 + c.measureText(shown).width;
	}
};

/* The range, and the moment under the mouse. */
TimeAxis.prototype.drawTop = function () {
	const c = fitCanvas(this.top, this.W, this.H), h = this.H - AXIS_PX;
	const r = this.dragged || this.app.range, right = this.x0 + this.w;
	const clamp = (x) => Math.max(this.x0, Math.min(right, x));
	c.clearRect(0, 0, this.W, this.H);
	if (r) {
		const a = clamp(this.xOf(r[0])), b = clamp(this.xOf(r[1]));
		c.fillStyle = darkMode() ? 'rgba(10,12,15,.62)' : 'rgba(255,255,255,.68)';
		c.fillRect(this.x0, 0, a - this.x0, h);
		c.fillRect(b, 0, right - b, h);
		c.fillStyle = this.accent;
		c.fillRect(a, 0, 1.5, h);
		c.fillRect(b - 1.5, 0, 1.5, h);
		const text = timeText((r[1] - r[0]) * 1e6);
		c.font = this.font;
		const w = c.measureText(text).width + 8;
		if (b - a > w) {
			c.fillRect((a + b - w) / 2, h, w, 15);
			c.fillStyle = darkMode() ? '#10141a' : '#fff';
			c.textBaseline = 'middle';
			c.fillText(text, (a + b - w) / 2 + 4, h + 8);
		}
	}
	if (this.hoverMs !== undefined && !this.dragged) {
		c.fillStyle = this.ink;
		c.globalAlpha = 0.5;
		c.fillRect(Math.round(this.xOf(this.hoverMs)), 0, 1, h);
		c.globalAlpha = 1;
	}
};

/* ---- mouse and keyboard --------------------------------------------------------------------------- */

TimeAxis.prototype.msAt = function (ev) {
	const x = ev.clientX - this.top.getBoundingClientRect().left, [from, to] = this.view;
	return Math.max(from, Math.min(to, from + (x - this.x0) / this.w * (to - from)));
};

/* Index of the strip under the mouse; -1: none. */
TimeAxis.prototype.stripAt = function (ev) {
	const y = ev.clientY - this.top.getBoundingClientRect().top;
	const i = Math.floor((y - this.stripY) / STRIP_PX);
	return this.data && i >= 0 && i < this.nrStrips ? i : -1;
};

/* At least a millisecond. */
function spanRange([t, us], end) {
	return [Math.min(t, end - 1), Math.min(end, Math.max(t + 1, Math.ceil(t + us / 1000)))];
}

TimeAxis.prototype.listen = function () {
	let from = null, fromX = 0;
	this.top.addEventListener('pointerdown', (ev) => {
		from = this.msAt(ev);
		fromX = ev.clientX;
		try {
			this.top.setPointerCapture(ev.pointerId);
		} catch (e) { /* a pointer that is gone */ }
	});
	this.top.addEventListener('pointermove', (ev) => {
		const ms = this.msAt(ev);
		this.hoverMs = ms;
		if (from !== null && Math.abs(ev.clientX - fromX) > 3) {
			this.dragged = [Math.min(from, ms), Math.max(from, ms)];
			if (this.dragged[1] - this.dragged[0] >= 1)
				this.app.set({range: this.dragged});
		}
		this.drawTop();
		this.showTip(ev);
	});
	this.top.addEventListener('pointerup', (ev) => {
		const range = this.dragged, i = this.stripAt(ev);
		from = null;
		this.dragged = null;
		this.tip.hidden = true; /* it would cover the buttons below */
		if (range)
			this.app.set({range: range[1] - range[0] >= 1 ? range : null});
		else if (i >= 0)
			this.pick(this.data.strips[i], ev.shiftKey || ev.ctrlKey || ev.metaKey);
		else if (this.spansAt(ev).length)
			this.app.set({range: spanRange(this.spansAt(ev)[0], this.app.P.head.duration_ms)});
		else if (this.app.range)
			this.app.set({range: null});
	});
	this.top.addEventListener('pointerleave', () => {
		this.tip.hidden = true;
		this.hoverMs = undefined;
		this.drawTop();
	});
	this.top.addEventListener('dblclick', () => this.zoom());
	this.top.addEventListener('keydown', (ev) => this.key(ev));
};

/* A click on a strip selects its threads; the panel then shows what ended their waits. */
TimeAxis.prototype.pick = function (g, adds) {
	const now = this.app.groups, next = new Set(adds && now || []);
	if (!adds)
		return this.app.set({selected: -1,
			groups: now && now.size === 1 && now.has(g) ? null : new Set([g])});
	if (!next.delete(g))
		next.add(g);
	return this.app.set({selected: -1, groups: next.size ? next : null});
};

/* Left and right move the range, + and - change its length. */
TimeAxis.prototype.key = function (ev) {
	const end = this.app.P.head.duration_ms, r = this.app.range || [0, end];
	const by = (r[1] - r[0]) / 10;
	const moves = {ArrowLeft: [-by, -by], ArrowRight: [by, by], '+': [by, -by], '-': [-by, by]};
	const m = moves[ev.key];
	if (!m || ev.ctrlKey || ev.metaKey || ev.altKey)
		return;
	ev.preventDefault();
	ev.stopPropagation();
	const a = Math.max(0, r[0] + m[0]), b = Math.min(end, r[1] + m[1]);
	if (b - a >= 1)
		this.app.set({range: a === 0 && b === end ? null : [a, b]});
};

TimeAxis.prototype.showTip = function (ev) {
	const P = this.app.P, d = this.data, ms = this.msAt(ev), i = this.stripAt(ev), lines = [];
	lines.push(axisText(ms, (this.view[1] - this.view[0]) / 600) + (P.head.wall_start_ms ?
		' · ' + new Date(P.head.wall_start_ms + ms).toISOString().slice(11, 19) + ' UTC' : ''));
	const k = d ? Math.max(0, Math.min(d.nrBins - 1, Math.floor((ms - d.from) / d.width))) : 0;
	if (i >= 0) {
		lines.push(P.groups.list[d.strips[i]].title);
		const row = [];
		let sum = 0;
		for (let s = 0; s < d.nrStates; s++) {
			const v = d.bins[i][k * d.nrStates + s];
			sum += v;
			if (v && row.length && row[row.length - 1][1] === P.head.states[s][1])
				row[row.length - 1][0] += v;
			else if (v)
				row.push([v, P.head.states[s][1]]);
		}
		row.sort((a, b) => b[0] - a[0]);
		for (const [v, text] of row.slice(0, 5))
			lines.push(this.unit === 'ns' ? percentText(v, sum) + ' ' + text : amountText(v, this.unit) +
				' samples');
	} else {
		for (const [, us, thread, text] of this.spansAt(ev).slice(0, 5))
			lines.push(timeText(us * 1000) + ' ' + text + ', ' + P.head.threads[thread][2]);
		if (d && this.hasCpu)
			lines.push(this.cpuAt(Math.min(d.cpu.length - 1, Math.floor((ms - d.from) / d.cpuWidth))).toFixed(2) + (this.unit === 'ns' ? ' CPUs in use' : ' samples a ms'));
		for (const s of P.head.series)
			lines.push(s.title + ' ' + bytesText(s.value[Math.max(0,
				lowerBound(s.time_ms, s.time_ms.length, ms + 1) - 1)]));
	}
	for (const [t, text] of P.head.marks)
		if (Math.abs(this.xOf(t) - this.xOf(ms)) < 4)
			lines.push(text);
	placeTip(this.tip, this.box, ev, lines);
};

/* ---- the heat map --------------------------------------------------------------------------------- */

/* Columns of a second with cells of 20 ms, coarser for long captures, finer for short ones. */
function heatSize(duration_ms) {
	const column = [100, 1000, 10000, 60000, 600000].find((c) => duration_ms / c <= 240) || 3600000;
	return {columnMs: column, rowMs: column / 50};
}

function HeatMap(app, box, axis) {
	this.app = app;
	this.axis = axis;
	this.text = el('p', {'class': 'quiet'}, box);
	this.canvas = el('canvas', {role: 'img', 'aria-label': 'Heat map of the metric over time'}, box);
	let from = null;
	this.canvas.addEventListener('pointerdown', (ev) => {
		from = this.cellAt(ev);
	});
	this.canvas.addEventListener('pointermove', (ev) => {
		const cell = this.cellAt(ev), h = app.model && app.model.heat;
		if (!h)
			return;
		const ms = cell * h.rowMs;
		placeTip(axis.tip, axis.box, ev, [axisText(ms, 1) + ' to ' + axisText(ms + h.rowMs, 1),
			amountText(h.bins[cell] || 0, app.metricNow().unit)]);
	});
	this.canvas.addEventListener('pointerleave', () => {
		axis.tip.hidden = true;
	});
	this.canvas.addEventListener('pointerup', (ev) => {
		const to = this.cellAt(ev), h = app.model && app.model.heat;
		if (from === null || !h)
			return;
		const range = [Math.min(from, to) * h.rowMs, (Math.max(from, to) + 1) * h.rowMs];
		from = null;
		app.set({range: [range[0], Math.min(range[1], app.P.head.duration_ms)]});
	});
}

HeatMap.prototype.cellAt = function (ev) {
	const r = this.canvas.getBoundingClientRect(), h = this.app.model && this.app.model.heat;
	if (!h)
		return 0;
	const rows = Math.round(h.columnMs / h.rowMs), row = Math.floor((ev.clientY - r.top) / HEAT_PX);
	return Math.min(h.bins.length - 1, Math.floor(this.axis.msAt(ev) / h.columnMs) * rows +
		Math.max(0, Math.min(rows - 1, row)));
};

/* Columns stand where the time axis has their time. */
HeatMap.prototype.draw = function () {
	const h = this.app.model.heat, m = this.app.metricNow(), axis = this.axis;
	if (!h)
		return;
	const rows = Math.round(h.columnMs / h.rowMs), H = rows * HEAT_PX;
	const max = h.bins.reduce((a, b) => Math.max(a, b), 0) || 1, isDark = darkMode();
	this.text.textContent = m.title + ' on the time axis: a column is ' + timeText(h.columnMs * 1e6) + ', a cell ' +
		timeText(h.rowMs * 1e6) + ' of it, from top to bottom; the busiest has ' + amountText(max, m.unit) +
		'. Drag from one cell to another to select the time between them.';
	const c = fitCanvas(this.canvas, axis.W, H);
	c.clearRect(0, 0, axis.W, H);
	c.font = axis.font;
	c.textBaseline = 'middle';
	axis.label(c, 'from 0', 6, false);
	axis.label(c, 'to ' + timeText(h.columnMs * 1e6), H - 6, false);
	const r = this.app.range, right = axis.x0 + axis.w;
	for (let i = 0; i < h.bins.length; i++) {
		const v = Math.sqrt(h.bins[i] / max), t = i * h.rowMs, column = Math.floor(i / rows);
		const x = Math.max(axis.x0, axis.xOf(column * h.columnMs)), end = axis.xOf((column + 1) * h.columnMs);
		if (x >= right || end <= x)
			continue;
		c.globalAlpha = r && (t + h.rowMs <= r[0] || t >= r[1]) ? 0.25 : 1;
		c.fillStyle = isDark ? 'rgb(' + Math.round(32 + 215 * v) + ',' + Math.round(36 + 120 * v) + ',' +
			Math.round(44 + 20 * v) + ')' : 'rgb(' + Math.round(246 - 66 * v) + ',' +
			Math.round(246 - 190 * v) + ',' + Math.round(244 - 210 * v) + ')';
		c.fillRect(x, i % rows * HEAT_PX, Math.min(end, right) - x - (end - x > 6 ? 1 : 0), HEAT_PX);
	}
	c.globalAlpha = 1;
};
