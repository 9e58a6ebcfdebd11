/*
 * The time axis: CPUs in use and memory over time, a strip for each of the busiest thread groups,
 * coloured by state, and marks. Dragging selects a range of time, a click on a strip its threads.
 */
const STRIPS_MAX = 15, STRIP_PX = 15, GRAPH_PX = 44, LABEL_PX = 168, AXIS_PX = 18;

/* The stream of which the strips are: thread time, else samples; -1: the recording has neither. */
function axisStream(P) {
	const best = P.streams.findIndex((s) => s.head.has_states && s.time);
	return best >= 0 ? best : P.streams.findIndex((s) => s.time && s.head.noun === 'samples');
}

/*
 * Sums of weights by (group, bin, state). Rows that are sums over a second are spread over it evenly.
 */
function binRows(P, streamIdx, nrBins) {
	const s = P.streams[streamIdx], end = Math.max(P.head.duration_ms, 1);
	const nrGroups = P.groups.list.length, nrStates = P.head.states.length;
	const bins = new Array(nrGroups), active = new Float64Array(nrGroups);
	const width = end / nrBins, kinds = P.kinds;
	for (let i = 0; i < s.n; i++) {
		const g = P.groups.of[s.thread[i]], state = s.state ? s.state[i] : 0;
		const b = bins[g] || (bins[g] = new Float32Array(nrBins * nrStates));
		if (!kinds.isIdle[state] || !s.state)
			active[g] += s.weight[i];
		addToBins(b, state, nrStates, width, s.time[i], rowLength(P, s, i), s.weight[i]);
	}
	return {bins: bins, active: active, nrBins: nrBins, nrStates: nrStates, width: width};
}

function TimeAxis(app, parent) {
	const P = app.P;
	this.app = app;
	this.stream = axisStream(P);
	this.isShown = (this.stream >= 0 || P.head.series.length) && P.head.duration_ms > 0;
	this.box = el('section', {'class': 'axis', 'aria-label': 'Time axis'}, parent);
	if (!this.isShown) {
		el('p', {'class': 'quiet'}, this.box).textContent =
			'This recording has no times: no time axis.';
		return;
	}
	this.canvas = el('canvas', {tabindex: '0', role: 'img', 'aria-label':
		'Threads over time; drag to select a range, click a strip to select its threads'}, this.box);
	this.tip = el('div', {'class': 'tip', hidden: ''}, this.box);
	if (this.stream < 0) { /* readings of memory only */
		this.strips = [];
		this.rest = [];
		this.listen();
		return;
	}
	const all = binRows(P, this.stream, 600);
	const order = P.groups.list.map((g, i) => i).filter((i) => all.active[i] > 0 || all.bins[i])
		.sort((a, b) => all.active[b] - all.active[a] || a - b);
	this.strips = order.slice(0, STRIPS_MAX);
	this.rest = order.slice(STRIPS_MAX);
	this.restActive = this.rest.reduce((sum, g) => sum + all.active[g], 0);
	this.data = all;
	this.legend = el('div', {'class': 'legend'}, this.box);
	this.drawLegend();
	this.listen();
}

TimeAxis.prototype.drawLegend = function () {
	const P = this.app.P, used = new Set(), d = this.data;
	if (P.streams[this.stream].state)
		for (const g of this.strips)
			for (let i = 0; i < d.bins[g].length; i++)
				if (d.bins[g][i])
					used.add(i % d.nrStates);
	const seen = new Set();
	for (const i of Array.from(used).sort((a, b) => a - b)) {
		const s = P.head.states[i];
		if (seen.has(s[1]))
			continue;
		seen.add(s[1]);
		const chip = el('button', {type: 'button', 'class': 'chip',
			title: 'Show only ' + s[1]}, this.legend);
		const dot = el('span', {'class': 'dot'}, chip);
		dot.style.background = this.colorOf(i);
		chip.append(s[1]);
		chip.addEventListener('click', () => this.app.set(
			{state: this.app.state === i || P.kinds.isCpu[i] ? null : i}));
	}
};

TimeAxis.prototype.colorOf = function (state) {
	const s = this.app.P.head.states[state], isDark = darkMode();
	if (this.app.P.kinds.isCpu[state])
		return isDark ? '#4fae68' : '#3f9a58';
	if (s[2])
		return isDark ? '#2f353d' : '#e6e8eb';
	return cssColor(s[isDark ? 4 : 3]);
};

TimeAxis.prototype.layOut = function () {
	const P = this.app.P, W = Math.max(320, this.box.clientWidth);
	const hasMemory = P.head.series.length > 0;
	this.W = W;
	this.x0 = Math.min(LABEL_PX, W / 4);
	this.w = W - this.x0 - 8;
	this.memoryY = this.stream >= 0 ? GRAPH_PX : 0;
	this.stripY = this.memoryY + (hasMemory ? GRAPH_PX : 0) + 4;
	this.H = this.stripY + this.strips.length * STRIP_PX + (this.rest.length ? STRIP_PX : 0) + AXIS_PX;
};

TimeAxis.prototype.xOf = function (ms) {
	return this.x0 + this.w * ms / this.app.P.head.duration_ms;
};

TimeAxis.prototype.draw = function () {
	if (!this.isShown)
		return;
	this.layOut();
	const c = fitCanvas(this.canvas, this.W, this.H), css = getComputedStyle(this.box);
	this.ink = css.getPropertyValue('--ink').trim();
	this.soft = css.getPropertyValue('--soft').trim();
	this.accent = css.getPropertyValue('--accent').trim();
	c.clearRect(0, 0, this.W, this.H);
	c.font = '11px ' + css.fontFamily;
	c.textBaseline = 'middle';
	if (this.stream >= 0)
		this.drawCpu(c);
	if (this.app.P.head.series.length)
		this.drawMemory(c);
	this.strips.forEach((g, i) => this.drawStrip(c, g, this.stripY + i * STRIP_PX));
	if (this.rest.length) {
		c.fillStyle = this.soft;
		const unit = this.app.P.streams[this.stream].head.unit;
		c.fillText('+ ' + this.rest.length + ' more groups, ' + amountText(this.restActive, unit) +
			(unit === 'count' ? '' : ' active'), this.x0,
			this.stripY + this.strips.length * STRIP_PX + STRIP_PX / 2);
	}
	this.drawTimes(c);
	this.drawMarks(c);
	this.drawRange(c);
};

TimeAxis.prototype.label = function (c, text, y, isOn) {
	c.fillStyle = isOn ? this.ink : this.soft;
	c.textAlign = 'right';
	let t = text;
	while (t.length > 3 && c.measureText(t).width > this.x0 - 12)
		t = t.slice(0, -2) + (t.endsWith('…') ? '' : '…');
	c.fillText(t.replace(/…+$/, '…'), this.x0 - 8, y);
	c.textAlign = 'left';
};

/* Time on a CPU a bin, as a number of CPUs. */
TimeAxis.prototype.cpuSeries = function () {
	const P = this.app.P, d = this.data, s = P.streams[this.stream];
	const out = new Float64Array(d.nrBins);
	for (const g of this.strips.concat(this.rest))
		for (let k = 0; k < d.nrBins; k++)
			for (let i = 0; i < d.nrStates; i++)
				if (P.kinds.isCpu[i])
					out[k] += d.bins[g][k * d.nrStates + i];
	const scale = s.head.unit === 'ns' ? 1 / (d.width * 1e6) : 1 / d.width;
	return {values: out.map((v) => v * scale), isCpus: s.head.unit === 'ns'};
};

TimeAxis.prototype.drawCpu = function (c) {
	const series = this.cpuSeries(), max = Math.max(series.isCpus ? 1 : 0, ...series.values) || 1;
	this.cpus = series;
	this.area(c, series.values, 2, max, this.colorOf(0));
	this.label(c, series.isCpus ? 'CPUs in use' : 'samples a ms', 2 + 8, true);
	this.label(c, 'max ' + max.toFixed(max < 10 ? 2 : 0), 2 + 22, false);
};

TimeAxis.prototype.area = function (c, values, y, max, color) {
	const h = GRAPH_PX - 8, n = values.length;
	c.fillStyle = color;
	c.beginPath();
	c.moveTo(this.x0, y + h);
	for (let i = 0; i < n; i++) {
		const v = y + h - h * Math.min(1, values[i] / max);
		c.lineTo(this.x0 + this.w * i / n, v);
		c.lineTo(this.x0 + this.w * (i + 1) / n, v);
	}
	c.lineTo(this.x0 + this.w, y + h);
	c.fill();
};

TimeAxis.prototype.drawMemory = function (c) {
	const list = this.app.P.head.series, y = this.memoryY + 2, h = GRAPH_PX - 8;
	const max = Math.max(1, ...list.map((s) => s.value.reduce((a, b) => Math.max(a, b), 0)));
	list.forEach((s, k) => {
		c.strokeStyle = k ? this.accent : this.soft;
		c.lineWidth = 1.5;
		c.beginPath();
		s.time_ms.forEach((t, i) => {
			const x = this.xOf(t), v = y + h - h * s.value[i] / max;
			if (i)
				c.lineTo(x, v);
			else
				c.moveTo(x, v);
		});
		c.stroke();
	});
	this.label(c, list.map((s) => s.title).join(', '), y + 8, true);
	this.label(c, 'max ' + bytesText(max), y + 22, false);
};

/*
 * A bin's column is divided by state, the running part at the bottom. Its height is all threads of
 * the group during the whole bin.
 */
TimeAxis.prototype.drawStrip = function (c, g, y) {
	const P = this.app.P, d = this.data, b = d.bins[g], h = STRIP_PX - 3;
	const group = P.groups.list[g], isTime = P.streams[this.stream].head.unit === 'ns';
	const isOn = !this.app.groups || this.app.groups.has(g);
	let most = 0;
	for (let k = 0; k < d.nrBins; k++) {
		let sum = 0;
		for (let i = 0; i < d.nrStates; i++)
			sum += b[k * d.nrStates + i];
		most = Math.max(most, sum);
	}
	const full = isTime ? Math.min(most, group.threads.length * d.width * 1e6) || most : most;
	c.globalAlpha = isOn ? 1 : 0.3;
	const px = this.w / d.nrBins;
	for (let k = 0; k < d.nrBins; k++) {
		let sum = 0, at = y + h;
		for (let i = 0; i < d.nrStates; i++)
			sum += b[k * d.nrStates + i];
		if (!sum)
			continue;
		const scale = h / Math.max(sum, full);
		for (let i = 0; i < d.nrStates; i++) {
			const v = b[k * d.nrStates + this.stateOrder(i)] * scale;
			if (!v)
				continue;
			c.fillStyle = this.colors[this.stateOrder(i)];
			c.fillRect(this.x0 + k * px, at - v, px + 0.4, v);
			at -= v;
		}
	}
	c.globalAlpha = 1;
	this.label(c, group.title, y + h / 2, isOn);
};

/* Running states first. */
TimeAxis.prototype.stateOrder = function (i) {
	if (!this.order) {
		const P = this.app.P, rank = (s) => P.kinds.isCpu[s] ? 0 : P.kinds.isIdle[s] ? 2 : 1;
		this.order = P.head.states.map((s, k) => k).sort((a, b) => rank(a) - rank(b) || a - b);
	}
	this.colors = this.colors || this.app.P.head.states.map((s, k) => this.colorOf(k));
	return this.order[i];
};

TimeAxis.prototype.drawTimes = function (c) {
	const end = this.app.P.head.duration_ms, want = end / Math.max(2, this.w / 90);
	const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 36e5];
	const step = steps.find((s) => s >= want) || 36e5, y = this.H - AXIS_PX;
	c.strokeStyle = c.fillStyle = this.soft;
	c.textAlign = 'center';
	for (let t = 0; t <= end; t += step) {
		const x = Math.round(this.xOf(t)) + 0.5;
		c.globalAlpha = 0.25;
		c.beginPath();
		c.moveTo(x, 2);
		c.lineTo(x, y);
		c.stroke();
		c.globalAlpha = 1;
		if (x < this.W - 16)
			c.fillText(axisText(t, step), Math.max(x, this.x0 + 10), y + 10);
	}
	c.textAlign = 'left';
};

TimeAxis.prototype.drawMarks = function (c) {
	for (const [t, text] of this.app.P.head.marks) {
		const x = this.xOf(t);
		c.strokeStyle = this.accent;
		c.setLineDash([3, 2]);
		c.beginPath();
		c.moveTo(x, 0);
		c.lineTo(x, this.H - AXIS_PX);
		c.stroke();
		c.setLineDash([]);
		c.fillStyle = this.accent;
		c.fillText(text.slice(0, 40), x + 3, 8);
	}
};

TimeAxis.prototype.drawRange = function (c) {
	const r = this.dragged || this.app.range;
	if (!r)
		return;
	const a = this.xOf(r[0]), b = this.xOf(r[1]), h = this.H - AXIS_PX;
	c.fillStyle = darkMode() ? 'rgba(0,0,0,.45)' : 'rgba(255,255,255,.6)';
	c.fillRect(this.x0, 0, a - this.x0, h);
	c.fillRect(b, 0, this.x0 + this.w - b, h);
	c.strokeStyle = this.accent;
	c.lineWidth = 1;
	c.strokeRect(a + 0.5, 0.5, Math.max(1, b - a - 1), h - 1);
};

/* ---- mouse and keyboard --------------------------------------------------------------------------- */

TimeAxis.prototype.msAt = function (ev) {
	const x = ev.clientX - this.canvas.getBoundingClientRect().left;
	const end = this.app.P.head.duration_ms;
	return Math.max(0, Math.min(end, (x - this.x0) / this.w * end));
};

TimeAxis.prototype.stripAt = function (ev) {
	const y = ev.clientY - this.canvas.getBoundingClientRect().top;
	const i = Math.floor((y - this.stripY) / STRIP_PX);
	return i >= 0 && i < this.strips.length ? this.strips[i] : -1;
};

TimeAxis.prototype.listen = function () {
	let from = null, fromX = 0;
	this.canvas.addEventListener('pointerdown', (ev) => {
		from = this.msAt(ev);
		fromX = ev.clientX;
		try {
			this.canvas.setPointerCapture(ev.pointerId);
		} catch (e) { /* a pointer that is gone */ }
	});
	this.canvas.addEventListener('pointermove', (ev) => {
		if (from !== null && Math.abs(ev.clientX - fromX) > 3) {
			const to = this.msAt(ev);
			this.dragged = [Math.min(from, to), Math.max(from, to)];
			this.draw();
		}
		this.showTip(ev);
	});
	this.canvas.addEventListener('pointerup', (ev) => {
		const range = this.dragged, g = this.stripAt(ev);
		from = null;
		this.dragged = null;
		if (range && range[1] - range[0] >= 1)
			this.app.set({range: range});
		else if (g >= 0)
			this.pick(g, ev.shiftKey || ev.ctrlKey || ev.metaKey);
		else if (this.app.range)
			this.app.set({range: null});
	});
	this.canvas.addEventListener('pointerleave', () => {
		this.tip.hidden = true;
	});
	this.canvas.addEventListener('keydown', (ev) => this.key(ev));
};

TimeAxis.prototype.pick = function (g, adds) {
	const now = this.app.groups;
	if (!adds)
		return this.app.set({groups: now && now.size === 1 && now.has(g) ? null : new Set([g])});
	const next = new Set(now || []);
	if (!next.delete(g))
		next.add(g);
	return this.app.set({groups: next.size ? next : null});
};

/* Left and right move the range, + and - change its length. */
TimeAxis.prototype.key = function (ev) {
	const end = this.app.P.head.duration_ms, r = this.app.range || [0, end];
	const by = (r[1] - r[0]) / 10;
	const moves = {ArrowLeft: [-by, -by], ArrowRight: [by, by], '+': [by, -by], '-': [-by, by]};
	const m = moves[ev.key];
	if (!m)
		return;
	ev.preventDefault();
	ev.stopPropagation();
	const a = Math.max(0, r[0] + m[0]), b = Math.min(end, r[1] + m[1]);
	if (b - a >= 1)
		this.app.set({range: a === 0 && b === end ? null : [a, b]});
};

TimeAxis.prototype.showTip = function (ev) {
	const P = this.app.P, d = this.data, ms = this.msAt(ev), g = this.stripAt(ev);
	const k = d ? Math.min(d.nrBins - 1, Math.floor(ms / d.width)) : 0, lines = [];
	lines.push(axisText(ms, P.head.duration_ms < 60000 ? 1 : 100) + (P.head.wall_start_ms ?
		' · ' + new Date(P.head.wall_start_ms + ms).toISOString().slice(11, 19) + ' UTC' : ''));
	if (g >= 0) {
		lines.push(P.groups.list[g].title);
		const row = [];
		let sum = 0;
		for (let i = 0; i < d.nrStates; i++) {
			const v = d.bins[g][k * d.nrStates + i];
			sum += v;
			if (v)
				row.push([v, P.head.states[i][1]]);
		}
		row.sort((a, b) => b[0] - a[0]);
		for (const [v, text] of row.slice(0, 5))
			lines.push(P.streams[this.stream].state ? percentText(v, sum) + ' ' + text :
				amountText(v, P.streams[this.stream].head.unit));
	} else {
		if (d)
			lines.push(this.cpus.values[k].toFixed(2) + (this.cpus.isCpus ? ' CPUs in use' :
				' samples a ms'));
		for (const s of P.head.series) {
			const i = Math.max(0, lowerBound(s.time_ms, s.time_ms.length, ms + 1) - 1);
			lines.push(s.title + ' ' + bytesText(s.value[i]));
		}
	}
	placeTip(this.tip, this.box, ev, lines);
};
