/*
 * The source lines of a function, in the panel at the right. They are of the whole recording, so the
 * block that has them is read only when a function is selected for the first time.
 */
const LINES_SHOWN = 12;
const blocksRead = {};

/* A block of JSON that is read when it is needed: its functions by "name\0module". */
function readBlock(id) {
	const element = document.getElementById(id);
	const read = async function () {
		const bytes = await inflate(decodeBase64(element.textContent.trim()));
		const block = JSON.parse(new TextDecoder().decode(bytes));
		block.by = new Map(block.functions.map((f) => [f[0] + '\0' + f[1], f]));
		return block;
	};
	if (element && !blocksRead[id])
		blocksRead[id] = read();
	return element && blocksRead[id];
}

function lineName(file, line) {
	return file.slice(file.lastIndexOf('/') + 1) + ':' + line;
}

Details.prototype.drawLines = function (sym) {
	const reading = readBlock('lines'), T = this.app.P.tree;
	if (!reading)
		return;
	const box = el('div', {'class': 'lines'}, this.box);
	reading.then(function (read) {
		const f = read.by.get(T.name[sym] + '\0' + T.module[sym]), lines = f && f[2];
		if (!lines)
			return;
		el('h4', {}, box).textContent = 'Source lines';
		const hottest = lines.slice().sort((a, b) => b[3] - a[3] || b[2] - a[2]).slice(0, LINES_SHOWN);
		hottest.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
		const ul = el('ul', {'class': 'plain'}, box);
		for (const [file, line, self, total, text] of hottest) {
			const li = el('li', {title: read.files[file] + ':' + line}, ul);
			el('span', {'class': 'num'}, li).textContent = percentText(total, read.all) + ' ';
			li.append(lineName(read.files[file], line));
			if (self)
				el('span', {'class': 'quiet'}, li).textContent = ' self ' + percentText(self, read.all);
			if (text)
				el('code', {title: text}, li).textContent = text;
		}
		const more = lines.length > LINES_SHOWN ? (lines.length - LINES_SHOWN) + ' more lines; ' : '';
		el('p', {'class': 'quiet'}, box).textContent = more + 'of ' + read.title + ' of the whole recording';
	}, function () {
		box.remove();
	});
};
