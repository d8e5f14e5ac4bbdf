/** Inputs of the documentation site: packages, pages, links and versions. test/browser opens the built site. */
import assert from 'node:assert/strict';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deadLinks } from '../../site/links.ts';
import { stage } from '../../site/stage.ts';
import { versionsIn, writeVersions } from '../../site/versions.ts';
import { ALLOWED } from '../architecture/licences.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = new URL('../..', import.meta.url).pathname;
const work = tempFolder();

interface Locked {
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly hasInstallScript?: boolean;
}

test('its packages are exact, have checksums and licences that may be used, and name no registry', () => {
  const read = (file: string): unknown => JSON.parse(readFileSync(join(root, 'site', file), 'utf8'));
  const manifest = read('package.json') as Readonly<Record<string, Readonly<Record<string, string>>>>;
  for (const [name, version] of Object.entries({ ...manifest['devDependencies'], ...manifest['overrides'] }))
    assert.match(version, /^\d+\.\d+\.\d+$/, name);
  const { packages } = read('package-lock.json') as { readonly packages: Readonly<Record<string, Locked>> };
  for (const [path, locked] of Object.entries(packages).filter(([name]) => name !== '')) {
    assert.ok(locked.integrity !== undefined && locked.resolved === undefined, path);
    assert.ok(Object.hasOwn(ALLOWED, locked.license ?? ''), `${path}: ${locked.license}`);
  }
  assert.match(readFileSync(join(root, 'site/.npmrc'), 'utf8'), /^ignore-scripts=true$/m);
});

test('every page of docs is a page of the site, and folders that pages lead to are listed', () => {
  const pages = join(work, 'pages');
  stage(root, pages);
  const made = new Set(globSync('**/*.md', { cwd: pages }));
  for (const page of globSync('**/*.md', { cwd: join(root, 'docs') }))
    assert.ok(made.has(page.replace(/(^|\/)README\.md$/, '$1index.md')), page);
  const decisions = readFileSync(join(pages, 'decisions/index.md'), 'utf8');
  assert.match(decisions, /^- \[001: Node 24 comes from packages of the lock file\]\(\.\/001-[\w-]+\.md\)$/m);
  assert.match(
    readFileSync(join(pages, 'troubleshooting.md'), 'utf8'),
    /files\/examples\/credential-tests\/index\.md/,
  );
  assert.match(
    readFileSync(join(pages, 'files/examples/credential-tests/index.md'), 'utf8'),
    /^kind: Secret$/m,
  );
});

test('a link to a page, a part or a picture that is not there is found, and one that is there is not', () => {
  const folder = join(work, 'built');
  mkdirSync(join(folder, 'runbooks'), { recursive: true });
  writeFileSync(
    join(folder, 'index.html'),
    '<a href="/1.0.0/gone.html">a</a><a href="runbooks/#here">b</a><a href="runbooks/#lost">c</a><img src="no.png"><a href="https://example.com/x">d</a><script src="/versions.js">',
  );
  writeFileSync(
    join(folder, 'runbooks/index.html'),
    '<h1 id="here">x</h1><a href="../index.html">a</a><a href="#here">b</a>',
  );
  assert.deepEqual(deadLinks(folder, '/1.0.0/'), [
    'index.html: /1.0.0/gone.html',
    'index.html: runbooks/#lost',
    'index.html: no.png',
  ]);
});

test('versions stand newest first, and the page above them leads to the newest', () => {
  assert.deepEqual(versionsIn(['0.9.0', '0.10.0', '1.0.0-rc.2', '1.0.0-rc.10', '1.0.0', 'assets', 'x.js']), [
    '1.0.0',
    '1.0.0-rc.10',
    '1.0.0-rc.2',
    '0.10.0',
    '0.9.0',
  ]);
  const site = join(work, 'published');
  for (const version of ['0.1.0', '0.2.0']) {
    mkdirSync(join(site, version), { recursive: true });
    writeFileSync(join(site, version, 'index.html'), version);
  }
  writeVersions(site, '/docs/');
  assert.match(readFileSync(join(site, 'index.html'), 'utf8'), /url=\.\/0\.2\.0\//);
  const said = readFileSync(join(site, 'versions.js'), 'utf8');
  assert.match(said, /"version":"0\.2\.0","path":"\/docs\/0\.2\.0\/","pages":\["index\.html"\]/);
});
