/*
 * What browser tests share: TAP on stdout, a headless browser, a generator of profiles. Arguments of a
 * test: the program, a scratch folder, the folder with playwright-core in its node_modules, and the browser's
 * program; if that is Firefox, it is driven by WebDriver BiDi.
 */
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { once } from 'node:events';
import { createRequire } from 'node:module';

export const [assay, dir, modules, program] = process.argv.slice(2);
const { chromium, firefox } = createRequire(path.resolve(modules, 'x.js'))('playwright-core');

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

/*
 * The network is a proxy that refuses everything, and keeps what was asked, except by the browsers themselves.
 * Chromium's events have the requests of pages exactly.
 */
const requests = [];
const proxy = http.createServer((request, answer) => {
	keep(request.url);
	answer.writeHead(403).end();
}).on('connect', (request, socket) => {
	keep(request.url);
	socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
}).listen(0, '127.0.0.1');
function keep(url) {
	if (!/^(https?:\/\/)?[\w.-]*\.(mozilla\.(com|org|net)|google(apis)?\.com|gvt1\.com)[:/]/.test(url))
		requests.push(url);
}
await once(proxy, 'listening');
proxy.unref();
const { port } = proxy.address();

/* Firefox has no emulation of dark colours over BiDi, so it is dark always. */
export const browser = /firefox/.test(path.basename(program)) ? await firefox.launch({
	channel: 'moz-firefox', executablePath: program, firefoxUserPrefs: {
		'ui.systemUsesDarkTheme': 1, 'network.proxy.type': 1, 'network.proxy.allow_hijacking_localhost': true,
		'network.proxy.http': '127.0.0.1', 'network.proxy.http_port': port,
		'network.proxy.ssl': '127.0.0.1', 'network.proxy.ssl_port': port,
	},
}) : await chromium.launch({ executablePath: program, args: ['--no-sandbox',
	`--proxy-server=127.0.0.1:${port}`, '--proxy-bypass-list=<-loopback>'] });
const problems = [];

export async function open(url, options = {}) {
	const page = await browser.newPage({ viewport: { width: 1200, height: 800 }, ...options });
	page.on('console', (m) => m.type() === 'error' && problems.push(m.text()));
	page.on('request', (r) => /^https?:/.test(r.url()) && requests.push(r.url()));
	page.on('pageerror', (e) => problems.push(e.message));
	await page.goto(url);
	return page;
}

/* A request of a page is seen, so that none means something. */
async function isSeen() {
	const file = path.join(dir, 'asks.html');
	fs.writeFileSync(file, '<!doctype html><img src="http://planted.test/">');
	const page = await browser.newPage();
	await page.goto('file://' + file);
	await page.close();
	return requests.some((url) => /planted\.test/.test(url)); /* or by https */
}

/* The last checks, the plan, the exit status. */
export async function finish() {
	check(requests.length === 0, `nothing was asked of the network ${requests.slice(0, 3).join(' ')}`);
	check(await isSeen(), 'and a request would have been seen');
	check(problems.length === 0, `no errors on the console ${problems.slice(0, 3).join(' | ')}`);
	console.log(`1..${nr}`);
	await browser.close();
	process.exit(failed ? 1 : 0);
}
