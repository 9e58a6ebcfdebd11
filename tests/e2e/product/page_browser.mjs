/*
 * The HTML page in a real browser. Truth for its sums is `assay report --tree` with the same selection,
 * for searches a grep over the folded lines.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { assay, browser, check, dir, finish, grep, names, open, pick, random, words, write }
	from '../../lib/browserkit.mjs';
import { drawn, fixtures, interact, ready, view } from '../../lib/pagekit.mjs';

/* ---- sums ---- */

/* Self weight by path of the report's tree. */
function reported(input, args) {
	let text;
	try {
		text = execFileSync(assay, ['report', '-q', '--tree', '--percent-limit', '0', '--json', ...args, input],
			{ encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] });
	} catch (e) {
		return {}; /* nothing is selected */
	}
	const json = JSON.parse(text), out = {}, paths = [];
	for (const n of json.trees.length ? json.trees[0].nodes : []) {
		paths.push(n.parent === null ? '' : `${paths[n.parent]};${n.name}`);
		if (n.self)
			out[paths.at(-1)] = (out[paths.at(-1)] || 0) + n.self;
	}
	return out;
}

/* The same from the page, for a selection. Runs in the page. */
async function summed(changes) {
	const a = window.assay;
	a.reset();
	a.folds = false;
	a.metric = a.P.metrics.findIndex((m) => m.key === changes.metric);
	a.range = changes.range;
	a.groups = changes.group < 0 ? null : new Set([changes.group]);
	a.state = changes.state < 0 ? null : changes.state;
	a.hidden = new Set(changes.hidden < 0 ? [] : [changes.hidden]);
	a.root = changes.root < 0 ? null : changes.root;
	await a.whenDrawn();
	const { tree: d, weights } = a.model, out = {}, paths = [''];
	for (let i = 0; i < d.n; i++) {
		if (i)
			paths.push(`${paths[d.parent[i]]};${a.P.tree.name[d.sym[i]]}`);
		if (weights.self[i])
			out[paths[i]] = (out[paths[i]] || 0) + weights.self[i];
	}
	return out;
}

/* The command on the page, run as it stands: its JSON. It names the page, which is a recording. */
async function commanded(page, folder) {
	const text = (await page.textContent('.details pre')).replace(/^assay /, '');
	check(text.includes(folder), `the command names the folder: ${text}`);
	const line = `"$0" ${text} -q --json --percent-limit 0 --limit 0`;
	return JSON.parse(execFileSync('sh', ['-c', line, assay], { encoding: 'utf8', cwd: '/', maxBuffer: 1 << 28 }));
}

/* The panel's command gives the same: the tree without a selected function, else its callers. */
async function compareCommands(input, selections) {
	const page = await ready(await open(view(input, 'commands.html')));
	for (const [name, changes] of selections) {
		const tree = await page.evaluate(async (c) => {
			const a = window.assay, sym = (text) => a.P.tree.name.indexOf(text);
			a.reset();
			a.set({ ...c, selected: -1, groups: c.group ? new Set([c.group]) : null,
				hidden: new Set(c.hidden ? [sym(c.hidden)] : []), root: c.root ? sym(c.root) : null });
			await a.whenDrawn();
			return a.model.weights.total[0];
		}, changes);
		const report = await commanded(page, dir);
		check(Math.abs(report.trees[0].nodes[0].total - tree) < 1, `${name}: its tree has the page's sum (${tree})`);
		const ours = await page.evaluate(async (text) => {
			const a = window.assay;
			a.set({ selected: a.P.tree.name.indexOf(text) });
			await a.whenDrawn();
			return a.model.details.callers.map(([s, v]) => [s < 0 ? '' : a.P.tree.name[s], v]);
		}, changes.of);
		const rows = (await commanded(page, dir)).tables[0].rows;
		check(ours.length && ours.every(([n, v]) => !n || rows.some((r) => r.caller === n &&
			Math.abs(r.self - v) < 1)), `${name}: and the callers of ${changes.of} (${JSON.stringify(ours)})`);
	}
	await page.close();
}

const quote = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/* A random selection: what the page is told, and the options of the report. */
function selection(about) {
	const end = about.duration_ms, metric = about.metrics[Math.floor(random() * about.metrics.length)];
	const changes = { metric: metric.key, range: null, group: -1, state: -1, hidden: -1, root: -1 };
	const args = [...metric.args];
	if (metric.isTimed && random() < 0.7) {
		/* Waits are sums over a second; a range that cuts one is an estimate. */
		const step = metric.slice || 1, nr = Math.ceil(end / step);
		const a = Math.floor(random() * nr) * step;
		const b = Math.min(end, a + step * (1 + Math.floor(random() * (nr - a / step))));
		changes.range = [a, b];
		args.push('--time', `${a / 1000}..${b === end ? '' : b / 1000}`);
	}
	if (random() < 0.3) {
		changes.group = Math.floor(random() * about.groups.length);
		const { name, tid } = about.groups[changes.group];
		args.push(...tid ? ['--tid', tid] : ['--thread', `^${quote(name).replace(/#/g, '[0-9]+')}$`]);
	}
	if (metric.states && random() < 0.3) {
		changes.state = pick(metric.states);
		args.push('--reason', about.states[changes.state]);
	}
	if (random() < 0.3) {
		changes.hidden = pick(about.syms);
		args.push('--exclude', `^${quote(about.names[changes.hidden])}$`);
	} else if (random() < 0.3) {
		changes.root = pick(about.syms);
		args.push('--within', `^${quote(about.names[changes.root])}$`);
	}
	return { changes, args };
}

function difference(a, b) {
	for (const k of new Set([...Object.keys(a), ...Object.keys(b)]))
		if (Math.abs((a[k] || 0) - (b[k] || 0)) > 0.5)
			return `${k}: page ${a[k] || 0}, report ${b[k] || 0}`;
	return '';
}

async function compareSums(input, name, nr) {
	const page = await ready(await open(view(input, `${name}.html`)));
	const about = await page.evaluate(() => {
		const { P } = window.assay;
		const used = P.summary.states && [...P.summary.states.keys()].filter((i) => P.summary.states[i] &&
			!P.kinds.isCpu[i]);
		const syms = P.tree.name.map((n, i) => i).filter((i) => !/^(\[|all$)/.test(P.tree.name[i]));
		return { duration_ms: P.head.duration_ms, names: P.tree.name, syms,
			groups: P.groups.list.filter((g, i) => g.name !== '[no thread]' && P.groups.of.includes(i)),
			states: P.head.states.map((s) => s[0]),
			metrics: P.metrics.map((m) => ({ key: m.key, isTimed: m.hasTimes, slice: m.sliceMs,
				states: m.states === 'waits' ? used : null, report: m.report })) };
	});
	about.metrics.forEach((m) => {
		m.args = m.key === 'on-cpu' ? ['-e', 'thread-time', '--reason', 'on_cpu'] :
			m.report ? m.report.split(' ') : [];
	});
	const groups = await page.evaluate(() => window.assay.P.groups.list.map((g) => g.name));
	let worst = '', empty = 0;
	for (let i = 0; i < nr; i++) {
		const { changes, args } = selection(about);
		changes.group = changes.group < 0 ? -1 : groups.indexOf(about.groups[changes.group].name);
		const truth = reported(input, args);
		empty += Object.keys(truth).length ? 0 : 1;
		const diff = difference(await page.evaluate(summed, changes), truth);
		if (diff)
			worst = `${diff} (${args.join(' ')})`;
	}
	check(!worst, `${name}: ${nr} random selections equal assay report ${worst}`);
	check(empty < nr / 2, `${name}: most of them select something (${nr - empty})`);
	await page.close();
}

/* perf script text with threads and times. */
function script(nrSamples) {
	let text = '';
	for (let i = 0; i < nrSamples; i++) {
		const tid = 100 + Math.floor(random() * 9);
		text += `worker-${tid % 4} 100/${tid} [000] ${(1000 + i * 10 / nrSamples).toFixed(6)}: 1 cpu-clock:\n`;
		for (let k = Math.floor(random() * 12); k >= 0; k--)
			text += `\t    55d0 ${pick(names)}+0x1 (/usr/bin/svc)\n`;
		text += '\t    55d0 main+0x1 (/usr/bin/svc)\n\n';
	}
	return text;
}
fs.writeFileSync(path.join(dir, 'threads.txt'), script(3000));
/* 200 selections with PAGE_SELECTIONS=1; a part of them else, a process each. */
const share = Number(process.env.PAGE_SELECTIONS || 0.3);
await compareSums(path.join(fixtures, 'waits/hotcold.assay'), 'hotcold', 60 * share);
await compareSums(path.join(fixtures, 'waits/service.assay'), 'service', 40 * share);
await compareSums(path.join(fixtures, 'recording/waits.assay'), 'waits', 40 * share);
await compareSums(path.join(dir, 'threads.txt'), 'threads', 60 * share);
await compareSums(path.join(fixtures, 'calls/io.assay'), 'io', 20 * share);
await compareSums(path.join(fixtures, 'calls/faults.assay'), 'faults', 20 * share);
await compareCommands(path.join(fixtures, 'waits/service.assay'), [
	['all', { of: 'fsync' }], ['a range of threads', { range: [0, 1000], group: 1, of: 'log_append' }],
	['a function hidden', { hidden: 'fsync', of: 'log_append' }],
	['focus', { root: 'handle_request', of: 'log_append' }], ['idle', { showsIdle: true, of: 'fsync' }]]);

/* ---- search ---- */
const stacks = new Map();
for (let i = 0; i < 3000; i++) {
	const frames = ['main'];
	for (let d = Math.floor(random() * 30); d >= 0; d--)
		frames.push(pick(names));
	stacks.set(frames.join(';'), 1 + Math.floor(random() * 50));
}
write('a.folded', stacks);
let url = view(path.join(dir, 'a.folded'), 'a.html');
let page = await ready(await open(url));
const answers = await page.evaluate(async (list) => {
	const out = [];
	for (const text of list) {
		window.assay.set({ search: text });
		await window.assay.whenDrawn();
		out.push(document.querySelector('.search [role=status]').textContent);
	}
	return out;
}, words);
check(words.every((w, i) => Math.abs((parseFloat(answers[i].replace('<', '')) || 0) -
	grep(stacks, new RegExp(w, 'i'))) <= 0.0501), 'search shares equal grep over the folded lines');
await page.keyboard.press('/');
check(await page.evaluate(() => document.activeElement.type) === 'search', '/ starts a search');
await page.keyboard.type('keccak');
await page.keyboard.press('Enter');
await drawn(page);
check(/keccak/.test(await page.textContent('.offscreen')), 'Enter goes to the widest match');

/* ---- merging: a frame taken out of the stacks, and the functions of what remains ---- */
await page.locator('.search input').blur();
await page.evaluate(() => window.assay.set({ search: '', folds: false, zoom: 0 }));
const merged = ['main', ...names.filter((n, i) => i % 40 === 3)], left = new Map(), selfOf = new Map(), totalOf = new Map();
const addTo = (map, key, v) => map.set(key, (map.get(key) || 0) + v);
for (const [key, v] of stacks) {
	const frames = key.split(';').filter((f) => !merged.includes(f));
	addTo(left, frames.map((f) => `;${f}`).join(''), v);
	addTo(selfOf, frames.at(-1), v);
	new Set(frames).forEach((f) => addTo(totalOf, f, v));
}
for (const name of merged) {
	await page.evaluate((n) => window.assay.set({ selected: window.assay.P.tree.name.indexOf(n) }), name);
	await drawn(page);
	await page.keyboard.press('m');
	await drawn(page);
}
const mergedSums = (p) => p.evaluate(async () => {
	const a = window.assay, { tree: d, weights } = a.model, out = {}, paths = [''];
	for (let i = 0; i < d.n; i++) {
		if (i)
			paths.push(`${paths[d.parent[i]]};${a.symName(d.sym[i])}`);
		if (weights.self[i])
			out[paths[i]] = weights.self[i];
	}
	a.set({ view: 'functions' });
	await a.whenDrawn();
	const { self, total } = a.model.functions;
	return { out, functions: a.P.tree.name.map((n, s) => [n, self[s], total[s]]).filter((f) => f[2]) };
});
const now = await mergedSums(page);
check(!difference(now.out, Object.fromEntries(left)), `${merged.length} functions merged: the stacks without them (${left.size})`);
check(now.functions.length > 100 && now.functions.every(([n, s, t]) => s === (selfOf.get(n) || 0) && t === totalOf.get(n)) &&
	now.functions.length === [...totalOf.keys()].filter((k) => k).length, 'and self and total of the other functions');
check(await page.locator('.selection .chip').count() === merged.length, 'each can be removed');
const again = await ready(await open(await page.evaluate(() => location.href)));
check(!difference((await mergedSums(again)).out, Object.fromEntries(left)), 'the address keeps them');
await again.locator('.selection .chip').first().click();
await drawn(again);
check(await again.evaluate(() => window.assay.merged.size) === merged.length - 1, 'and a click removes one');
await again.close();
await page.close();

/* ---- source lines ---- */

const faults = path.join(fixtures, 'calls/faults.assay');
const byLine = JSON.parse(execFileSync(assay, ['report', '-q', '--json', '--by', 'line', '-n', '0', faults],
	{ encoding: 'utf8' })).tables[0].rows.filter((r) => /:\d+$/.test(r.line));
page = await ready(await open(view(faults, 'lines.html')));
for (const row of byLine.slice(0, 5)) {
	await page.evaluate((f) => {
		window.assay.set({ selected: window.assay.P.tree.name.indexOf(f) });
	}, row.function);
	await drawn(page);
	const name = row.line.slice(row.line.lastIndexOf('/') + 1);
	const shown = await page.waitForFunction(([n, f]) => document.querySelector('.details h2').textContent === f &&
		[...document.querySelectorAll('.lines li')].map((li) => li.textContent).find((t) => t.includes(n)),
	[name, row.function]).then((h) => h.jsonValue());
	check(Math.abs(parseFloat(shown) - row.total_pct) < 0.06 &&
		Math.abs(parseFloat((shown.split(' self ')[1] || '0')) - row.self_pct) < 0.06,
	`line ${name}: ${shown}`);
}
await page.close();

/* ---- I/O, faults, spans: their metrics, the axis, the tables of the report, the diagnosis ---- */

const json = (args) => JSON.parse(execFileSync(assay, [...args, '-q', '--json'], { encoding: 'utf8' }));
for (const [name, metrics, strip] of [
	['io', 'time in I/O calls, bytes of I/O calls, bytes of block requests', 'time in I/O calls'],
	['faults', 'page faults, time in page faults', 'page faults'], ['spans', 'time in the measured calls', '']]) {
	const input = path.join(fixtures, `calls/${name}.assay`), tables = json(['report', '--details', input]).tables;
	page = await ready(await open(view(input, `${name}.html`)));
	await page.waitForFunction(() => !document.querySelector('.layers') || document.querySelector('.layers canvas').height > 40);
	const shown = await page.evaluate(() => [window.assay.P.metrics.map((m) => m.title).join(', '),
		document.querySelector('.axis').textContent]);
	check(shown[0].startsWith(metrics), `${name}: it adds up ${shown[0]}`);
	check(!/no times/.test(shown[1]) && (!strip || await page.evaluate((title) =>
		window.assay.P.head.streams[0].title === title, strip)), 'and has a time axis');
	await page.keyboard.press('5');
	await drawn(page);
	const text = (await page.textContent('.tables:not([hidden])')).replace(/\s+/g, ' ');
	const missing = tables.filter((t) => t.rows.length && !(text.includes(t.title) && t.columns.every((c) =>
		c.kind !== 'text' || text.includes(String(t.rows[0][c.key]).split('/').pop().slice(0, 20)))));
	check(tables.length > 1 && !missing.length, `${name}: the report's ${tables.length} tables ${missing.map((t) => t.key)}`);
	const d = json(['diagnose', input]), said = await page.textContent('.diagnosis');
	check(await page.evaluate(() => !document.querySelector('.diagnosis').open), 'the diagnosis is closed');
	/* Commands name the page there. */
	const parts = (d.tables[0] ? d.tables[0].rows : []).filter((r) => !r.text.includes(input)).map((r) => r.text);
	check(d.findings.length && [...d.findings, ...d.notes, ...parts].every((t) => said.includes(t)),
		`${name}: and has what assay diagnose says (${d.findings.length} sentences, ${parts.length} parts)`);
	await page.close();
	page = await open('file://' + path.join(dir, `${name}.html`), { javaScriptEnabled: false });
	const plain = (await page.textContent('#static pre')).replace(/\s+/g, ' ');
	check(d.findings.every((t) => plain.includes(t.replace(/\s+/g, ' '))), 'also without scripts');
	await page.close();
}

/* ---- print: light, whole, and back ---- */

page = await ready(await open(view(faults, 'print.html'), { colorScheme: 'dark', viewport: { width: 1440, height: 900 } }));
await page.evaluate((f) => window.assay.set({ selected: window.assay.P.tree.name.indexOf(f) }), byLine[0].function);
await drawn(page);
await page.evaluate(() => {
	window.addEventListener('beforeprint', () => {
		const box = getComputedStyle(document.querySelector('.details')), c = document.querySelector('.flame canvas');
		window.printed = [getComputedStyle(document.body).backgroundColor, box.maxHeight, box.position,
			[...c.getContext('2d').getImageData(3, 3, 1, 1).data.slice(0, 3)]];
	});
});
await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
await page.pdf();
const [back, maxHeight, position, pixel] = await page.evaluate(() => window.printed);
check(back === 'rgb(255, 255, 255)' && maxHeight === 'none' && position === 'static' && Math.min(...pixel) > 180,
	`paper is white, the panel whole: ${back} ${maxHeight} ${position} ${pixel}`);
check(await page.evaluate(() => document.documentElement.dataset.theme) === undefined, 'the colours of the screen come back');
await page.close();

/* ---- mouse, keyboard, address ---- */
url = view(path.join(fixtures, 'waits/hotcold.assay'), 'b.html');
await interact(url);
const html = fs.readFileSync(path.join(dir, 'b.html'), 'utf8');
const viewer = ['style', 'script'].map((tag) => Buffer.byteLength(html.split(`<${tag}>`)[1].split(`</${tag}>`)[0]));
check(viewer.every((n) => n > 5000) && viewer[0] + viewer[1] <= 150000, `the viewer has 150 KB at most (${viewer.join(' + ')})`);

/* ---- parts of seconds, and values that cannot be ---- */
page = await ready(await open(url));
for (const range of [[646, 1893], [10, 23], [1001, 1002], [300, 2000]]) {
	const w = await page.evaluate(async (r) => {
		const a = window.assay;
		a.reset();
		a.set({ range: r, view: 'waits', showsIdle: true });
		await a.whenDrawn();
		const longest = (g) => g.state < 0 ? Infinity : a.P.head.states[g.state][5];
		return { bad: ['reason', 'object', 'waker'].flatMap((k) => a.model.waits[k]).filter((g) =>
			![g.p50, g.p99].every((v) => v === -1 || v > 0 && v <= longest(g) + 1)).length,
		nr: a.model.waits.reason.length, text: document.querySelector('#app').textContent };
	}, range);
	check(w.nr && !w.bad && !/NaN|-\d+(\.\d+)?\u00a0[nmµ]?s/.test(w.text),
		`quantiles of ${range} ms are times up to the longest wait (${w.bad} of ${w.nr})`);
	check(/whole seconds/.test(w.text) && /estimates/.test(w.text), 'and the page says what they are of');
}
check(/--time 0\.000\.\.(\d\.000)? /.test(await page.textContent('.details pre')), 'the command has whole seconds');
await page.locator('.details button', { hasText: 'Select whole seconds' }).click();
await drawn(page);
check(!/estimates/.test(await page.textContent('.selection')), 'and a button selects them');
await page.evaluate(() => {
	const a = window.assay;
	a.reset();
	a.set({ heat: true, metric: a.P.metrics.findIndex((m) => m.key === 'on-cpu') });
});
await drawn(page);
const most = await page.evaluate(async () => {
	const a = window.assay, d = await a.engine.ask('axis', { stream: 0, from: 0, to: a.P.head.duration_ms,
		nrBins: 600, nrStrips: 15 });
	const nrThreads = a.P.hasRows.reduce((x, y) => x + y, 0), h = a.model.heat;
	const cpus = Number((a.P.head.facts.find((f) => f[0] === 'cpus') || [0, nrThreads])[1]);
	return { cpus: Math.max(...d.cpu) / 1e6 / d.cpuWidth / Math.min(cpus, nrThreads), width: d.cpuWidth,
		cell: Math.max(...h.bins) / 1e6 / h.rowMs / Math.min(cpus, nrThreads) };
});
check(most.cpus > 0 && most.cpus <= 1 + 1e-6 && most.width >= 100,
	`no bin of the axis has more CPU time than CPUs and threads (${JSON.stringify(most)})`);
check(most.cell > 0 && most.cell <= 1 + 1e-6, 'nor has a cell of the heat map');
const idler = await page.evaluate(async () => {
	const a = window.assay;
	for (let g = 0; g < a.P.groups.list.length; g++) {
		a.reset();
		a.set({ groups: new Set([g]) });
		await a.whenDrawn();
		if (!a.shownSum() && a.model.sums.idle)
			return document.querySelector('.flame .hint').textContent;
	}
	return null;
});
check(/Only idle time is selected.*Show idle time/.test(String(idler)), 'an idle thread has a hint');
await page.close();

/* ---- places ---- */
fs.writeFileSync(path.join(dir, 'frame.html'),
	`<!doctype html><body><iframe sandbox="allow-scripts" width="1100" height="700" src="${url}"></iframe>`);
page = await open('file://' + path.join(dir, 'frame.html'));
await page.frames()[1].waitForSelector('.flame canvas');
check(await page.frames()[1].locator('.legend button').count() > 1, 'it works in a sandboxed frame');
check(await page.frames()[1].evaluate(() => !!window.assay.engine.worker), 'and adds in a worker there');
await page.close();
page = await open('about:blank');
await page.addInitScript(() => {
	delete window.Worker;
});
await page.goto(url);
await ready(page);
check(await page.evaluate(() => !window.assay.engine.worker && window.assay.shownSum() > 0),
	'and without a worker where none can be started');
await page.close();
page = await browser.newPage();
await page.addInitScript(() => addEventListener('load', () => {
	window.atLoad = !document.getElementById('app').hidden && document.querySelector('.flame canvas').height > 100;
}));
await page.goto(url);
check(await page.evaluate(() => window.atLoad), 'a page that counts as loaded shows its views');
await page.close();
page = await open(url, { javaScriptEnabled: false });
check(await page.locator('#static pre').isVisible() && await page.locator('#static svg').count() === 1 &&
	(await page.locator('#static svg').textContent()).length > 100, 'text and a picture without scripts');
await page.close();
page = await ready(await open(url, { colorScheme: 'dark', viewport: { width: 800, height: 700 } }));
check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), '800 pixels suffice');
await page.close();

/* ---- what is folded, and small recordings ---- */
write('tasks.folded', new Map([
	['main;tokio::runtime::runtime::Runtime::block_on;svc::handle::{async_fn#0};work', 3],
	['start_thread;tokio::runtime::task::raw::poll;tokio::runtime::task::core::Core<T,S>::poll;svc::handle::{async_fn#0};work', 5],
	['start_thread;tokio::runtime::blocking::pool::Inner::run;tokio::runtime::task::raw::poll;svc::handle::{async_fn#0};work', 7],
]));
page = await ready(await open(view(path.join(dir, 'tasks.folded'), 'tasks.html')));
check(await page.evaluate(() => {
	const { tree: d, weights } = window.assay.model, name = (i) => window.assay.symName(d.sym[i]);
	const [runtime] = [...d.parent.keys()].filter((i) => i && name(i) === '[runtime frames]' && !d.parent[i]);
	return name(d.first[runtime]) === 'svc::handle::{async_fn#0}' && weights.total[d.first[runtime]] === 12;
}), 'tasks that workers of a runtime poll are one frame by their outermost future');
check(await page.evaluate(async () => {
	const a = window.assay, found = document.querySelector('.search [role=status]');
	a.set({ search: 'blocking::pool' });
	await a.whenDrawn();
	const text = found.textContent;
	a.set({ search: '' });
	await a.whenDrawn();
	return text;
}).then((text) => text.startsWith('46.7')), 'a search finds folded frames');
await page.evaluate(() => window.assay.set({ folds: false }));
await drawn(page);
check(await page.evaluate(() => window.assay.model.tree.n) === 14, 'and all frames are one click away');
await page.close();
write('plumbing.folded', new Map([
	['main;svc::reply;<&mut T as tokio::io::async_write::AsyncWrite>::poll_write;mio::net::write;send;__libc_send;work', 3],
	['main;svc::lock;sem_wait;__new_sem_wait_slow64;do_futex_wait;__futex_abstimed_wait_common64;work', 2],
	['main;svc::mine;futex_of_mine;__GI_memcpy', 1],
]));
page = await ready(await open(view(path.join(dir, 'plumbing.folded'), 'plumbing.html')));
check(await page.evaluate(() => {
	const { tree: d } = window.assay.model, name = (i) => window.assay.symName(d.sym[i]), paths = [''], leaves = [];
	for (let i = 1; i < d.n; i++) {
		paths.push(`${paths[d.parent[i]]};${name(i)}`);
		if (!d.first[i])
			leaves.push(paths[i].slice(1));
	}
	return leaves.sort().join('\n');
}) === ['main;svc::lock;sem_wait;[system call];work', 'main;svc::mine;futex_of_mine;__GI_memcpy',
	'main;svc::reply;[runtime frames];send;[system call];work'].join('\n'),
"plumbing of a runtime and of the C library's system calls is one frame each");
await page.close();
page = await ready(await open(view(path.join(fixtures, 'calls/spans.assay'), 'spans.html')));
check(await page.evaluate(() => window.assay.P.head.spans.length) === 20, 'the slowest calls are on the axis');
check(await page.evaluate(() => {
	const { assay } = window, all = assay.P.head.spans;
	return assay.P.groups.list.every((g, k) => {
		assay.set({ groups: new Set([k]) });
		const want = all.filter(([, , t]) => g.threads.includes(t)).length;
		return assay.spans().length === want;
	}) && assay.P.groups.list.some((g, k) => (assay.set({ groups: new Set([k]) }), !assay.spans().length));
}), 'the slowest calls on the axis are of the selected threads');
await page.close();

page = await ready(await open(view(path.join(fixtures, 'cut/heap.assay'), 'heap.html')));
check(await page.evaluate(() => [...document.querySelectorAll('[role=tab]')].filter((b) => !b.hidden)
	.map((b) => b.textContent).join(' ')) === 'Flame Functions Memory Tables About', 'a heap has no view of waits');
await page.close();

/* ---- hostile names ---- */
const evil = new Map([
	['main;</script><script>window.owned=1</script>', 5], ['main;]]><img src=x onerror=owned=1>', 7],
	['main;"\' onload="owned=1', 3], ['main;&lt;b&gt; &amp;', 2], ['main;${owned=1}', 2],
	['main;__proto__', 4], ['main;\u{1f525} \u202e rtl', 3], ['main;\u0001\u0007', 2],
]);
write('evil.folded', evil);
page = await ready(await open(view(path.join(dir, 'evil.folded'), 'evil.html')));
await page.keyboard.press('2');
await drawn(page);
check((await page.textContent('tbody')).includes('</script><script>'), 'hostile names are text');
check(await page.evaluate(() => window.owned === undefined), 'and never run');
await page.close();

/* 100,000 names of bytes that mean something to HTML, scripts, shells, regular expressions or UTF-8. */
const bits = ['<', '>', '"', "'", '&', '</script>', '<script>owned=1</script>', '<!--', ']]>', '`', '${owned=1}',
	'\\', '\\u003c', '&lt;', '\u2028', '\u202e', '\u0001', '\u0007', '\ud800', '\ufeff', '(', '[', '*', ';', '=',
	'javascript:owned=1', 'onerror=owned=1', '<img src=x>', '::', 'operator<', '__proto__', 'constructor', ' ', 'é', '\u{1f525}'];
let folded = '';
for (let i = 0; i < 100000; i++) {
	let name = '';
	for (let k = 1 + Math.floor(random() * 6); k > 0; k--)
		name += bits[Math.floor(random() * bits.length)];
	folded += `main;${name.replace(/[;\n]/g, ',')}${i} ${1 + i % 7}\n`;
}
fs.writeFileSync(path.join(dir, 'fuzz.folded'), folded);
url = view(path.join(dir, 'fuzz.folded'), 'fuzz.html');
const scripts = (file) => fs.readFileSync(path.join(dir, file), 'utf8').match(/<script/g).length;
check(scripts('fuzz.html') === scripts('tasks.html'), '100,000 hostile names add no script');
page = await ready(await open(url));
for (const key of ['2', '5', '6', '1']) {
	await page.keyboard.press(key);
	await drawn(page);
}
check(await page.evaluate(() => window.assay.P.tree.nrSyms) >= 100000, 'all of them are in the page');
check(await page.evaluate(() => window.owned === undefined && !document.querySelector('#app img, #app script')),
	'and none is markup');
await page.close();

/* ---- a large tree that is larger when inverted ---- */

write('wide.folded', Array.from({ length: 5000 }, (_, i) => [`a;b;c;d;leaf_${i}`, 1]));
page = await ready(await open(view(path.join(dir, 'wide.folded'), 'wide.html')));
await page.keyboard.press('b');
await drawn(page);
check(await page.evaluate(() => window.assay.model.tree.n) === 1 + 5 * 5000,
	'callers of 5,000 leaves are in the inverted tree');
await page.close();

await finish();
