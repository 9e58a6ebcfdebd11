/*
 * The assembly of a function, in the panel at the right, with the samples of the selection at each
 * instruction. Runs of instructions without samples are closed; a click opens them.
 */
const CODE_AROUND = 3, CODE_SHARE = 0.002;

/* The function's own code; of an inlined function that code into which most of it is inlined. */
function codeOf(block, key, places) {
	const own = block.by.get(key), sum = (f, k) => f[3].reduce((v, i) => v + (places.get(i[2]) || [0, 0])[k], 0);
	if (own)
		return [own, 1];
	let best = null, most = 0;
	for (const f of block.functions) {
		const v = sum(f, 0);
		if (v > most)
			[best, most] = [f, v];
	}
	return [best, 0];
}

/* Which instructions are shown: those with a share of @all worth a look, and some around them. */
function openRows(list, weight, all, isWhole) {
	const shows = new Uint8Array(list.length);
	list.forEach((insn, i) => {
		if (isWhole || weight(insn) > all * CODE_SHARE)
			shows.fill(1, Math.max(0, i - CODE_AROUND), i + CODE_AROUND + 1);
	});
	return shows;
}

Details.prototype.drawCode = function (details) {
	const reading = readBlock('code'), T = this.app.P.tree, sym = details.sym;
	if (!reading || !details.places)
		return;
	const box = el('div', {'class': 'code'}, this.box), places = new Map();
	for (const [at, own, all] of details.places)
		places.set(at, [own, all]);
	reading.then((block) => {
		const [f, which] = codeOf(block, T.name[sym] + '\0' + T.module[sym], places);
		if (!f)
			return;
		el('h4', {}, box).textContent = 'Assembly' + (which ? '' : ' of ' + shortName(f[0], 36) +
			', into which it is inlined');
		if (f[2])
			el('p', {'class': 'quiet'}, box).textContent = 'None: ' + f[2] + '.';
		else
			this.listCode(box, f[3], (insn) => (places.get(insn[2]) || [0, 0])[which]);
	}, () => box.remove());
};

Details.prototype.listCode = function (box, insns, weight) {
	const all = insns.reduce((sum, i) => sum + (typeof i === 'number' ? 0 : weight(i)), 0), rows = [];
	let vaddr = 0;
	for (const insn of insns)
		rows.push(typeof insn === 'number' ? {skipped: insn} :
			{at: vaddr += insn[0], insn: insn, v: weight(insn)});
	const lines = el('div', {'class': 'asm', role: 'table', tabindex: '0'}, box), max = Math.max(...rows.map((r) => r.v || 0));
	const draw = (isWhole) => {
		const shows = openRows(rows, (r) => r.v || 0, all, isWhole || !all);
		lines.textContent = '';
		for (let i = 0; i < rows.length;) {
			const first = i, row = rows[i];
			let n = 0;
			for (; i < rows.length && (!shows[i] || rows[i].skipped); i++)
				n += rows[i].skipped || 1;
			if (i > first) {
				const isCut = isWhole || !all; /* the page has no more */
				const gap = el(isCut ? 'div' : 'button', isCut ? {'class': 'quiet'} :
					{type: 'button', 'class': 'link quiet'}, lines);
				gap.textContent = '… ' + countText(n, 'instructions');
				if (!isCut)
					gap.addEventListener('click', () => draw(true));
				continue;
			}
			this.codeRow(lines, row, all, max);
			i++;
		}
	};
	draw(false);
	el('p', {'class': 'quiet'}, box).textContent = all ?
		'Samples of the selection, in % of this code; the sampled address is often one instruction late.' :
		'No sample of the selection is in it.';
};

Details.prototype.codeRow = function (lines, row, all, max) {
	const [, text, , line, source] = row.insn;
	if (source && this.lastLine !== line)
		el('div', {'class': 'source'}, lines).textContent = line + '  ' + source;
	this.lastLine = line || this.lastLine;
	const div = el('div', {role: 'row', title: row.at.toString(16) + '  ' + text + (line ? '\n' + line : '')}, lines);
	const share = el('span', {'class': 'num'}, div);
	share.textContent = row.v ? percentText(row.v, all) : '';
	if (row.v)
		share.style.setProperty('--heat', Math.round(70 * row.v / max) + '%');
	el('span', {'class': 'quiet'}, div).textContent = row.at.toString(16);
	el('span', {}, div).textContent = text;
};
