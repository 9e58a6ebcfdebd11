/*
 * What browser tests share: TAP on stdout, headless chromium, a generator of profiles. Arguments of a
 * test: the program, a scratch folder, the folder with playwright-core in its node_modules.
 */
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

export const [assay, dir, modules] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(modules, 'x.js'))('playwright-core');

let nr = 0, failed = 0;
export function check(isOk, text) {
	nr++;
	failed += isOk ? 0 : 1;
	console.log(`${isOk ? 'ok' : 'not ok'} ${nr} - ${text}`);
}

/* A small generator with a fixed seed: the same profile in every run. */
let seed = 12345;
export function random() {
	seed = Math.imul(seed ^ seed >>> 15, 0x2c1b3c6d);
	seed = Math.imul(seed ^ seed >>> 12, 0x297a2d39);
	seed ^= seed >>> 15;
	return (seed >>> 0) / 4294967296;
}
export function pick(list) {
	return list[Math.floor(random() * random() * list.length)];
}

export const words = ['poll', 'futex', 'lock', 'alloc', 'free', 'read', 'write', 'trie', 'hash', 'node',
	'db', 'page_fault', 'exec', 'block', 'keccak', 'insert'];
export const names = [];
for (let i = 0; i < 400; i++)
	names.push(i % 3 ? `${pick(words)}_${pick(words)}${i % 7 ? '' : i}` :
		`${pick(words)}::<T as ${pick(words)}>::${pick(words)}${i}`);

/* Writes folded stacks: a map of "a;b;c" to numbers. */
export function write(file, stacks) {
	const text = [...stacks].map(([k, v]) => `${k} ${v}\n`).sort().join('');
	fs.writeFileSync(path.join(dir, file), text);
}

/* Share of the stacks with a matching frame, in percent. */
export function grep(stacks, re) {
	let hit = 0, all = 0;
	for (const [key, count] of stacks) {
		all += count;
		if (key.split(';').some((f) => re.test(f)))
			hit += count;
	}
	return 100 * hit / all;
}

export const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox'],
});
const problems = [], requests = [];

export async function open(url, options = {}) {
	const page = await browser.newPage({ viewport: { width: 1200, height: 800 }, ...options });
	page.on('console', (m) => m.type() === 'error' && problems.push(m.text()));
	page.on('pageerror', (e) => problems.push(e.message));
	page.on('request', (r) => /^https?:/.test(r.url()) && requests.push(r.url()));
	await page.goto(url);
	return page;
}

/* The last two checks, the plan, the exit status. */
export async function finish() {
	check(requests.length === 0, 'nothing was asked of the network');
	check(problems.length === 0, `no errors on the console ${problems.slice(0, 3).join(' | ')}`);
	console.log(`1..${nr}`);
	await browser.close();
	process.exit(failed ? 1 : 0);
}
