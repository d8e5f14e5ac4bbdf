// deadline: 300 s
/** The page of the reconciler in real browsers: signing in, what a tenant sees, and where the token is not. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { gatherFolders } from '../../runtime/commands/report/gather.ts';
import { toYaml } from '../../runtime/kube/yaml.ts';
import { Gate } from '../../runtime/reports/gate.ts';
import { LatestReport } from '../../runtime/reports/latest.ts';
import { serveReport } from '../../runtime/reports/server.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { reportHtml } from '../../runtime/rules/report/html.ts';
import { makeReport } from '../../runtime/rules/report/report.ts';
import { REPORT_AUDIENCE } from '../../runtime/rules/report-page/reviews.ts';
import { tenantView } from '../../runtime/rules/report-page/tenant-view.ts';
import { createLogger } from '../../runtime/telemetry/logger.ts';
import { createMetrics } from '../../runtime/telemetry/metrics.ts';
import { makeCertificates } from '../support/certificates.ts';
import { suite } from '../support/suite.ts';
import { accessibilityProblems } from './axe.ts';
import { inBrowsers, type PageOptions, type TestBrowser } from './browsers.ts';

const test = suite('the page of the reconciler in a browser');
const root = new URL('../..', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'pullwright-page-browser-'));
const TOKEN = 'tenant-token';

/** The API server of the test: one user, who may see one namespace. */
const client = {
  create: async (review: KubeObject): Promise<KubeObject> => {
    const spec = review['spec'] as {
      readonly resourceAttributes?: { readonly namespace?: string };
    };
    const known = JSON.stringify(review).includes('TokenReview');
    const status = known
      ? { authenticated: true, audiences: [REPORT_AUDIENCE], user: { username: 'ann' } }
      : { allowed: spec.resourceAttributes?.namespace === 'payments' };
    return { ...review, status };
  },
};

const { cert, key } = makeCertificates();
writeFileSync(join(folder, 'tls.crt'), cert);
writeFileSync(join(folder, 'tls.key'), key);
const log = createLogger({ write: () => undefined });
const now = (): number => performance.now();
const server = await serveReport({
  port: 0,
  host: '127.0.0.1',
  files: { certificate: join(folder, 'tls.crt'), key: join(folder, 'tls.key') },
  gate: new Gate({ client, log, now }),
  latest: new LatestReport({
    everyMs: 60_000,
    now,
    make: async () => {
      const found = await gatherFolders([join(root, 'examples/troubled')]);
      const clusters = found.clusters.filter(({ name }) => name === 'clusters/shop-eu');
      return makeReport({
        clusters,
        unread: [],
        now: new Date(),
        source: 'prod',
        toYaml: (one) => toYaml(one),
      });
    },
    render: (report, form, namespace) => {
      const shown = namespace === undefined ? report : tenantView(report, namespace);
      return form === 'html' ? reportHtml(shown) : JSON.stringify(shown);
    },
  }),
  log,
  metrics: createMetrics(),
});
test.lastly('the server stops', async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

async function opened(browser: TestBrowser, options?: PageOptions): Promise<Page> {
  const page = await browser.page({ ...options, anyCertificate: true });
  await page.goto(`https://127.0.0.1:${server.port}/`);
  return page;
}

async function signIn(page: Page, namespace: string): Promise<void> {
  await page.getByLabel('Namespace').fill(namespace);
  await page.getByLabel('Token').fill(TOKEN);
  await page.keyboard.press('Enter');
}

inBrowsers(test, (browser, title) => {
  for (const theme of ['light', 'dark'] as const)
    test(
      title(`signing in becomes the report of the namespace, ${theme}; the token is kept nowhere`),
      async () => {
        const page = await opened(browser, { theme });
        const asked: string[] = [];
        page.on('request', (request) => asked.push(new URL(request.url()).pathname));
        assert.deepEqual(await accessibilityProblems(page), []);
        await signIn(page, 'payments');
        await page.locator('#headline').waitFor();
        assert.match(await page.locator('#headline').innerText(), /in namespace payments$/);
        assert.deepEqual(asked, ['/namespaces/payments/report.html']);
        assert.deepEqual(await page.locator('main h2 span').allTextContents(), [
          'What is wrong, and what to do',
          'Pull paths',
          'Namespaces',
        ]);
        await page.locator('#part-pulls a[href*="pull="]').first().click();
        await page.locator('#pull').waitFor();
        assert.deepEqual(await accessibilityProblems(page), []);
        const kept = await page.evaluate(() =>
          [
            JSON.stringify(localStorage),
            JSON.stringify(sessionStorage),
            document.cookie,
            location.href,
            document.documentElement.outerHTML,
          ].join(' '),
        );
        assert.equal(kept.includes(TOKEN), false);
        await page.goto(`https://127.0.0.1:${server.port}/`);
        assert.equal(await page.getByLabel('Token').inputValue(), '');
      },
    );

  test(title('who may not is told why, and can try again'), async () => {
    const page = await opened(browser);
    await signIn(page, 'other');
    await page.getByText('may not see the report of namespace "other"').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await signIn(page, 'payments');
    await page.locator('#headline').waitFor();
  });
});

test.run();
