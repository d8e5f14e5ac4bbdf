// deadline: 300 s
/** The report's page with hostile names, and with a very large number of clusters, in real browsers. */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { writeHostileFolder, writeLargeFolder } from '../diagnose/report-scene.ts';
import { test } from '../support/suite.ts';
import { accessibilityProblems } from './axe.ts';
import { inBrowsers } from './browsers.ts';
import { cutElements, opened, reportPages } from './report-pages.ts';

const pages = reportPages();
const hostile = join(pages.folder, 'hostile');
const large = join(pages.folder, 'large');
writeHostileFolder(hostile);
writeLargeFolder(large, 500, 20);

/** Elements that the page draws at most for its first screen, whatever the size of the fleet. */
const MOST_ELEMENTS = 6000;

inBrowsers(test, (browser, title) => {
  for (const width of [1280, 390])
    test(title(`hostile names are text, and have room, at ${width}`), async () => {
      const { page, heard } = await opened(browser, await pages.of(hostile), { width });
      const hash = await page.locator('.matrix th a').first().getAttribute('href');
      await page.evaluate((to) => {
        location.hash = to ?? '';
      }, hash);
      await page.locator('#part-pulls').waitFor();
      await page.evaluate(() => globalThis.dispatchEvent(new Event('beforeprint')));
      const said = await page.evaluate(() => ({
        text: document.body.innerText,
        elements: document.querySelectorAll('img, svg, iframe, object, embed, a[href^="javascript"]').length,
        scripts: document.scripts.length,
        title: document.title,
      }));
      assert.deepEqual([said.elements, said.scripts], [0, 2]);
      assert.match(said.text, /<img src=x onerror=alert\(1\)>/);
      assert.doesNotMatch(said.text, /(?!\n|\t)[\p{Cc}\p{Cf}]/u);
      assert.doesNotMatch(said.text, /x{1300}/);
      assert.doesNotMatch(said.title, /owned/);
      assert.deepEqual(await cutElements(page), []);
      assert.deepEqual(heard, []);
    });

  test(title('hostile names break no rule of accessibility'), async () => {
    const { page } = await opened(browser, await pages.of(hostile));
    assert.deepEqual(await accessibilityProblems(page), []);
  });

  test(
    title('500 clusters with 10,000 nodes are there, found, and drawn as far as somebody looks'),
    async () => {
      const url = await pages.of(large);
      assert.ok(statSync(new URL(url)).size < 20 * 1024 * 1024);
      const { page, heard } = await opened(browser, url);
      const elements = (): Promise<number> => page.evaluate(() => document.querySelectorAll('*').length);
      assert.match(await page.locator('#headline').innerText(), /in \d+ of 50[01] clusters/);
      assert.ok((await elements()) < MOST_ELEMENTS, `${await elements()} elements`);
      await page.keyboard.press('/');
      await page.keyboard.type('clusters/c-487');
      await page.waitForFunction(() => document.querySelectorAll('.matrix tbody tr').length === 1);
      await page.locator('.matrix tbody th a').click();
      await page.locator('.cluster-head h1').waitFor();
      assert.match(await page.locator('.nodes-words').first().innerText(), /15 not known, 5 not eligible/);
      assert.ok((await elements()) < MOST_ELEMENTS, `${await elements()} elements`);
      assert.deepEqual(heard, []);
    },
  );
});
