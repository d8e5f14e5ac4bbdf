/** Problems that block a release. Pure. */
import { recordOf, textOf } from '../runtime/core/record.ts';
import { counted } from '../runtime/core/text.ts';

export interface ReleaseInput {
  /** What `git status --porcelain` prints. */
  readonly status: string;
  readonly changelog: string;
  /** In `runtime/core/version.ts`; `packageVersion` is in package.json. */
  readonly version: string;
  readonly packageVersion: string;
}

/**
 * Returns one sentence per problem to fix; none when the tree can be released.
 *
 * @example
 * ```ts
 * import { releaseProblems } from './release-problems.ts';
 * import assert from 'node:assert/strict';
 *
 * const good = { status: '', changelog: '## 1.2.0 (2026-05-01)\n\nMore.\n', version: '1.2.0', packageVersion: '1.2.0' };
 * assert.deepEqual(releaseProblems(good), []);
 * assert.match(releaseProblems({ ...good, status: ' M main.ts' })[0] ?? '', /1 file/);
 * ```
 */
export function releaseProblems(input: ReleaseInput): readonly string[] {
  const { status, changelog, version, packageVersion } = input;
  const changed = status.split('\n').filter((line) => line.trim() !== '');
  return [
    changed.length > 0 && `The tree has changes in ${counted(changed.length, 'file')}: commit or remove them`,
    version !== packageVersion && `runtime/core/version.ts says ${version}, package.json ${packageVersion}`,
    ...changelogProblems(changelog, version),
  ].filter((problem) => problem !== false);
}

/**
 * Returns the previous released version, from the sections of the changelog; undefined for the first release.
 *
 * @example
 * ```ts
 * import { versionBefore } from './release-problems.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(versionBefore('## 1.2.0 (2026-05-01)\n\n## 1.1.0 (2026-01-01)\n', '1.2.0'), '1.1.0');
 * assert.equal(versionBefore('## 1.2.0 (unreleased)\n', '1.2.0'), undefined);
 * ```
 */
export function versionBefore(changelog: string, version: string): string | undefined {
  const dated = [...changelog.matchAll(/^## (\d+\.\d+\.\d+\S*) \(\d{4}-\d{2}-\d{2}\)$/gm)];
  return dated.map(([, one]) => one).find((one) => one !== version);
}

function changelogProblems(changelog: string, version: string): readonly (string | false)[] {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.startsWith(`${version} `) || text.startsWith(`${version}\n`));
  if (section === undefined) return [`CHANGELOG.md has no section "## ${version} (<date>)"`];
  const [head = '', ...body] = section.split('\n');
  return [
    !/^\S+ \(\d{4}-\d{2}-\d{2}\)$/.test(head.trim()) &&
      `The section of CHANGELOG.md is "## ${head.trim()}": expected a date, such as "## ${version} (2026-01-31)"`,
    body.join('').trim() === '' && `The section of CHANGELOG.md for ${version} is empty`,
  ];
}

// Whether npm installs exactly the reviewed packages.

const INTEGRITY = /^sha512-[\w+/]{86}==$/;

/**
 * Returns one sentence per package of a lock file that is not pinned: it or its archive has no sha512 checksum, it has its own
 * address, or it is a link to a folder. None when all are pinned.
 *
 * @param lock a parsed `package-lock.json`
 *
 * @example
 * ```ts
 * import { lockProblems } from './release-problems.ts';
 * import assert from 'node:assert/strict';
 *
 * const integrity = `sha512-${'a'.repeat(86)}==`;
 * const locked = { version: '1.0.0', integrity };
 * assert.deepEqual(lockProblems({ lockfileVersion: 3, packages: { 'node_modules/a': locked } }), []);
 * assert.match(lockProblems({ lockfileVersion: 3, packages: { 'node_modules/a': {} } })[0] ?? '', /node_modules\/a has no/);
 * ```
 */
export function lockProblems(lock: unknown): readonly string[] {
  const { lockfileVersion, packages } = recordOf(lock);
  const entries = recordOf(packages);
  const names = Object.keys(entries).filter((path) => path !== '');
  if (lockfileVersion !== 3 || names.length === 0)
    return ['package-lock.json holds no packages of lockfileVersion 3: make it again with npm install'];
  return names.flatMap((path) => problemOf(path, entries));
}

function problemOf(path: string, entries: Readonly<Record<string, unknown>>): readonly string[] {
  const { integrity, inBundle, link, resolved } = recordOf(entries[path]);
  const at = `package-lock.json: ${path}`;
  if (link === true) return [`${at} is a link to a folder: expected a package of the registry`];
  if (resolved !== undefined)
    return [`${at} has an address of its own: expected the registry, without address`];
  if (inBundle === true) {
    const above = path.lastIndexOf('/node_modules/');
    const archive = above > 0 ? recordOf(entries[path.slice(0, above)]) : {};
    if (archive['inBundle'] === true || INTEGRITY.test(textOf(archive['integrity']))) return [];
    return [`${at} is said to come in the archive of another package, which has no checksum`];
  }
  if (INTEGRITY.test(textOf(integrity))) return [];
  return [
    integrity === undefined
      ? `${at} has no checksum: expected integrity "sha512-..."`
      : `${at} has another checksum than sha512`,
  ];
}
