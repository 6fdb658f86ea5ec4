// The pages in a real browser: every view with data, wide and narrow, light and dark, without JavaScript; search as one
// types, edit, forget and undo, the keyboard; hostile texts that must not run; axe-core; and no request to elsewhere.
//
// node pages.mjs PROGRAM FOLDER [SCREENSHOTS]: makes its data in FOLDER. With SCREENSHOTS, also writes the pictures of the
// documentation there. Exit 1 on any finding. Needs playwright-core and axe-core in NODE_PATH, and Debian's Chromium.
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Ground } from './ground.mjs';

const [program, folder, pictures] = process.argv.slice(2);
const require = createRequire(join(process.env.NODE_PATH ?? process.cwd(), 'x.js'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const found = [];
const check = (isRight, what) => { if (!isRight) found.push(what); };
const times = [];

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const ground = new Ground(program, folder);
await ground.fill();
const { address, child, said } = await ground.open();
const origin = new URL(address).origin;
const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [...(process.getuid() === 0 ? ['--no-sandbox'] : []), '--disable-dev-shm-usage', '--disable-gpu'],
});
let state;

/** Opens a context whose pages report errors, and requests to elsewhere. */
async function context(name, options = {}) {
    const made = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', storageState: state, ...options });
    made.setDefaultTimeout(15_000);
    made.on('page', (page) => {
        page.on('console', (message) => {
            const isExpected = message.text().includes('status of 40');
            if (['error', 'warning'].includes(message.type()) && !isExpected) found.push(`${name} console: ${message.text()}`);
        });
        page.on('pageerror', (error) => found.push(`${name} error: ${error.message}`));
        page.on('dialog', (dialog) => { found.push(`${name} dialog: ${dialog.message()}`); dialog.dismiss(); });
        page.on('request', (request) => { if (!request.url().startsWith(`${origin}/`)) found.push(`${name} request: ${request.url()}`); });
    });
    return made;
}

// The first address becomes a cookie, and works once.
{
    const made = await context('first');
    const page = await made.newPage();
    await page.goto(address, { waitUntil: 'networkidle' });
    check(page.url() === `${origin}/`, `the first address leads to ${page.url()}`);
    state = await made.storageState();
    await made.close();
    const other = await context('other', { storageState: undefined });
    const answer = await (await other.newPage()).goto(address);
    check(answer.status() === 403, `the first address works twice: ${answer.status()}`);
    await other.close();
}

const plain = await context('views');
const reader = await plain.newPage();
await reader.goto(`${origin}/search?q=ledger+append-only&kind=decision`);
const note = new URL(await reader.locator('.hits h2 a').first().getAttribute('href'), origin).searchParams.get('id');
await plain.close();

const VIEWS = {
    project: '/', checks: '/doctor', timeline: '/timeline', 'timeline narrowed': '/timeline?author=ada&client=claude',
    session: '/session?id=ledger-append-only', 'session in detail': '/session?id=tides-of-august&level=detailed',
    'hostile session': '/session?id=hostile-texts', search: '/search?q=why+is+the+ledger+append-only',
    'empty search': '/search', 'hostile search': '/search?q=%22%3E%3Cscript%3Eform', memory: `/memory?id=${note}`,
    'hostile memory': '/memory?id=hostile-texts%234', purge: `/memory/purge?id=${note}`, file: '/file?path=src/tides.rs',
    'hostile file': '/file?path=src/hostile.txt', files: '/file', threads: '/threads', thread: '/thread?session=review&assistant=local',
    privacy: '/privacy', stash: '/stash', 'stash searched': '/stash?words=plan+for+berths', error: '/memory?id=mnothing',
};

for (const [width, colorScheme, javaScriptEnabled] of [[1280, 'light', true], [1280, 'dark', true], [320, 'light', true], [320, 'dark', false]]) {
    const kind = `${width} ${colorScheme}${javaScriptEnabled ? '' : ' without JavaScript'}`;
    const made = await context(kind, { viewport: { width, height: 800 }, colorScheme, javaScriptEnabled });
    const page = await made.newPage();
    for (const [name, path] of Object.entries(VIEWS)) {
        const at = `${name}, ${kind}`;
        const answer = await page.goto(origin + path, { waitUntil: javaScriptEnabled ? 'networkidle' : 'load' });
        check([200, 404].includes(answer.status()), `${at}: status ${answer.status()}`);
        check((await page.locator('main h1').count()) === 1, `${at}: not one heading`);
        const bad = await page.locator('main img, main iframe, main script, main object, body [onclick], body [onerror], body [style]').count();
        check(bad === 0, `${at}: ${bad} elements of hostile texts`);
        if (!javaScriptEnabled) continue;
        check(!(await page.evaluate(() => 'ran' in globalThis)), `${at}: a hostile text ran`);
        check(!(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)), `${at}: scrolls sideways`);
        times.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0));
        // Through the debugger, so that the content security policy stays as it is.
        const session = await made.newCDPSession(page);
        await session.send('Runtime.evaluate', { expression: axe });
        const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
        for (const each of violations) found.push(`${at}: axe ${each.impact} ${each.id}: ${each.nodes.length} × ${each.nodes[0].target}`);
    }
    await made.close();
}

// What was stashed is listed and found.
{
    const made = await context('stash');
    const page = await made.newPage();
    await page.goto(`${origin}/stash`);
    check((await page.locator('main section h2').count()) === 2, 'the stash does not list its two topics');
    await page.goto(`${origin}/stash?words=plan+for+berths`);
    check((await page.locator('.hits li').first().textContent()).includes('one list for each pier'), 'the stash finds nothing');
    await made.close();
}

// What a person does.
{
    const made = await context('person');
    const page = await made.newPage();
    await page.goto(`${origin}/`);
    await page.keyboard.press('Tab');
    check(await page.evaluate(() => document.activeElement.textContent.includes('Skip')), 'the first Tab does not lead to the skip link');
    await page.keyboard.press('/');
    await page.keyboard.type('ledger app', { delay: 30 });
    await page.waitForFunction(() => document.querySelectorAll('#typed a').length > 0).catch(() => found.push('search as one types shows nothing'));
    check((await page.locator('#typed mark').count()) > 0, 'search as one types marks nothing');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/memory\?id=/).catch(() => found.push('the arrow keys do not lead to a hit'));
    await page.goto(`${origin}/`);
    await page.getByLabel('Search', { exact: true }).fill('<img src=x onerror=globalThis.ran=1>');
    await page.waitForTimeout(600);
    check((await page.locator('#typed img, #typed script').count()) === 0, 'a hostile text became an element of the search');

    // Edit, forget, undo, and a purge that is not done.
    await page.goto(`${origin}/memory?id=${note}`);
    await page.locator('summary', { hasText: 'Edit' }).click();
    await page.getByLabel('New text').fill('The ledger is append-only, and a correction is an entry of its own.');
    await page.getByRole('button', { name: 'Store' }).click();
    await page.waitForLoadState();
    const edited = new URL(page.url()).searchParams.get('id');
    check(edited !== note, 'an edit stores nothing');
    check((await page.locator('main').textContent()).includes('a correction is an entry'), 'the new text is not shown');
    await page.goto(`${origin}/memory?id=${note}`);
    check((await page.locator('main').textContent()).includes('Superseded by'), 'the old text is not marked');
    await page.goto(`${origin}/memory?id=${edited}`);
    await page.getByRole('button', { name: 'Forget' }).click();
    await page.waitForURL(/\/forgotten/);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.waitForURL(/\/memory\?id=/).catch(() => found.push('undo does not lead back'));
    check((await page.locator('main').textContent()).includes('a correction is an entry'), 'undo brings nothing back');
    await page.getByRole('button', { name: 'Mark as important' }).click();
    await page.waitForLoadState();
    check((await page.locator('h1').textContent()).includes('important'), 'a mark is not shown');
    await page.getByRole('link', { name: 'Purge' }).click();
    check((await page.locator('h1').textContent()).includes('Purge for good?'), 'a purge does not ask');
    await page.getByRole('link', { name: 'Keep it' }).click();

    // Every element that the keyboard reaches shows that it has the focus.
    await page.goto(`${origin}/search?q=ledger`);
    for (let step = 0; step < 25; step += 1) {
        await page.keyboard.press('Tab');
        const shown = await page.evaluate(() => {
            const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
            return document.activeElement === document.body || (outlineStyle !== 'none' && outlineWidth !== '0px');
        });
        check(shown, `step ${step} of the keyboard shows no focus`);
    }
    await made.close();
}

if (pictures) {
    mkdirSync(pictures, { recursive: true });
    const shown = new Ground(program, join(folder, 'shown'));
    await shown.fill([]);
    const opened = await shown.open();
    const made = await browser.newContext({ viewport: { width: 1200, height: 760 }, reducedMotion: 'reduce' });
    const page = await made.newPage();
    await page.goto(opened.address, { waitUntil: 'networkidle' });
    const views = { project: '/', session: '/session?id=ledger-append-only', file: '/file?path=src/ledger.rs', search: '/search?q=two+ferries+one+berth' };
    for (const [name, path] of Object.entries(views)) {
        await page.goto(new URL(path, opened.address).href, { waitUntil: 'networkidle' });
        const file = join(pictures, `pages-${name}.png`);
        await page.screenshot({ path: file });
        check(statSync(file).size <= 300_000, `${file} has ${statSync(file).size} bytes`);
    }
    await made.close();
    opened.child.removeAllListeners('exit');
    opened.child.kill('SIGINT');
    shown.close();
}

await browser.close();
check(!said().includes('panicked'), `the program panicked: ${said()}`);
child.removeAllListeners('exit');
const ended = new Promise((resolve) => child.on('exit', resolve));
child.kill('SIGINT');
check((await ended) === 0, 'Ctrl-C does not end it well');
ground.close();
times.sort((one, other) => one - other);
console.log(`${times.length} pages, first contentful paint: median ${Math.round(times[times.length >> 1])} ms, longest ${Math.round(times.at(-1))} ms`);
console.log(found.length ? found.join('\n') : 'nothing found');
process.exit(found.length ? 1 : 0);
