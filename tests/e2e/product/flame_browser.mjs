/*
 * Flame graphs in a real browser. Truth for searches is a grep over the folded lines, by frame.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { assay, check, dir, finish, grep, names, open, pick, random, words, write }
	from '../../lib/browserkit.mjs';

function profile(nrStacks) {
	const stacks = new Map();
	for (let i = 0; i < nrStacks; i++) {
		const frames = ['main'];
		for (let d = Math.floor(random() * 30); d >= 0; d--)
			frames.push(pick(names));
		const key = frames.join(';');
		stacks.set(key, (stacks.get(key) || 0) + 1 + Math.floor(random() * 50));
	}
	return stacks;
}

function draw(...args) {
	return execFileSync(assay, ['flame', ...args], { encoding: 'utf8' }).trim();
}

const input = '.tools input', found = '.found';
async function search(page, text) {
	await page.fill(input, text);
	return page.textContent(found);
}
function shown(text) {
	const m = /Matched ([0-9.]+) %/.exec(text);
	return m ? Number(m[1]) : 0;
}

/* ---- searches ---- */
const stacks = profile(4000);
write('a.folded', stacks);
const svg = draw(path.join(dir, 'a.folded'));
check(svg === path.join(dir, 'a.svg'), 'the picture lies beside its input and its path is printed');
const fileUrl = 'file://' + svg;
let page = await open(fileUrl);
const sources = [];
for (let i = 0; i < 200; i++)
	sources.push(random() < 0.3 ? `${pick(words)}|${pick(words)}` :
		random() < 0.5 ? `^${pick(words)}_` : random() < 0.5 ? `${pick(words)}.*${pick(words)}$` :
		pick(names).replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
/* In the page at once: 200 round trips to a busy browser take half a minute. */
const answers = await page.evaluate(([list, inputIs, foundIs]) => list.map((source) => {
	const box = document.querySelector(inputIs);
	box.value = source;
	box.dispatchEvent(new Event('input', { bubbles: true }));
	return document.querySelector(foundIs).textContent;
}), [sources, input, found]);
let worst = 0;
sources.forEach((source, i) => {
	worst = Math.max(worst, Math.abs(shown(answers[i]) - grep(stacks, new RegExp(source))));
});
check(worst <= 0.0100001, `matched equals grep for 200 regexes (largest difference ${worst.toFixed(4)})`);
check(shown(await search(page, 'POLL')) === 0, 'search minds the case');
await page.click('.tools button:has-text("Aa")');
check(Math.abs(shown(await page.textContent(found)) - grep(stacks, /POLL/i)) <= 0.0100001,
	'search ignores the case on request');
check(shown(await search(page, '(')) > 0 === stacksHave('('), 'an invalid regex is searched as plain text');
function stacksHave(text) {
	return [...stacks.keys()].some((k) => k.includes(text));
}

/* ---- keyboard ---- */
await page.click('.tools button:has-text("Aa")');
await search(page, '');
await page.keyboard.press('Escape');
const zoomedHash = async () => /z=[0-9a-f]{16}/.test(await page.evaluate(() => location.hash));
await page.keyboard.press('ArrowUp');
await page.keyboard.press('ArrowUp');
await page.keyboard.press('ArrowUp');
check(/of parent/.test(await page.textContent('.info')), 'arrow keys move and update the details');
await page.keyboard.press('Enter');
check(await zoomedHash(), 'Enter zooms and updates the URL');
check(await page.locator('.crumbs button').count() >= 2, 'the path to the zoomed frame is shown');
const hash = await page.evaluate(() => location.hash);
await page.keyboard.press('Escape');
check(await page.evaluate(() => location.hash) !== hash, 'Esc goes up');
await page.keyboard.press('Home');
check(!(await zoomedHash()), 'Home resets');
await page.keyboard.press('/');
check(await page.evaluate(() => document.activeElement.localName) === 'input', '/ starts a search');
await page.keyboard.type('keccak');
await page.keyboard.press('Enter');
check(await page.locator('.cursor').getAttribute('display') === null, 'Enter shows the first match');
await page.keyboard.press('Escape');
await page.keyboard.press('Control+f');
check(await page.evaluate(() => document.activeElement.localName) === 'input', 'Ctrl-F too');
await page.close();

/* ---- mouse ---- */
page = await open(fileUrl);
const rows = await page.locator('.flame rect').count();
const box = await page.locator('.flame rect').nth(5).boundingBox();
await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
check(/% of total/.test(await page.textContent('.info')), 'hovering shows details');
await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
check(await zoomedHash(), 'a click zooms');
const url = await page.evaluate(() => location.href);
await page.goBack();
check(!(await zoomedHash()) && await page.locator('.crumbs button').count() === 0,
	'Back undoes a zoom');
await page.close();
page = await open(url);
check(await page.locator('.crumbs button').count() >= 2, 'a link opens zoomed');
check(rows > 100, `frames are drawn (${rows})`);
await page.close();

/* Frames that the full view leaves out are there once zoomed. */
const many = new Map([['main;wide', 1000000]]);
for (let i = 0; i < 50; i++)
	many.set(`main;narrow;leaf_${i}`, 1);
write('many.folded', many);
page = await open('file://' + draw(path.join(dir, 'many.folded')));
check(!(await page.locator('.labels').textContent()).includes('leaf_'), 'narrow frames are left out');
check(shown(await search(page, 'leaf_')).toFixed(2) === grep(many, /leaf_/).toFixed(2),
	'and found by a search');
await page.click('.tools button:has-text("\u203a")');
check(await page.locator('.labels text').count() >= 2, 'and drawn on the way to them');
await page.close();

page = await open('file://' + draw('--min-width', '50%', '--factor', '7', '-o', path.join(dir, 'half.svg'),
	path.join(dir, 'many.folded')));
check(await page.locator('.flame rect').count() === 3, 'a minimum width is a share');
await page.locator('.flame rect').last().hover();
check((await page.textContent('.info')).includes('7,00'), 'numbers are multiplied');
await page.close();

/* ---- places ---- */
const text = fs.readFileSync(svg, 'utf8');
const dataUrl = 'data:image/svg+xml;base64,' + Buffer.from(text).toString('base64');
for (const [where, html] of [
	['a sandboxed frame', `<iframe sandbox="allow-scripts" width="1000" height="700" src="${fileUrl}"></iframe>`],
	['a data: address', `<iframe width="1000" height="700" src="${dataUrl}"></iframe>`],
]) {
	fs.writeFileSync(path.join(dir, 'frame.html'), `<!doctype html><body>${html}`);
	page = await open('file://' + path.join(dir, 'frame.html'));
	const frame = page.frames()[1];
	await frame.waitForSelector(input);
	await frame.fill(input, 'futex');
	check(Math.abs(shown(await frame.textContent(found)) - grep(stacks, /futex/)) <= 0.0100001,
		`search works in ${where}`);
	await frame.locator('.flame rect').nth(3).click();
	check(await frame.locator('.crumbs button').count() >= 2, `zoom works in ${where}`);
	await page.close();
}
fs.writeFileSync(path.join(dir, 'img.html'), '<!doctype html><body><img src="a.svg">');
page = await open('file://' + path.join(dir, 'img.html'));
check(await page.evaluate(() => document.images[0].naturalWidth) === 1200, 'works as an image');
await page.close();
page = await open(fileUrl, { javaScriptEnabled: false });
check(await page.locator('.labels text').count() > 1 &&
	(await page.locator('.flame rect title').first().textContent()).includes('%'),
	'labels and tooltips are there without a script');
await page.close();

/* ---- hostile names ---- */
const evil = new Map([
	['main;</script><script>window.owned=1</script>', 5], ['main;]]><img src=x onerror=owned=1>', 7],
	['main;"\' onload="owned=1', 3], ['main;&lt;b&gt; &amp;', 2], ['main;${owned=1}', 2],
	['main;__proto__', 4], ['main;\u{1f525} \u202e rtl', 3],
]);
write('evil.folded', evil);
page = await open('file://' + draw(path.join(dir, 'evil.folded')));
for (const re of ['script', 'proto', 'onload', 'img', '&amp;'])
	check(Math.abs(shown(await search(page, re)) - grep(evil, new RegExp(re))) <= 0.0100001,
		`hostile name is plain text: ${re}`);
for (let i = 0; i < 8; i++)
	await page.keyboard.press('Tab');
check(await page.evaluate(() => window.owned === undefined), 'and never runs');
await page.close();

/* ---- comparison ---- */
write('old.folded', new Map([['main;a;x', 50], ['main;gone', 30], ['main;b', 20]]));
write('new.folded', new Map([['main;a;x', 90], ['main;b', 40], ['main;fresh', 10]]));
page = await open('file://' + draw('--differential', path.join(dir, 'old.folded'), path.join(dir, 'new.folded')));
const labels = await page.locator('.labels').textContent();
check(labels.includes('gone') && labels.includes('fresh'), 'what vanished and what is new are drawn');
await search(page, '^gone$');
check(/Matched 0.00/.test(await page.textContent(found)), 'a search is of AFTER');
await page.keyboard.press('Escape');
await page.keyboard.press('b');
check(!(await page.locator('.labels').textContent()).includes('fresh') &&
	shown(await search(page, '^gone$')) === 30, 'b shows BEFORE, and a search is of it');
await page.close();

/* The page of a comparison; hostile names are only text there, too. */
const big = (list) => new Map(list.map(([k, v]) => [k, v * 100]));
write('evil-old.folded', big([...evil, ['main;gone', 9], ['main;plain', 50]]));
write('evil-new.folded', big([...evil, ['main;fresh', 12], ['main;plain', 50]]));
const html = path.join(dir, 'diff.html');
execFileSync(assay, ['diff', path.join(dir, 'evil-old.folded'), path.join(dir, 'evil-new.folded'), '-o', html]);
page = await open('file://' + html);
const nrShown = () => page.locator('#functions tbody tr:visible').count();
const nrAll = await nrShown();
check(nrAll >= 2 && await page.locator('#sides tbody tr').count() === 2, 'the page has tables and both sides');
await page.check('.tools input[type=checkbox]');
check(await nrShown() === 2, 'only marked rows: what is new and what is gone');
await page.uncheck('.tools input[type=checkbox]');
await page.fill('.tools input[placeholder^=Filter]', 'fresh');
check(await nrShown() === 1, 'rows are filtered');
await page.fill('.tools input[placeholder^=Filter]', '');
const first = () => page.locator('#functions tbody tr').first().textContent();
await page.click('#functions th button:has-text("after %")');
check((await first()).includes('plain'), 'a click on a head sorts');
await page.click('#functions td button:text-is("fresh")');
check(/Matched \d/.test(await page.textContent(found)), 'a click on a function searches it in the graph');
await page.click('.sides button:text-is("Before")');
check(!(await page.locator('.labels').textContent()).includes('fresh'), 'the graph shows one side');
check(await page.evaluate(() => window.owned === undefined), 'names on the page never run');
await page.close();
fs.writeFileSync(path.join(dir, 'frame.html'),
	`<!doctype html><body><iframe sandbox="allow-scripts" width="1000" height="700" src="file://${html}"></iframe>`);
page = await open('file://' + path.join(dir, 'frame.html'));
await page.frames()[1].waitForSelector('.tools input[type=checkbox]');
check(await page.frames()[1].locator('.flame rect').count() > 2, 'the page works in a sandboxed frame');
await page.close();
page = await open('file://' + html, { javaScriptEnabled: false });
check(await page.locator('#functions tbody tr').count() === nrAll &&
	await page.locator('.labels text').count() > 1, 'table and graph are there without a script');
await page.close();

await finish();
