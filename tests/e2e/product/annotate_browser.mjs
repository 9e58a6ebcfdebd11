/* Assembly in the page: samples by instruction of a selection are those of assay report. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { assay, check, finish, open } from '../../lib/browserkit.mjs';

const page = await open('file://' + path.resolve('page.html'));
await page.waitForFunction(() => window.assay && window.assay.model);

async function shown(name, range) {
	await page.evaluate(([f, r]) => {
		const a = window.assay;
		a.set({ range: r, selected: a.P.tree.name.indexOf(f) });
		return a.whenDrawn();
	}, [name, range]);
	const rows = await page.waitForFunction((f) => document.querySelector('.details h2').textContent === f &&
		document.querySelector('.asm'), name);
	await rows.evaluate((box) => box.querySelector('button') && box.querySelector('button').click());
	return page.evaluate(() => [...document.querySelectorAll('.asm > div[role=row]')].map((div) =>
		[...div.children].map((c) => c.textContent)));
}

// The second half: at the beginning a busy machine may give the program no CPU for long.
const end = await page.evaluate(() => window.assay.P.head.duration_ms), half = Math.round(end / 2);
for (const [range, args] of [[null, []], [[half, end], ['--time', `${half / 1000}..`]]]) {
	const table = JSON.parse(execFileSync(assay, ['report', '-q', '--json', '--annotate', '^hot_a$', '-n', '0', ...args,
		'page.html'], { encoding: 'utf8' })).tables[0];
	const rows = table.rows.filter((r) => r.address), got = await shown('hot_a', range);
	check(rows.some((r) => r.samples) && got.length === rows.length, `${got.length} of ${rows.length} instructions`);
	check(rows.every((r, i) => got[i][1] === r.address && got[i][2] === r.instruction &&
		(r.samples ? got[i][0] === '<0.1\u00a0%' || Math.abs(parseFloat(got[i][0]) - r.function_pct) < 0.06 :
			got[i][0] === '')), `samples of ${range || 'all'}`);
}
await finish();
