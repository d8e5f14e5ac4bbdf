// deadline: 600 s
/** The playground in real browsers: it answers like the command line, sends no requests, shows no value, and lists bad files. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Page } from 'playwright-core';
import { installPackages } from '../../site/build.ts';
import { serve } from '../../site/serve.ts';
import { findPlanted, plantedAuth, plantedPassword } from '../support/canary.ts';
import { runMain, type runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { accessibilityProblems } from './axe.ts';
import { inBrowsers, type TestBrowser } from './browsers.ts';
import { asked, held } from './playground-page.ts';

const root = new URL('../..', import.meta.url).pathname;
const folder = tempFolder();

installPackages();
const { examples, playgroundPage } = await import('../../site/playground/bundle.ts');
writeFileSync(join(folder, 'playground.html'), await playgroundPage());
const served = await serve(folder, 0);
const address = `${served.url}playground.html`;

interface Opened {
  readonly page: Page;
  /** Requests beyond the page itself, and errors. */
  readonly heard: readonly string[];
}

async function open(browser: TestBrowser, options: Parameters<TestBrowser['page']>[0] = {}): Promise<Opened> {
  const page = await browser.page(options);
  const heard: string[] = [];
  page.on('pageerror', (error) => heard.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    heard.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (request.url() !== address && !request.url().startsWith('blob:'))
      heard.push(`request: ${request.url()}`);
  });
  await page.goto(address);
  await page.getByRole('heading', { level: 1 }).waitFor();
  return { page, heard };
}

/** Command lines whose output is compared with the program's, without the time of the report. */
const QUESTIONS: readonly (readonly string[])[] = [
  ['report', '--from', 'examples/troubled', '--output', 'json'],
  ['report', '--from', 'examples/fleet', '--markdown'],
  ['doctor', 'deploy/runner', '-n', 'ci', '--from', 'examples/troubled', '--cluster', 'clusters/lab'],
  ['doctor', '--all', '-A', '--from', 'examples/troubled', '--cluster', 'clusters/lab'],
  ['doctor', 'deploy/api', '-n', 'shop', '--from', 'examples/credential-tests/manifests', '-o', 'json'],
  ['explain', 'quay.io/acme/app:1', '-n', 'payments', '--from', 'examples/fleet/hosted/clusters/prod'],
  ['explain', 'broken.example.com/app:1', '--from', 'examples/fleet/hosted/clusters/prod', '-o', 'json'],
  ['mirrors', 'registry.example.com/team/app:1', '--from', 'examples/fleet', '--cluster', 'management'],
  ['validate', 'examples/troubled'],
  ['validate', 'examples/fleet/fleet.yaml', 'examples/credential-provider', '--output', 'json'],
  ['reconcile', '--from', 'examples/fleet/hosted', '--management', 'examples/fleet/management', '--dry-run'],
  [
    'reconcile',
    '--from',
    'examples/troubled/hosted',
    '--management',
    'examples/troubled/management',
    '-o',
    'json',
  ],
  ['doctor', 'deploy/gone', '--from', 'examples/troubled', '--cluster', 'clusters/lab'],
  ['explain', 'Bad Image', '--from', 'examples/troubled'],
  ['validate', 'examples/no-such-folder'],
];

// The program reads what the page offers: rendered manifests may lie beside the examples.
for (const { path, text } of examples().flatMap((one) => one.files)) {
  mkdirSync(join(folder, dirname(path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}
const said = new Map<string, ReturnType<typeof runProcess>>();

/** Output of the program, shared by all browsers. */
function programSays(args: readonly string[]): ReturnType<typeof runProcess> {
  const key = args.join(' ');
  const known = said.get(key) ?? runMain(args, { cwd: folder });
  said.set(key, known);
  return known;
}

const PASSWORD = plantedPassword('playground');
const AUTH = plantedAuth('playground', 'robot');
const HOSTILE_NAME = '<img src=x onerror=alert(1)>';

const HOSTILE = `apiVersion: v1
kind: Secret
metadata: { name: pull, namespace: shop }
type: kubernetes.io/dockerconfigjson
data:
  .dockerconfigjson: ${Buffer.from(
    JSON.stringify({
      auths: {
        'quay.io/shop': { auth: AUTH },
        '<b>bold</b>': { auth: '!' },
        'r.io': { username: 'u', password: PASSWORD },
      },
    }),
  ).toString('base64')}
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: "${HOSTILE_NAME}", namespace: shop }
spec:
  template:
    spec:
      imagePullSecrets: [{ name: pull }]
      containers: [{ name: a, image: "quay.io/shop/web:1" }, { name: b, image: "<script>alert(1)</script>" }]
`;

/** Gives files to the field behind a button, as a person does who chooses them. */
async function choose(
  page: Page,
  files: readonly { readonly name: string; readonly bytes: Buffer }[],
): Promise<void> {
  const chosen = mkdtempSync(join(folder, 'chosen-'));
  for (const { name, bytes } of files) writeFileSync(join(chosen, name), bytes);
  await page.locator('input[data-folder="false"]').setInputFiles(files.map(({ name }) => join(chosen, name)));
}

inBrowsers(test, (browser, title) => {
  test(title('answers as the command line does, to the letter'), async () => {
    const { page } = await open(browser);
    const files = examples().flatMap((one) => one.files);
    const timeless = (text: string): string =>
      text.replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)/g, 'TIME');
    for (const args of QUESTIONS) {
      const answer = await asked(page, args, files);
      const ran = await programSays(args);
      assert.equal(
        timeless(answer.stdout),
        timeless(ran.stdout.replaceAll('node main.ts', 'pullwright')),
        args.join(' '),
      );
      assert.equal(answer.stderr, ran.stderr, args.join(' '));
      assert.equal(answer.code, ran.code, args.join(' '));
    }
  });

  test(title('an example: every question, by the keyboard, without asking anybody'), async () => {
    const { page, heard } = await open(browser);
    await page.getByRole('button', { name: 'A fleet in trouble' }).press('Enter');
    await page
      .frameLocator('iframe')
      .getByRole('heading', { level: 1, name: /13 problems in 4 of 4 clusters/ })
      .waitFor();
    await page.getByRole('tab', { name: 'Report' }).press('ArrowRight');
    await page.locator('.out', { hasText: 'secrets-exist' }).waitFor();
    for (const [tab, wanted] of [
      ['All that fail', 'fails to pull yet, 1 cause found'],
      ['Explain', 'CRI-O'],
      ['Mirrors', 'source'],
      ['Validate', 'checked'],
      ['Reconcile', 'CHANGES'],
    ] as const) {
      await page.keyboard.press('ArrowRight');
      assert.equal(await page.getByRole('tab', { name: tab }).getAttribute('aria-selected'), 'true');
      await page.locator('.out', { hasText: wanted }).waitFor();
    }
    await page.getByRole('tab', { name: 'Doctor' }).click();
    await page.getByLabel('Cluster').selectOption('clusters/shop-eu');
    await page.locator('.line', { hasText: '--cluster clusters/shop-eu' }).waitFor();
    await page.getByRole('button', { name: 'Other files' }).click();
    await page.getByText('Drop files or a folder here').waitFor();
    assert.deepEqual(heard, []);
    assert.equal(page.url(), address);
  });

  test(title('its policy lets no script of it send anything'), async () => {
    const { page } = await open(browser);
    const refused = await page.evaluate(async (url) => {
      const violations: string[] = [];
      document.addEventListener('securitypolicyviolation', (event) =>
        violations.push(event.effectiveDirective),
      );
      const failed = await fetch(url).then(
        () => false,
        () => true,
      );
      navigator.sendBeacon(url, 'x');
      try {
        const socket = new WebSocket(url.replace('http', 'ws'));
        socket.close();
      } catch {
        // One browser throws, the other reports.
      }
      const image = new Image();
      await new Promise((resolve) => {
        image.addEventListener('error', resolve);
        image.src = `${url}?x`;
      });
      return { failed, violations: [...new Set(violations)].sort() };
    }, served.url);
    assert.equal(refused.failed, true);
    assert.ok(
      refused.violations.includes('connect-src') && refused.violations.includes('img-src'),
      String(refused.violations),
    );
  });

  test(title('names are text, and no value is anywhere'), async () => {
    const { page, heard } = await open(browser);
    await choose(page, [{ name: 'dump.yaml', bytes: Buffer.from(HOSTILE) }]);
    await page.frameLocator('iframe').getByRole('heading', { level: 1 }).waitFor();
    const everything = [await held(page)];
    for (const tab of ['Doctor', 'Explain', 'Mirrors', 'Validate', 'Reconcile']) {
      await page.getByRole('tab', { name: tab }).click();
      await page.locator('.line', { hasText: `pullwright ${tab.toLowerCase()}` }).waitFor();
      everything.push(await held(page));
    }
    assert.equal(await page.locator('#view img, #view b, #view script').count(), 0);
    assert.equal(findPlanted(everything.join('\n')), undefined);
    assert.deepEqual(heard, []);
  });

  test(title('what cannot be used is named, with the reason, and the rest is used'), async () => {
    const { page } = await open(browser);
    await choose(page, [
      { name: 'photo.png', bytes: Buffer.from([0x89, 0x50, 0x4e, 0x47]) },
      { name: 'binary.yaml', bytes: Buffer.from([0xff, 0xfe, 0, 1]) },
      { name: `${'x'.repeat(200)}.txt`, bytes: Buffer.from('a') },
    ]);
    const alert = page.getByRole('alert');
    await alert.waitFor();
    assert.match(await alert.innerText(), /binary\.yaml is left out: it is not text in UTF-8/);
    assert.match(
      await alert.innerText(),
      /photo\.png is left out: expected a file that ends in \.yaml, \.yml or \.json/,
    );
    assert.match(await alert.innerText(), /x{50} … x+\.txt is left out/);
    await choose(page, [
      { name: 'huge.yaml', bytes: Buffer.alloc(50 * 1024 * 1024 + 1, 0x61) },
      { name: 'broken.yaml', bytes: Buffer.from('a: [1\nb: }') },
      { name: 'good.yaml', bytes: Buffer.from(HOSTILE) },
    ]);
    await page
      .getByRole('status')
      .filter({ hasText: 'huge.yaml is left out: it has 51 MiB, expected at most 50' })
      .waitFor();
    await page.locator('.notes', { hasText: 'dropped/broken.yaml:' }).waitFor();
    await page.frameLocator('iframe').getByRole('heading', { level: 1 }).waitFor();
  });

  test(title('files that are dropped are taken, wherever on the page'), async () => {
    const { page } = await open(browser);
    await page.evaluate(
      (text) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([text], 'dump.yaml'));
        document.body.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
      },
      readFileSync(join(root, 'examples/troubled/hosted/clusters/lab/workloads.yaml'), 'utf8'),
    );
    await page.frameLocator('iframe').getByRole('heading', { level: 1 }).waitFor();
  });

  for (const theme of ['light', 'dark'] as const)
    test(title(`${theme}: breaks no rule of accessibility, and fits a phone`), async () => {
      const { page } = await open(browser, { theme, width: 390 });
      assert.deepEqual(await accessibilityProblems(page), []);
      await page.getByRole('button', { name: 'A fleet in trouble' }).click();
      await page.frameLocator('iframe').getByRole('heading', { level: 1 }).waitFor();
      await page.getByRole('tab', { name: 'Doctor' }).click();
      await page.locator('.out').waitFor();
      assert.deepEqual(await accessibilityProblems(page), []);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wider <= 0, `${wider} pixels wider than the screen`);
    });
});

test.lastly('the server is closed', () => served.close());
