// deadline: 240 s
/** The page of `pullwright report` in real browsers: what it asks, what it tells everybody, and what keys do. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import { accessibilityProblems } from './axe.ts';
import { inBrowsers, type TestBrowser } from './browsers.ts';

const test = suite('report in a browser');
const root = new URL('../..', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'pullwright-report-browser-'));
const made = new Map<string, Promise<string>>();

/** The address of the page of a folder; made once. */
function pageOf(from: string): Promise<string> {
  const known = made.get(from) ?? makePage(from, join(folder, `${made.size}.html`));
  made.set(from, known);
  return known;
}

async function makePage(from: string, path: string): Promise<string> {
  const command = [process.execPath, 'main.ts', 'report', '--from', from, '--html', path];
  const ran = await runProcess(command, { cwd: root });
  assert.ok(ran.code === 0 || ran.code === 1, ran.stderr);
  return `file://${path}`;
}

const CLUSTER = '#cluster=clusters%2Fshop-eu';

/** Opened, and what the page says to the console or asks for beside itself, which is to be nothing. */
async function opened(
  browser: TestBrowser,
  url: string,
  options: Parameters<TestBrowser['page']>[0] = {},
): Promise<{ readonly page: Page; readonly heard: readonly string[] }> {
  const page = await browser.page(options);
  const heard: string[] = [];
  page.on('console', (message) => heard.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => heard.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => heard.push(`dialog: ${dialog.message()}`));
  page.on('request', (request) => {
    if (request.url().split('#')[0] !== url.split('#')[0]) heard.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  await page.locator('h1').first().waitFor();
  return { page, heard };
}

inBrowsers(test, (browser, title) => {
  for (const theme of ['light', 'dark'] as const)
    for (const [view, hash] of [
      ['overview', ''],
      ['cluster', CLUSTER],
    ] as const)
      test(title(`${view}, ${theme}: breaks no rule of accessibility and asks nobody`), async () => {
        const { page, heard } = await opened(browser, `${await pageOf('examples/troubled')}${hash}`, {
          theme,
        });
        await page.evaluate(() => {
          for (const details of document.querySelectorAll('details')) details.open = true;
        });
        assert.deepEqual(await accessibilityProblems(page), []);
        assert.deepEqual(heard, []);
      });
});

test.lastly('the folder is removed', () => rmSync(folder, { recursive: true }));
test.run();
