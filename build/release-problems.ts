/** Problems that block a release. Pure. */

export interface ReleaseInput {
  /** What `git status --porcelain` prints. */
  readonly status: string;
  readonly changelog: string;
  /** Of the program, and of package.json. */
  readonly version: string;
  readonly packageVersion: string;
}

/**
 * One sentence for each thing to fix; none when the tree can be released.
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
export function releaseProblems({
  status,
  changelog,
  version,
  packageVersion,
}: ReleaseInput): readonly string[] {
  const changed = status.split('\n').filter((line) => line.trim() !== '');
  return [
    ...(changed.length === 0
      ? []
      : [
          `The tree has changes in ${changed.length} ${changed.length === 1 ? 'file' : 'files'}: commit or remove them`,
        ]),
    ...(version === packageVersion
      ? []
      : [`runtime/core/version.ts says ${version}, package.json ${packageVersion}`]),
    ...changelogProblem(changelog, version),
  ];
}

/**
 * The version that was released before this one, by the sections of the changelog; undefined for the first.
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

function changelogProblem(changelog: string, version: string): readonly string[] {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.startsWith(`${version} `) || text.startsWith(`${version}\n`));
  if (section === undefined) return [`CHANGELOG.md has no section "## ${version} (<date>)"`];
  const [head = '', ...body] = section.split('\n');
  return [
    ...(/^\S+ \(\d{4}-\d{2}-\d{2}\)$/.test(head.trim())
      ? []
      : [
          `The section of CHANGELOG.md is "## ${head.trim()}": expected a date, such as "## ${version} (2026-01-31)"`,
        ]),
    ...(body.join('').trim() === '' ? [`The section of CHANGELOG.md for ${version} is empty`] : []),
  ];
}
