/* Shows the values of a chart at the pointer. The data are JSON in the file's metadata element. */
var svg = document.documentElement;
var data = JSON.parse(svg.querySelector('metadata.data').textContent);
var plot = svg.querySelector('.plot');
var NS = 'http://www.w3.org/2000/svg';
var UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
var at = -1;

function bytes(v) {
	var u = 0;
	while (v >= 999.5 && u < 6) {
		v /= 1024;
		u++;
	}
	return (u === 0 ? v : v < 9.995 ? v.toFixed(2) : v < 99.95 ? v.toFixed(1) : v.toFixed(0)) +
	       ' ' + UNITS[u];
}

function make(parent, name, attributes, text) {
	var e = document.createElementNS(NS, name);
	for (var k in attributes)
		e.setAttribute(k, attributes[k]);
	if (text !== undefined)
		e.textContent = text;
	parent.appendChild(e);
	return e;
}

var hover = make(svg, 'g', {'class': 'hover', visibility: 'hidden'});
var cursor = make(hover, 'line', {'class': 'cursor', y1: data.top, y2: data.bottom});
var panel = make(hover, 'rect', {'class': 'panel', rx: 6, width: 210,
				 height: 30 + 18 * data.names.length});
var rows = [make(hover, 'text', {'class': 'sub'})];
var keys = [];
data.names.forEach(function (name, i) {
	keys.push(make(hover, 'rect', {width: 10, height: 10, rx: 2,
				       style: 'fill:var(--s' + data.colors[i] + ')'}));
	rows.push(make(hover, 'text', {'font-size': 12}));
	rows[rows.length - 1].appendChild(document.createTextNode(name));
});
var values = data.names.map(function () {
	return make(hover, 'text', {'font-size': 12, 'text-anchor': 'end'});
});

function x_of(i) {
	var span = data.ns[data.ns.length - 1] - data.ns[0];
	return data.left + (span ? (data.ns[i] - data.ns[0]) / span : 0) * (data.right - data.left);
}

function show(i) {
	at = Math.max(0, Math.min(data.ns.length - 1, i));
	var x = x_of(at);
	var left = x > (data.left + data.right) / 2 ? x - 220 : x + 10;
	var top = data.top + 8;
	hover.setAttribute('visibility', 'visible');
	cursor.setAttribute('x1', x);
	cursor.setAttribute('x2', x);
	panel.setAttribute('x', left);
	panel.setAttribute('y', top);
	rows[0].textContent = (data.ns[at] / 1e9).toFixed(2) + ' s';
	rows.forEach(function (row, k) {
		row.setAttribute('x', left + (k ? 28 : 12));
		row.setAttribute('y', top + 18 + 18 * k);
	});
	keys.forEach(function (key, k) {
		key.setAttribute('x', left + 12);
		key.setAttribute('y', top + 27 + 18 * k);
	});
	values.forEach(function (value, k) {
		value.setAttribute('x', left + 198);
		value.setAttribute('y', top + 36 + 18 * k);
		value.textContent = data.bytes[k][at] === null ? '-' : bytes(data.bytes[k][at]);
	});
}

function nearest(x) {
	var lo = 0;
	var hi = data.ns.length - 1;
	while (lo < hi) {
		var mid = lo + hi >> 1;
		if (x_of(mid) < x)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo > 0 && x - x_of(lo - 1) < x_of(lo) - x ? lo - 1 : lo;
}

plot.addEventListener('pointermove', function (e) {
	var p = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
	show(nearest(p.x));
});
plot.addEventListener('pointerleave', function () {
	hover.setAttribute('visibility', 'hidden');
});
plot.addEventListener('keydown', function (e) {
	var step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0;
	if (step)
		show(at < 0 ? 0 : at + step);
	else if (e.key === 'Escape')
		hover.setAttribute('visibility', 'hidden');
	else
		return;
	e.preventDefault();
});
