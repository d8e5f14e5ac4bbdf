/** Third-party packages: exact versions with checksums, allowed licences, no scripts, and no undeclared ones. */
import assert from 'node:assert/strict';
import { existsSync, globSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { importsOf } from '../support/reach.ts';
import { test } from '../support/suite.ts';
import { ALLOWED, ALLOWED_FOR_DEVELOPMENT, INSTALL_SCRIPTS, SAID_ELSEWHERE } from './licences.ts';

const root = new URL('../..', import.meta.url).pathname;

interface LockedPackage {
  readonly version?: string;
  readonly license?: string | readonly string[];
  readonly hasInstallScript?: boolean;
  readonly link?: boolean;
  /** Only tests and builds lead to it. */
  readonly dev?: boolean;
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly overrides: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as Manifest;
const lock = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')) as {
  readonly packages: Readonly<Record<string, LockedPackage>>;
};
const locked = Object.entries(lock.packages).filter(([path]) => path !== '');
const nameOf = (path: string): string => path.slice(path.lastIndexOf('node_modules/') + 13);

/** Whether one alternative of an SPDX expression is allowed. */
function isAllowed(expression: string, use: 'shipped' | 'development' = 'shipped'): boolean {
  const isListed = (licence: string): boolean =>
    Object.hasOwn(ALLOWED, licence) ||
    (use === 'development' && Object.hasOwn(ALLOWED_FOR_DEVELOPMENT, licence));
  return expression
    .replace(/^\((.*)\)$/, '$1')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every(isListed));
}

test('every version is exact', () => {
  const all = Object.entries({
    ...manifest.dependencies,
    ...manifest.devDependencies,
    ...manifest.optionalDependencies,
    ...manifest.overrides,
  });
  assert.deepEqual(
    all.filter(([, version]) => !/^(npm:[@\w/-]+@)?\d+\.\d+\.\d+$/.test(version)),
    [],
  );
  for (const [path, { version, link }] of locked) {
    assert.match(version ?? '', /^\d+\.\d+\.\d+/, path);
    assert.equal(link, undefined, path);
  }
});

test('every package has a licence that may be shipped', () => {
  const wrong = locked.flatMap(([path, { license, dev }]) => {
    const said = SAID_ELSEWHERE[nameOf(path)]?.licence ?? license ?? installedLicence(path);
    // A tool for another platform has the licence of the tool; the lock file knows no more of it.
    if (said === undefined && !existsSync(join(root, path))) return [];
    const use = dev === true ? 'development' : 'shipped';
    return typeof said === 'string' && isAllowed(said, use) ? [] : [`${path}: ${String(said)}`];
  });
  assert.deepEqual(wrong, []);
});

test('a copyleft licence, and one that nobody knows, would be noticed', () => {
  assert.equal(isAllowed('GPL-3.0-or-later'), false);
  assert.equal(isAllowed('MIT AND GPL-2.0'), false);
  assert.equal(isAllowed('SEE LICENSE IN LICENSE'), false);
  assert.equal(isAllowed('(MIT OR GPL-3.0-or-later)'), true);
  assert.equal(isAllowed('MPL-2.0'), false);
  assert.equal(isAllowed('MPL-2.0', 'development'), true);
  assert.equal(isAllowed('GPL-3.0-or-later', 'development'), false);
});

test('install scripts are off, and every package that has one is known', () => {
  assert.match(readFileSync(`${root}.npmrc`, 'utf8'), /^ignore-scripts=true$/m);
  const names = locked
    .filter(([, { hasInstallScript }]) => hasInstallScript === true)
    .map(([path]) => nameOf(path));
  assert.deepEqual([...new Set(names)].sort(), Object.keys(INSTALL_SCRIPTS).sort());
});

test('only declared packages are imported, and by the program none that only tests have', () => {
  const runtime = Object.keys(manifest.dependencies);
  // A test packs this very package and imports it by its name.
  const everywhere = [...runtime, ...Object.keys(manifest.devDependencies), 'pullwright'];
  const wrong = [
    ...packagesOf(['main.ts', 'charts/**/*.ts', 'runtime/**/*.ts']).filter(
      ({ name }) => !runtime.includes(name),
    ),
    ...packagesOf(['test/**/*.ts', 'bench/**/*.ts']).filter(({ name }) => !everywhere.includes(name)),
  ];
  assert.deepEqual(wrong, []);
});

test('no dependency is declared that nothing imports', () => {
  // An example imports the packages that are meant for the user's own charts.
  const imported = new Set(
    packagesOf(['main.ts', 'charts/**/*.ts', 'runtime/**/*.ts', 'examples/**/main.ts']).map(
      ({ name }) => name,
    ),
  );
  assert.deepEqual(
    Object.keys(manifest.dependencies).filter((name) => !imported.has(name)),
    [],
  );
});

test('what npm ci brings stays within what the README says', () => {
  const said = Number(/`npm ci` brings at most (\d+) MB/.exec(readFileSync(`${root}README.md`, 'utf8'))?.[1]);
  const folder = `${root}node_modules`;
  const bytes = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + lstatSync(join(entry.parentPath, entry.name)).size, 0);
  const found = Math.ceil(bytes / 1e6);
  process.stdout.write(`node_modules: ${found} MB\n`);
  assert.ok(found > 100 && found <= said, `node_modules has ${found} MB, the README says at most ${said}`);
});

function installedLicence(path: string): string | undefined {
  const file = join(root, path, 'package.json');
  if (!existsSync(file)) return undefined;
  return (JSON.parse(readFileSync(file, 'utf8')) as { license?: string }).license;
}

function packagesOf(
  patterns: readonly string[],
): readonly { readonly file: string; readonly name: string }[] {
  const files = globSync([...patterns], { cwd: root }).filter((file) => !file.includes('node_modules'));
  return files.flatMap((file) =>
    importsOf(file)
      .map(({ target }) => target)
      .filter((target) => !/\.tsx?$|^node:/.test(target) && !builtinModules.includes(target))
      .map((target) => ({ file, name: /^(?:@[^/]+\/)?[^/]+/.exec(target)?.[0] ?? '' })),
  );
}
