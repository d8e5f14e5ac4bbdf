// deadline: 600 s
/** The documentation site, built from `docs/` and opened in real browsers. */
import assert from 'node:assert/strict';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../../runtime/core/version.ts';
import { buildSite } from '../../site/build.ts';
import { serve } from '../../site/serve.ts';
import { eventually } from '../control-plane/eventually.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { accessibilityProblems } from './axe.ts';
import { inBrowsers } from './browsers.ts';

const root = new URL('../..', import.meta.url).pathname;
const site = tempFolder();

/** An older version exists before the build: it stays, and the site's top redirects to the newest. */
mkdirSync(join(site, '0.0.9'));
writeFileSync(join(site, '0.0.9/index.html'), '<!doctype html><title>old</title><h1>The old one</h1>');
await buildSite({ to: site, base: '/' });
const served = await serve(site, 0);
const home = `${served.url}${VERSION}/`;

test('every page has a policy that lets nothing be asked', () => {
  const pages = globSync('**/*.html', { cwd: join(site, VERSION) });
  assert.ok(pages.length > 60);
  for (const page of pages)
    assert.match(readFileSync(join(site, VERSION, page), 'utf8'), /connect-src 'none'/, page);
});

test('the playground is a page beside the one that describes it', () => {
  const page = (name: string): string => readFileSync(join(site, VERSION, name), 'utf8');
  assert.match(page('playground.html'), /VPNav/);
  assert.doesNotMatch(page('play.html'), /VPNav/);
  assert.match(page('index.html'), /href="[^"]*play\.html"/);
});

test('its sources are typed', async () => {
  const ran = await runProcess([join(root, 'node_modules/.bin/tsc'), '-p', join(root, 'site')], {
    deadlineMs: 120_000,
  });
  assert.equal(ran.code, 0, ran.stdout);
});

inBrowsers(test, (browser, title) => {
  test(title('a page is found by a word, without asking anybody but the site itself'), async () => {
    const page = await browser.page();
    const heard: string[] = [];
    page.on('pageerror', (error) => heard.push(`error: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error') heard.push(`console: ${message.text()}`);
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(served.url) && !request.url().startsWith('data:'))
        heard.push(`request: ${request.url()}`);
    });
    await page.goto(served.url);
    await page.getByRole('heading', { name: 'Start' }).waitFor();
    assert.equal(page.url(), home);
    // The page listens to keys once its program runs.
    await eventually(
      async () => {
        await page.keyboard.press('Control+k');
        await page.getByRole('searchbox').waitFor({ timeout: 2000 });
      },
      { everyMs: 100 },
    );
    await page.getByRole('searchbox').fill('why an image does not pull');
    await page.locator('.result').first().waitFor();
    await page.keyboard.press('Enter');
    await page
      .getByRole('heading', { level: 1, name: 'Troubleshooting: why an image does not pull' })
      .waitFor();
    assert.deepEqual(heard, []);
  });

  test(title('the switch leads to an older version'), async () => {
    const page = await browser.page();
    await page.goto(`${home}reference/cli.html`);
    const options = page.locator('.VPNavBar .versions option');
    await options.nth(1).waitFor({ state: 'attached' });
    assert.deepEqual(await options.allInnerTexts(), [`${VERSION} (latest)`, '0.0.9']);
    await page.locator('.VPNavBar .versions select').selectOption('0.0.9');
    await page.getByRole('heading', { name: 'The old one' }).waitFor();
  });

  for (const theme of ['light', 'dark'] as const)
    test(title(`${theme}: pages break no rule of accessibility`), async () => {
      for (const name of ['', 'troubleshooting.html', 'runbooks/']) {
        const page = await browser.page({ theme });
        await page.goto(home + name);
        await page.locator('h1').first().waitFor();
        assert.deepEqual(await accessibilityProblems(page), [], name);
      }
    });
});

test.lastly('the server is closed', () => served.close());
