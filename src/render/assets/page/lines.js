/*
 * The source lines of a function, in the panel at the right. They are of the whole recording, so the
 * block that has them is read only when a function is selected for the first time.
 */
const LINES_SHOWN = 12;
let linesRead = null;

/* By function, "name\0module": [file, line, self, total] each. */
async function readLines(element) {
	const bytes = await inflate(decodeBase64(element.textContent.trim()));
	const read = JSON.parse(new TextDecoder().decode(bytes)), by = new Map();
	for (const [name, module, lines] of read.functions)
		by.set(name + '\0' + module, lines);
	return {by: by, files: read.files, all: read.all, title: read.title};
}

function lineName(file, line) {
	return file.slice(file.lastIndexOf('/') + 1) + ':' + line;
}

Details.prototype.drawLines = function (sym) {
	const element = document.getElementById('lines'), T = this.app.P.tree;
	if (!element)
		return;
	const box = el('div', {'class': 'lines'}, this.box);
	linesRead = linesRead || readLines(element);
	linesRead.then(function (read) {
		const lines = read.by.get(T.name[sym] + '\0' + T.module[sym]);
		if (!lines)
			return;
		el('h4', {}, box).textContent = 'Source lines';
		const hottest = lines.slice().sort((a, b) => b[3] - a[3] || b[2] - a[2]).slice(0, LINES_SHOWN);
		hottest.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
		const ul = el('ul', {'class': 'plain'}, box);
		for (const [file, line, self, total] of hottest) {
			const li = el('li', {title: read.files[file] + ':' + line}, ul);
			el('span', {'class': 'num'}, li).textContent = percentText(total, read.all) + ' ';
			li.append(lineName(read.files[file], line));
			if (self)
				el('span', {'class': 'quiet'}, li).textContent = ' self ' + percentText(self, read.all);
		}
		const more = lines.length > LINES_SHOWN ? (lines.length - LINES_SHOWN) + ' more lines; ' : '';
		el('p', {'class': 'quiet'}, box).textContent = more + 'of ' + read.title + ' of the whole recording';
	}, function () {
		box.remove();
	});
};
