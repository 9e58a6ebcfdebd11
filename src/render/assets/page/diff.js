/*
 * The page of a comparison: sorts and filters the table of functions, and connects it with the graph
 * (flame.js, by events at the svg element). Names become text nodes only, never markup.
 */
var svg = document.querySelector('svg.assay-flame');
var table = Array.prototype.slice.call(document.querySelectorAll('main table')).pop();
var body = table.tBodies[0], rows = Array.prototype.slice.call(body.rows);
var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
var nameColumn = rows.length ? heads.map(function (h, i) {
	return rows[0].cells[i].className;
}).findIndex(function (cls) {
	return cls !== 'num' && cls !== 'note';
}) : -1;

function make(tag, attrs, parent, text) {
	var e = document.createElement(tag);
	for (var k in attrs)
		e.setAttribute(k, attrs[k]);
	if (text)
		e.textContent = text;
	parent.appendChild(e);
	return e;
}

function tell(type, detail) {
	if (svg)
		svg.dispatchEvent(new CustomEvent(type, {detail: detail}));
}

/* ---- sorting ------------------------------------------------------------------------------ */

function keyOf(row, column) {
	var cell = row.cells[column], v = cell.getAttribute('data-v');
	return v === null ? cell.textContent : +v;
}

function sortBy(column) {
	var isDown = heads[column].getAttribute('aria-sort') !== 'descending';
	heads.forEach(function (h, i) {
		if (i === column)
			h.setAttribute('aria-sort', isDown ? 'descending' : 'ascending');
		else
			h.removeAttribute('aria-sort');
	});
	var order = rows.map(function (row, i) {
		return [keyOf(row, column), i];
	});
	order.sort(function (a, b) {
		var by = typeof a[0] === 'string' ? (a[0] < b[0] ? 1 : a[0] > b[0] ? -1 : 0) : b[0] - a[0];
		return (isDown ? by : -by) || a[1] - b[1];
	});
	order.forEach(function (o) {
		body.appendChild(rows[o[1]]);
	});
}

heads.forEach(function (h, i) {
	var text = h.textContent;
	h.textContent = '';
	make('button', {type: 'button'}, h, text).addEventListener('click', function () {
		sortBy(i);
	});
});

/* ---- filter and sides --------------------------------------------------------------------- */

var tools = document.createElement('div'), filter, only, count;
tools.className = 'tools';
table.parentNode.parentNode.insertBefore(tools, table.parentNode);
filter = make('input', {type: 'search', placeholder: 'Filter (regex)', 'aria-label': 'Filter rows',
	spellcheck: 'false'}, tools);
var label = make('label', {}, tools);
only = make('input', {type: 'checkbox'}, label);
label.appendChild(document.createTextNode(' only marked rows'));
count = make('span', {'class': 'quiet', role: 'status'}, tools);

function compile(text) {
	try {
		return new RegExp(text, /[A-Z]/.test(text) ? '' : 'i');
	} catch (e) {
		return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
	}
}

function applyFilter() {
	var re = compile(filter.value), nr = 0;
	rows.forEach(function (row) {
		var isShown = (!only.checked || row.classList.contains('marked')) && re.test(row.textContent);
		row.hidden = !isShown;
		nr += isShown ? 1 : 0;
	});
	count.textContent = nr + ' of ' + rows.length + ' rows';
}
filter.addEventListener('input', applyFilter);
only.addEventListener('change', applyFilter);

if (svg) {
	var sides = make('span', {'class': 'sides', role: 'group', 'aria-label': 'Widths of the graph'}, tools);
	[['both', 'Before + after'], ['before', 'Before'], ['after', 'After']].forEach(function (s) {
		var b = make('button', {type: 'button', 'data-side': s[0]}, sides, s[1]);
		b.addEventListener('click', function () {
			tell('assay-show', s[0]);
		});
	});
	svg.addEventListener('assay-side', function (ev) {
		Array.prototype.forEach.call(sides.children, function (b) {
			b.setAttribute('aria-pressed', String(b.getAttribute('data-side') === ev.detail));
		});
	});
	sides.children[0].setAttribute('aria-pressed', 'true');
}

/* ---- rows --------------------------------------------------------------------------------- */

rows.forEach(function (row) {
	var note = row.querySelector('.note');
	if (note && note.textContent)
		note.classList.add(/less|gone/.test(note.textContent) ? 'less' : 'more');
	if (nameColumn < 0 || !svg || row.cells[nameColumn].textContent === '<other>')
		return;
	var cell = row.cells[nameColumn], text = cell.textContent;
	cell.textContent = '';
	make('button', {type: 'button', title: 'Search in the graph'}, cell, text)
		.addEventListener('click', function () {
			/* of a stack, its leaf */
			var name = text.split(' < ')[0].replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
			tell('assay-search', '^' + name + '$');
			svg.scrollIntoView({block: 'nearest'});
		});
});
applyFilter();
