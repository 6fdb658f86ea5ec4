// When Chromium painted the first text of each page, in milliseconds: the medians of five times, as a JSON list.
//
// node painted.mjs ORIGIN COOKIE PATH ...: needs playwright-core in NODE_PATH, and Debian's Chromium.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [origin, cookie, ...paths] = process.argv.slice(2);
const { chromium } = createRequire(join(process.env.NODE_PATH, 'x.js'))('playwright-core');
const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [...(process.getuid() === 0 ? ['--no-sandbox'] : []), '--disable-dev-shm-usage', '--disable-gpu'],
});
const context = await browser.newContext();
const [name, value] = [cookie.slice(0, cookie.indexOf('=')), cookie.slice(cookie.indexOf('=') + 1)];
await context.addCookies([{ name, value, url: origin, sameSite: 'Strict', httpOnly: true }]);
const page = await context.newPage();
const medians = [];
for (const path of paths) {
    const times = [];
    for (let round = 0; round < 5; round += 1) {
        await page.goto(origin + path, { waitUntil: 'load' });
        const painted = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime;
        await page.waitForFunction(painted);
        times.push(await page.evaluate(painted));
    }
    medians.push(times.sort((a, b) => a - b)[2]);
}
console.log(JSON.stringify(medians));
await browser.close();
