// deadline: 300 s
/** The page of `pullwright report` in real browsers: what it asks, what it tells everybody, what keys do, and what paper shows. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { writeContainerdFolder } from '../diagnose/report-scene.ts';
import { test } from '../support/suite.ts';
import { accessibilityProblems } from './axe.ts';
import { inBrowsers } from './browsers.ts';
import { CLUSTER, cutElements, opened, reportPages, TROUBLED } from './report-pages.ts';

const pages = reportPages();

inBrowsers(test, (browser, title) => {
  for (const theme of ['light', 'dark'] as const)
    for (const [view, hash] of [
      ['overview', ''],
      ['cluster', CLUSTER],
    ] as const)
      test(title(`${view}, ${theme}: breaks no rule of accessibility and asks nobody`), async () => {
        const { page, heard } = await opened(browser, `${await pages.of(TROUBLED)}${hash}`, { theme });
        await page.evaluate(() => {
          for (const details of document.querySelectorAll('details')) details.open = true;
        });
        assert.deepEqual(await accessibilityProblems(page), []);
        assert.deepEqual(heard, []);
      });

  test(title('a pull path breaks no rule of accessibility'), async () => {
    const { page } = await opened(browser, `${await pages.of(TROUBLED)}${CLUSTER}`);
    await page.locator('#part-pulls a[href*="pull="]').first().click();
    await page.locator('#pull').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    assert.deepEqual(await page.locator('.step h3').allTextContents(), [
      'Pod',
      'kubelet chooses',
      'CRI-O tries, in this order',
    ]);
  });

  test(title('where nodes run containerd, its hosts.toml stands in the place of mirror sets'), async () => {
    const from = join(pages.folder, 'containerd');
    writeContainerdFolder(from);
    const { page } = await opened(browser, await pages.of(from));
    await page.locator('.matrix th a').first().click();
    await page.locator('#part-pulls a', { hasText: 'Deployment/shop/busybox' }).click();
    await page.locator('#pull').waitFor();
    assert.deepEqual(await page.locator('.step h3').allTextContents(), [
      'Pod',
      'kubelet chooses',
      'containerd tries, in this order',
    ]);
    assert.match(await page.locator('.places').innerText(), /certs\.d\/docker\.io\/hosts\.toml/);
    assert.deepEqual(await accessibilityProblems(page), []);
  });

  test(title('keys alone lead from the first screen to the pull path, and back'), async () => {
    const { page } = await opened(browser, await pages.of(TROUBLED));
    const { keyboard } = page;
    const focused = (): Promise<string> =>
      page.evaluate(() => document.activeElement?.textContent?.trim().slice(0, 60) ?? '');
    await keyboard.press('Tab');
    assert.equal(await focused(), 'To the report');
    await keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement?.id === 'view');

    await keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'search');
    await keyboard.type('shop-us');
    assert.deepEqual(await page.locator('.matrix tbody th').allTextContents(), ['clusters/shop-us']);
    await keyboard.press('Escape');
    assert.equal(await page.locator('.matrix tbody tr').count(), 4);

    const summary = page.locator('.broken[data-cause="secrets-exist"] > summary');
    await summary.focus();
    await keyboard.press('Enter');
    const link = page.locator('[data-cause="secrets-exist"] .path-link').first();
    await link.waitFor();
    for (let tabs = 0; tabs < 5 && (await focused()) !== 'Show the pull path'; tabs += 1)
      await keyboard.press('Tab');
    assert.equal(await focused(), 'Show the pull path');
    await keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement?.id === 'pull');
    await page.goBack();
    await page.locator('#headline').waitFor();
  });

  test(title('every address shows what it names, in a page that is opened with it'), async () => {
    const url = await pages.of(TROUBLED);
    const { page } = await opened(browser, url);
    const links = await page
      .locator('.card-link a')
      .evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''));
    assert.equal(links.length, 11);
    const last = await opened(browser, `${url}${links.at(-1) ?? ''}`);
    assert.equal(await last.page.locator('.card[open]').count(), 2);
    const part = await opened(browser, `${url}${CLUSTER}&part=keys`);
    assert.equal(await part.page.evaluate(() => document.activeElement?.id), 'part-keys');
    const gone = await opened(browser, `${url}#cluster=nobody`);
    assert.match(
      await gone.page.locator('[role=status]').first().innerText(),
      /Cluster nobody is not in this report/,
    );
  });

  test(title('what is folded and what is further down is on paper, and folded again after it'), async () => {
    const { page } = await opened(browser, `${await pages.of(TROUBLED)}${CLUSTER}`);
    const folded = (): Promise<number> => page.locator('details:not([open])').count();
    const before = await folded();
    assert.ok(before > 4);
    await page.evaluate(() => globalThis.dispatchEvent(new Event('beforeprint')));
    assert.equal(await folded(), 0);
    assert.equal(await page.locator('.node-list li').count(), 8);
    assert.equal(await page.locator('button.more').count(), 0);
    assert.match((await page.locator('.address').textContent()) ?? '', /#cluster=clusters%2Fshop-eu$/);
    if (browser.name === 'chromium') {
      // A4 at 96 dots per inch, without its margins.
      await page.setViewportSize({ width: 718, height: 1000 });
      await page.emulateMedia({ media: 'print' });
      assert.deepEqual(await cutElements(page), []);
      assert.equal(
        await page
          .locator('.scroll')
          .evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length),
        0,
      );
      assert.equal(await page.locator('#search').isVisible(), false);
      const paper = await page.pdf({ format: 'A4' });
      assert.ok((paper.toString('latin1').match(/\/Type \/Page\b/g) ?? []).length >= 3);
    }
    await page.evaluate(() => globalThis.dispatchEvent(new Event('afterprint')));
    assert.equal(await folded(), before);
  });
});
