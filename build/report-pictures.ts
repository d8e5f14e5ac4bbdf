/** `npm run report:pictures`: the pictures of the report in docs/troubleshooting.md, taken anew from the troubled example in Chromium. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { chromium } from 'playwright-core';

const root = new URL('..', import.meta.url).pathname;
const folder = `${root}docs/pictures`;

/** A picture that is larger than this slows down everybody who clones. */
const MOST_BYTES = 160_000;

const CLUSTER = '#cluster=clusters%2Fshop-eu';

const PICTURES = [
  { name: 'report-light', theme: 'light', width: 1280, height: 860, hash: '' },
  { name: 'report-dark', theme: 'dark', width: 1280, height: 860, hash: '' },
  { name: 'report-phone', theme: 'light', width: 390, height: 844, hash: '' },
  { name: 'report-pull-path', theme: 'light', width: 1280, height: 620, hash: CLUSTER },
] as const;

const made = spawnSync(process.execPath, ['build/report-demo.ts'], { cwd: root, stdio: 'inherit' });
if (made.status !== 0) throw new Error('Cannot take pictures: npm run report:demo failed');
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
for (const { name, theme, width, height, hash } of PICTURES) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
  const page = await context.newPage();
  await page.goto(`file://${root}dist/report/index.html${hash}`);
  if (hash !== '') {
    await page.locator('#part-pulls a[href*="pull="]').first().click();
    await page.locator('#pull').waitFor();
  }
  const path = `${folder}/${name}.png`;
  await page.screenshot({ path });
  const { size } = statSync(path);
  if (size > MOST_BYTES) throw new Error(`${path} has ${size} bytes: expected at most ${MOST_BYTES}`);
  process.stdout.write(`${path}: ${size} bytes\n`);
}
await browser.close();
