/** Pages of `pullwright report` for tests in browsers: made by the command, opened, and listened to. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { runProcess } from '../support/process.ts';
import { tempFolder } from '../support/temp-folder.ts';
import type { PageOptions, TestBrowser } from './browsers.ts';

const root = new URL('../..', import.meta.url).pathname;

/** The example in which much is wrong. */
export const TROUBLED = 'examples/troubled';
/** Its cluster with the most to show, and the same with a pull path drawn. */
export const CLUSTER = '#cluster=clusters%2Fshop-eu';

/** Makes pages in a folder of its own, each once; the suite removes it at its end. */
export interface ReportPages {
  readonly folder: string;
  /** The address of the page of a folder of manifests. */
  of(from: string): Promise<string>;
}

export function reportPages(): ReportPages {
  const folder = tempFolder();
  const made = new Map<string, Promise<string>>();
  return {
    folder,
    of: (from) => {
      const known = made.get(from) ?? makePage(from, join(folder, `${made.size}.html`));
      made.set(from, known);
      return known;
    },
  };
}

async function makePage(from: string, path: string): Promise<string> {
  const command = [process.execPath, 'main.ts', 'report', '--from', from, '--html', path];
  const ran = await runProcess(command, { cwd: root });
  assert.ok(ran.code === 0 || ran.code === 1, ran.stderr);
  return `file://${path}`;
}

/** A page, and all that it says to the console, shows as a dialog, or asks for beside itself: nothing, if it is good. */
export interface OpenedPage {
  readonly page: Page;
  readonly heard: readonly string[];
}

/** Opens `url` and waits until something is drawn. */
export async function opened(
  browser: TestBrowser,
  url: string,
  options: PageOptions = {},
): Promise<OpenedPage> {
  const page = await browser.page(options);
  const heard: string[] = [];
  page.on('console', (message) => heard.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => heard.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => heard.push(`dialog: ${dialog.message()}`));
  page.on('request', (request) => {
    if (request.url().split('#')[0] !== url.split('#')[0]) heard.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  await page.locator('#view h1').first().waitFor();
  return { page, heard };
}

/** Elements that are wider than the room that they have: the document itself, and what hides the part that has no room. */
export async function cutElements(page: Page): Promise<readonly string[]> {
  return await page.evaluate(() => {
    const hides = (element: Element): boolean =>
      ['hidden', 'clip'].includes(getComputedStyle(element).overflowX) &&
      element.closest('.unseen') === null &&
      element.id !== 'made';
    const cut = [...document.querySelectorAll('body *')].filter(
      (element) => hides(element) && element.scrollWidth > element.clientWidth + 1,
    );
    const { scrollWidth, clientWidth } = document.documentElement;
    return [
      ...(scrollWidth > clientWidth ? [`the document: ${scrollWidth} of ${clientWidth}`] : []),
      ...cut.map((element) => `${element.tagName} ${element.className}`),
    ];
  });
}
