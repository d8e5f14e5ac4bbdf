// deadline: 240 s
/** Where the parts of the report's page stand: for each view, theme and width. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Page } from 'playwright-core';
import { golden } from '../support/golden.ts';
import { test } from '../support/suite.ts';
import { inBrowsers } from './browsers.ts';
import { CLUSTER, cutElements, opened, reportPages, TROUBLED } from './report-pages.ts';

const pages = reportPages();

const VIEWS = [
  ['overview', ''],
  ['cluster', CLUSTER],
  [
    'pull',
    `${CLUSTER}&pull=${encodeURIComponent('clusters/shop-eu Deployment/checkout/worker quay.io/acme/worker:2.1')}`,
  ],
] as const;

/** Selector that exists once the view is rendered. */
const VIEW_SIGNS = { overview: '#headline', cluster: '.cluster-head', pull: '#pull' } as const;

/** Parts that a person would name, in document order. */
const LANDMARKS =
  'header, .hero, .tiles, #view > section > h2, .cluster-head h1, .step, .places, .matrix, .card, .rows, .namespace, footer';

/**
 * One word for each: what it is, and from which to which twelfth of the width it goes. Heights and single pixels hang on the
 * fonts of the machine; which column something is in does not.
 */
async function boxesOf(page: Page): Promise<readonly string[]> {
  return await page.evaluate((landmarks) => {
    const twelfth = (pixels: number): number => Math.round((pixels / innerWidth) * 12);
    return [...document.querySelectorAll(landmarks)].map((element) => {
      const { left, right } = element.getBoundingClientRect();
      const shown = element.classList[0] ?? element.tagName.toLowerCase();
      return `${shown} ${twelfth(left)}-${twelfth(right)}`;
    });
  }, LANDMARKS);
}

async function coloursOf(page: Page): Promise<string> {
  return await page.evaluate(() => {
    const { color, backgroundColor } = getComputedStyle(document.body);
    return `${color} on ${backgroundColor}`;
  });
}

inBrowsers(test, (browser, title) => {
  test(title('every part stands where it stood, and nothing is cut'), async () => {
    const lines: string[] = [];
    const url = await pages.of(TROUBLED);
    for (const theme of ['light', 'dark'] as const) {
      const { page } = await opened(browser, url, { theme });
      const colours = await coloursOf(page);
      for (const [view, hash] of VIEWS) {
        await page.goto(`${url}${hash}`);
        await page.locator(`#view ${VIEW_SIGNS[view]}`).waitFor();
        for (const width of [1280, 800, 390]) {
          await page.setViewportSize({ width, height: 800 });
          assert.deepEqual(await cutElements(page), [], `${view} ${width} ${theme}`);
          const boxes = (await boxesOf(page)).join(', ');
          const id = createHash('sha256').update(boxes).digest('hex').slice(0, 12);
          lines.push(`${view} ${width} ${theme} ${id}: ${colours}: ${boxes}`);
        }
      }
    }
    // A scroll bar takes room in one browser and none in the other.
    golden(`report/layout-${browser.name}.txt`, `${lines.join('\n')}\n`);
  });
});
