/*
 * The HTML page in Firefox: each interaction once, dark, and on paper. Its sums and searches are compared in
 * page_browser, with the same script.
 */
import path from 'node:path';
import { browser, check, finish, open } from '../../lib/browserkit.mjs';
import { drawn, fixtures, interact, ready, view } from '../../lib/pagekit.mjs';

console.log(`# ${browser.version()}`);
const url = view(path.join(fixtures, 'waits/hotcold.assay'), 'f.html');
await interact(url);

const page = await ready(await open(url));
const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
check(await back() === 'rgb(21, 24, 28)', `it is dark where the system is (${await back()})`);
await page.locator('.title button').click();
await drawn(page);
check(await back() === 'rgb(255, 255, 255)', 'and light after a click');
await page.locator('.title button').click();
await drawn(page);
await page.evaluate(() => {
	addEventListener('beforeprint', () => {
		const c = document.querySelector('.flame canvas');
		window.printed = [getComputedStyle(document.body).backgroundColor,
			...c.getContext('2d').getImageData(3, 3, 1, 1).data.slice(0, 3)];
	});
});
check((await page.pdf()).length > 10000, 'it prints');
const [paper, ...pixel] = await page.evaluate(() => window.printed);
check(paper === 'rgb(255, 255, 255)' && Math.min(...pixel) > 180, `on white (${paper} ${pixel})`);
check(await back() === 'rgb(21, 24, 28)', 'and the colours of the screen come back');
await page.close();

await finish();
