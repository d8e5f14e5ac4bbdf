// deadline: 600 s
/** The conformance cases, answered by the rules inside a page, as the playground bundles them: every answer is that of Node. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installPackages } from '../../site/build.ts';
import { answersOf } from '../conformance/answers.ts';
import { suiteModule, suiteOf } from '../conformance/find-suite.ts';
import { test } from '../support/suite.ts';
import { inBrowsers, type TestBrowser } from './browsers.ts';

const root = new URL('../..', import.meta.url).pathname;

/** Suites that start processes, open sockets or write files, which a page cannot do. */
const NOT_IN_A_PAGE: Readonly<Record<string, string>> = {
  'adapter/job-peer-recorded': 'asks a server',
  'adapter/secretmanager-rest-wire': 'asks a server',
  'crd/criocredentialproviderconfig-v1': 'asks an API server',
  'crd/criocredentialproviderconfig-v1alpha1': 'asks an API server',
  'crio/crio-consumer': 'runs the kubelet plugin over files',
  'crio/e2e': 'runs the kubelet plugin over files',
  'crio/recorded-behaviour': 'runs the kubelet plugin over files',
  'crio/unit-small-tables': 'runs the kubelet plugin over files',
  'globalps/agent-check-and-fix': 'writes files of a node',
  'globalps/agent-restart-kubelet': 'speaks D-Bus',
  'globalps/constants': 'speaks D-Bus',
  'kruise/map-live': 'asks an API server',
  'mco/e2e': 'runs the kubelet plugin over files',
};

const names = globSync('*/*.json', { cwd: join(root, 'test/conformance/cases') })
  .map((file) => file.slice(0, -'.json'.length))
  .sort();
const inPages = names.filter((name) => !Object.hasOwn(NOT_IN_A_PAGE, name));

installPackages();
const { bundleForPage } = await import('../../site/playground/bundle.ts');

test('most suites run in a page', () => {
  assert.ok(inPages.length > 45);
  for (const name of Object.keys(NOT_IN_A_PAGE)) assert.ok(names.includes(name), name);
});

/** All of them behind one function. */
const script = await bundleForPage({
  folder: join(root, 'test/conformance'),
  contents: [
    "import { answersOf } from './answers.ts';",
    ...inPages.map((name, index) => `import * as s${index} from './suites/${suiteModule(name)}';`),
    `const suites = { ${inPages.map((name, index) => `'${name}': s${index}.suite ?? s${index}.suites['${name.split('/')[1]}']`).join(', ')} };`,
    'globalThis.answersInPage = (name, document) => answersOf(suites[name], document);',
  ].join('\n'),
});

interface InPage {
  answersInPage(name: string, document: unknown): Promise<readonly string[]>;
}

type TestPage = Awaited<ReturnType<TestBrowser['page']>>;
const pages = new Map<string, Promise<TestPage>>();

/** One page for each browser. */
function pageWithRules(browser: TestBrowser): Promise<TestPage> {
  const known = pages.get(browser.name) ?? open(browser);
  pages.set(browser.name, known);
  return known;
}

async function open(browser: TestBrowser): Promise<TestPage> {
  const page = await browser.page();
  await page.evaluate(script);
  return page;
}

inBrowsers(test, (browser, title) => {
  for (const name of inPages)
    test(title(name), async () => {
      const document = JSON.parse(
        readFileSync(join(root, `test/conformance/cases/${name}.json`), 'utf8'),
      ) as unknown;
      const here = await suiteOf(name);
      assert.ok(here !== undefined, name);
      const page = await pageWithRules(browser);
      const there = await page.evaluate(
        ([asked, cases]) => (globalThis as unknown as InPage).answersInPage(asked as string, cases),
        [name, document],
      );
      const wanted = await answersOf(here, document);
      assert.ok(wanted.length > 0, name);
      assert.deepEqual(there, wanted);
    });
});
