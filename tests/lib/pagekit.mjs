/*
 * What tests of the HTML page in a browser share: opening it, and each interaction with it once.
 */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { assay, check, dir, open } from './browserkit.mjs';

export const fixtures = path.resolve(path.dirname(process.argv[1]), '../../fixtures');

export function view(input, name) {
	const to = path.join(dir, name);
	execFileSync(assay, ['view', '-q', '-o', to, input]);
	return 'file://' + to;
}

export async function ready(page) {
	await page.waitForFunction(() => window.assay && window.assay.model);
	await drawn(page);
	return page;
}

/* Until the page shows what was asked for. */
export function drawn(page) {
	return page.evaluate(() => window.assay.whenDrawn());
}

/* Self weights by path, whatever the order; threads above the stacks are left out. Runs in the page. */
async function sumsInOrder(order) {
	const a = window.assay;
	a.set({ order, zoom: 0 });
	await a.whenDrawn();
	const { tree: d, weights } = a.model, out = {}, paths = [''];
	let isOrdered = d.start ? d.n > 40 : true;
	for (let i = 1; i < d.n; i++) {
		const up = paths[d.parent[i]], name = a.symName(d.sym[i]);
		paths.push(d.start && !d.parent[i] ? '' : d.isInverted ? `${name};${up}` : `${up}${name};`);
		if (weights.self[i] > 0)
			out[paths[i]] = (out[paths[i]] || 0) + weights.self[i];
		for (let c = d.first[i]; d.start && c && d.next[c]; c = d.next[c]) /* the last one first */
			isOrdered = isOrdered && d.from[d.next[c]] <= d.from[c] && d.start[d.next[c]] < d.start[c];
	}
	return { sums: out, isOrdered, n: d.n, total: weights.total[0], isOther: !!(d.start || d.isInverted),
		found: document.querySelector('.search [role=status]').textContent };
}

/* Time order and the inverted tree have the sums of the graph, whatever is selected. */
async function orders(page) {
	for (const range of [null, [400, 1233]]) {
		await page.evaluate((r) => window.assay.set({ range: r, search: 'log_append|parse' }), range);
		const all = await page.evaluate(sumsInOrder, '');
		for (const order of ['time', 'up']) {
			const now = await page.evaluate(sumsInOrder, order), keys = Object.keys(all.sums);
			check(now.isOther && now.isOrdered && Math.abs(now.total - all.total) < 1 && now.found === all.found &&
				keys.length > 5 && keys.length === Object.keys(now.sums).length &&
				keys.every((k) => Math.abs(all.sums[k] - now.sums[k]) < 1),
			`${order || 'heaviest left'}, ${range || 'whole'}: the same sums and search share (${now.n} frames)`);
		}
	}
	await page.evaluate(() => window.assay.set({ range: null, search: '' }));
	await page.keyboard.press('t');
	await drawn(page);
	await page.evaluate(() => window.assay.set({ zoom: 60 }));
	const linked = await ready(await open(await page.evaluate(() => location.href)));
	check(await linked.evaluate(() => window.assay.order === 'time' && window.assay.zoom === 60),
		'the address keeps the order and the zoomed frame');
	await linked.close();
	await page.keyboard.press('b');
	await drawn(page);
	check(await page.evaluate(() => window.assay.order === 'up' && !window.assay.zoom &&
		/callers below/.test(document.querySelector('.crumbs').textContent)), 'b shows the inverted tree');
	check(/ --reverse /.test(await page.textContent('.details pre')), 'and the command prints it');
	await page.locator('.orders button').first().click();
	await drawn(page);
	check(await page.evaluate(() => !window.assay.model.tree.isInverted && !window.assay.order), 'and a button the graph');
}

/* Uses everything with mouse, keyboard and address. The page has waits/hotcold.assay. */
export async function interact(url) {
	const page = await ready(await open(url));
	const state = () => page.evaluate(() => {
		const a = window.assay;
		return { range: a.range, groups: a.groups && [...a.groups], zoom: a.zoom, view: a.view,
			text: document.querySelector('.selection').textContent, hash: location.hash };
	});
	const frame = () => drawn(page);
	const axis = await page.locator('.layers canvas').last().boundingBox();
	await page.mouse.move(axis.x + axis.width * 0.4, axis.y + 20);
	await page.mouse.down();
	await page.mouse.move(axis.x + axis.width * 0.7, axis.y + 20, { steps: 4 });
	await page.mouse.up();
	await frame();
	let now = await state();
	check(now.range && now.range[1] > now.range[0] && /t=/.test(now.hash), 'dragging selects a range of time');
	const linked = await ready(await open(await page.evaluate(() => location.href)));
	check(JSON.stringify(await linked.evaluate(() => window.assay.range.map(Math.round))) ===
		JSON.stringify(now.range.map(Math.round)), 'its address opens the same range');
	await linked.close();
	await page.mouse.click(axis.x + axis.width * 0.5, axis.y + 20);
	await frame();
	check((await state()).range === null, 'a click beside the strips removes it');
	const flame = await page.locator('.flame canvas').boundingBox();
	await page.mouse.click(flame.x + 20, flame.y + 18 * 2 + 9);
	await frame();
	now = await state();
	check(now.zoom > 0 && await page.locator('.crumbs button').count() >= 2, 'a click on a frame zooms');
	check(await page.locator('.details dl').count() === 1 &&
		/assay report/.test(await page.textContent('.details pre')), 'and shows the function and the command');
	await page.keyboard.press('Escape');
	await frame();
	check((await state()).zoom !== now.zoom, 'Escape goes up');
	for (const [key, title] of [['2', 'functions'], ['3', 'waits'], ['5', 'tables'], ['6', 'about'], ['1', 'flame']]) {
		await page.keyboard.press(key);
		await frame();
		check((await state()).view === title, `${key} opens ${title}`);
	}
	const all = await page.evaluate(() => window.assay.shownSum());
	await page.evaluate(() => window.assay.set({ zoom: 0, selected: window.assay.P.tree.name.indexOf('parse') }));
	const keyed = async (key, text, is) => {
		await page.keyboard.press(key);
		await frame();
		check(await page.evaluate(is), text);
	};
	await keyed('c', 'c draws callers above and callees below', () => {
		const { tree: d, weights } = window.assay.model, name = (i) => window.assay.symName(d.sym[i]);
		const up = [...d.parent.keys()].filter((i) => d.isUp[i] && d.parent[i] === 1);
		return name(1) === 'parse' && name(up[0]) === 'handle_request' && d.n > 3 &&
			Math.abs(weights.total[1] - up.reduce((sum, i) => sum + weights.total[i], 0)) < 1;
	});
	await keyed('f', 'f keeps what the function calls', () => window.assay.symName(window.assay.model.tree.sym[1]) ===
		'parse' && window.assay.model.tree.n > 1 && !window.assay.model.tree.isUp);
	await keyed('f', 'and again: all', () => window.assay.root === null);
	await keyed('x', 'x hides the stacks with it', () => window.assay.hidden.size === 1 &&
		/without parse/.test(document.querySelector('.selection').textContent));
	check(await page.evaluate(() => window.assay.shownSum()) < all, 'and their weight');
	await page.locator('.selection .chip').first().click();
	await frame();
	check(await page.evaluate(() => window.assay.hidden.size === 0 && window.assay.shownSum()) === all,
		'a click on what is said removes it');
	await keyed('h', 'h shows the heat map', () => document.querySelector('.heat canvas').width > 0 &&
		!document.querySelector('.heat').hidden);
	const heat = await page.locator('.heat canvas').boundingBox();
	await page.mouse.click(axis.x + 150 + (axis.width - 151) * 0.62, heat.y + 30);
	await frame();
	check(await page.evaluate(() => {
		const { range: [from, to], model: { heat: h } } = window.assay, ms = 0.62 * window.assay.P.head.duration_ms;
		const column = Math.floor(ms / h.columnMs) * h.columnMs;
		return to - from === h.rowMs && from >= column && to <= column + h.columnMs;
	}) && heat.x === axis.x && Math.abs(heat.width - axis.width) < 1, 'its columns stand below their times on the axis');
	await page.evaluate(() => window.assay.set({ range: null }));
	await frame();
	await keyed('h', 'and hides it', () => document.querySelector('.heat').hidden);
	await keyed('?', '? lists the keys', () => document.querySelector('dialog').open);
	await keyed('?', 'and closes the list', () => !document.querySelector('dialog').open);
	await orders(page);
	await page.locator('.axis .legend .chip').nth(1).click();
	await frame();
	check(await page.evaluate(() => window.assay.state !== null && window.assay.shownSum()) < all,
		'a state of the legend shows only its time');
	await page.locator('.axis .legend .chip').nth(1).click();
	await frame();
	const strips = await page.evaluate(() => [document.querySelector('.layers canvas').clientHeight,
		window.assay.P.groups.list.filter((g) => g.threads.some((t) => window.assay.P.hasRows[t])).length]);
	check(await page.evaluate((nr) => window.assay.P.hasRows.reduce((a, b) => a + b) === nr, strips[1]), 'few threads have a strip each');
	await page.mouse.click(axis.x + axis.width * 0.5, axis.y + strips[0] - 20 - 16 * strips[1] + 8);
	await frame();
	check(await page.evaluate(() => window.assay.groups.size === 1) && /released by|ended by|Waits/.test(
		await page.textContent('.details')), 'a click on a strip selects its threads and says who ended their waits');
	await page.evaluate(() => window.assay.set({ groups: null, range: [200, 900] }));
	await frame();
	await page.keyboard.press('z');
	await page.waitForFunction(() => /Whole capture/.test(document.querySelector('.axis').textContent));
	check(true, 'z stretches the range over the axis');
	await keyed('0', '0 shows the whole time again', () => !window.assay.range &&
		!/Whole capture/.test(document.querySelector('.axis').textContent));
	await keyed('4', 'without data of memory there is no view of it', () => window.assay.view === 'flame' &&
		!/Memory/.test([...document.querySelectorAll('[role=tab]')].filter((b) => !b.hidden).map((b) => b.textContent)));
	await page.evaluate(() => window.assay.set({ search: 'lock(' }));
	await frame();
	check(/not a regex \(unterminated \w+\)/i.test(await page.textContent('.search [role=status]')),
		'a broken regex is named');
	await page.evaluate(() => window.assay.set({ search: '' }));
	await page.keyboard.press('2');
	await frame();
	await page.locator('thead button').nth(2).click();
	check(await page.locator('th[aria-sort=descending]:visible').count() === 1, 'a head of a column sorts');
	await page.locator('tbody button').first().click();
	await frame();
	check(await page.evaluate(() => window.assay.selected >= 0) &&
		await page.locator('tr.on').count() === 1, 'a click on a function selects it');
	await page.keyboard.press('z');
	await page.keyboard.press('0');
	await frame();
	const before = (await state()).text;
	await page.keyboard.press('i');
	await frame();
	check(before !== (await state()).text, 'i shows idle time');
	await page.keyboard.press('0');
	await frame();
	check((await state()).text === before, '0 resets');
	await page.close();
}
