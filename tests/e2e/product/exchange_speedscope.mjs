/* Prints as JSON the rows that speedscope's own page shows of $FILE: [function, total, self]. See exchange_speedscope.sh. */
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const [, dir, modules, program] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(modules, 'x.js'))('playwright-core');
const script = path.join(dir, 'load.js');
const data = fs.readFileSync(process.env.FILE).toString('base64');
fs.writeFileSync(script, `speedscope.loadFileFromBase64("x.speedscope.json", "${data}")`);
const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 1400, height: 2000 } });
page.on('pageerror', (e) => { console.error(String(e)); process.exitCode = 1; });
await page.goto(`file://${process.env.SPEEDSCOPE}/index.html#localProfilePath=${script}&view=sandwich`);
await page.waitForFunction(() => document.querySelectorAll('td').length > 3, null, { timeout: 30000 });
const rows = await page.evaluate(() => [...document.querySelectorAll('tr')].map(
	(row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent)));
await browser.close();
/* The list of profiles has rows, too: number, name, amount. */
console.log(JSON.stringify(rows.filter((r) => r.length === 3 && /%\)$/.test(r[0]))
	.map(([total, self, name]) => [name, total, self])));
