/** The report of 500 clusters with 10,000 nodes: its size, how long it takes to make, and to open in Chromium. */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { writeLargeFolder } from '../test/diagnose/report-scene.ts';
import { runProcess } from '../test/support/process.ts';
import { interleaved, ms, printTable } from './measure.ts';

const root = new URL('..', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'pullwright-report-bench-'));
const from = join(folder, 'fleet');
const path = join(folder, 'report.html');
writeLargeFolder(from, 500, 20);
const made = performance.now();
await runProcess([process.execPath, 'main.ts', 'report', '--from', from, '--html', path], { cwd: root });
const madeMs = performance.now() - made;

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
const page = await browser.newPage();
const { open, search } = await interleaved(
  {
    open: async () => {
      await page.goto('about:blank');
      await page.goto(`file://${path}`);
      await page.locator('.matrix tbody tr').first().waitFor();
    },
    search: async () => {
      await page.locator('#search').fill('');
      await page.locator('#search').fill('c-487');
      await page.waitForFunction('document.querySelectorAll(".matrix tbody tr").length === 1');
    },
  },
  7,
);
await browser.close();
printTable('Report of 500 clusters with 10,000 nodes', [
  {
    'page MB': (statSync(path).size / 1e6).toFixed(2),
    'made ms': ms(madeMs),
    'opened ms': ms(open.median),
    'search typed ms': ms(search.median),
  },
]);
rmSync(folder, { recursive: true });
