/** `npm run report:pictures`: the picture of the report in docs/troubleshooting.md, taken of the troubled example in Chromium. */
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { chromium } from 'playwright-core';

const root = new URL('..', import.meta.url).pathname;
const path = `${root}docs/pictures/report-light.png`;

/** A larger picture slows down every clone. */
const MOST_BYTES = 160_000;

const made = spawnSync(process.execPath, ['build/report-demo.ts'], { cwd: root, stdio: 'inherit' });
if (made.status !== 0) throw new Error('Cannot take the picture: npm run report:demo failed');
const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, colorScheme: 'light' });
const page = await context.newPage();
await page.goto(`file://${root}dist/report/index.html`);
await page.screenshot({ path });
const { size } = statSync(path);
if (size > MOST_BYTES) throw new Error(`${path} has ${size} bytes: expected at most ${MOST_BYTES}`);
process.stdout.write(`${path}: ${size} bytes\n`);
await browser.close();
