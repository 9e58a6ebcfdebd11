/*
 * Speed of the HTML page in headless chromium: times of the first frame that answers and of
 * interactions, from the call until the page shows what was asked, in ms. One JSON object a page on
 * stdout. Arguments: as of browserkit.mjs; pages as PAGES="a.html b.html" in the environment.
 */
import { browser, open } from '../lib/browserkit.mjs';

async function measure(page) {
	await page.waitForFunction(() => window.assay && window.assay.model, null, { polling: 10, timeout: 120000 });
	return page.evaluate(async () => {
		const a = window.assay, out = { first: performance.now() }, end = a.P.head.duration_ms;
		await a.whenDrawn();
		async function time(name, change) {
			const list = [];
			for (let i = 0; i < 9; i++) {
				const start = performance.now();
				a.set(change(i));
				await a.whenDrawn();
				list.push(performance.now() - start);
			}
			list.sort((x, y) => x - y);
			out[name] = list[4];
		}
		function heaviest() {
			const { tree: d, weights: { total } } = a.model;
			let best = 0;
			for (let c = d.first[a.zoom]; c; c = d.next[c])
				best = !best || total[c] > total[best] ? c : best;
			return best;
		}
		await time('zoom', () => ({ zoom: heaviest() }));
		a.set({ zoom: 0 });
		const words = ['node', 'trie.*lock', 'a', 'core', 'page', 'x', 'seek_7', 'poll', 'e'];
		await time('search', (i) => ({ search: words[i] }));
		a.set({ search: '' });
		await time('range', (i) => ({ range: [end * (0.1 + 0.02 * i) + 3, end * (0.6 + 0.02 * i) + 7] }));
		await time('inverted', (i) => ({ order: 'up', range: [end * (0.1 + 0.02 * i) + 5, end * (0.6 + 0.02 * i)] }));
		return out;
	});
}

for (const file of process.env.PAGES.split(' ')) {
	const page = await open(`file://${file}`, { viewport: { width: 1440, height: 900 } });
	console.log(JSON.stringify(await measure(page)));
	await page.close();
}
await browser.close();
