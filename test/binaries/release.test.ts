// deadline: 600 s
/** A release: what stands in its way, what is in the folder, and that two runs give the same bytes. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildRelease } from '../../build/release.ts';
import { type ReleaseInput, releaseProblems } from '../../build/release-problems.ts';
import { VERSION } from '../../runtime/rules/version.ts';
import { executable } from '../support/executable.ts';
import { runProcess } from '../support/process.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('release');
const work = mkdtempSync(join(tmpdir(), 'pullwright-release-test-'));

interface Row extends Case {
  readonly change: Partial<ReleaseInput>;
  readonly problems: readonly RegExp[];
}

const GOOD: ReleaseInput = {
  status: '',
  changelog: '# Changelog\n\n## 1.2.0 (2026-05-01)\n\nMore.\n\n## 1.1.0 (2026-01-01)\n\nLess.\n',
  version: '1.2.0',
  packageVersion: '1.2.0',
};

const rows: readonly Row[] = [
  { name: 'nothing', reason: 'all is there', change: {}, problems: [] },
  {
    name: 'changed files',
    reason: 'nobody could build it again from the commit',
    change: { status: ' M main.ts\n?? new.ts\n' },
    problems: [/changes in 2 files/],
  },
  {
    name: 'two versions',
    reason: 'the program would say another version than the package',
    change: { packageVersion: '1.3.0' },
    problems: [/says 1\.2\.0, package\.json 1\.3\.0/],
  },
  {
    name: 'no section',
    reason: 'users could not know what changed',
    change: { version: '2.0.0', packageVersion: '2.0.0' },
    problems: [/no section "## 2\.0\.0/],
  },
  {
    name: 'a section without a date',
    reason: 'it is not released yet',
    change: { changelog: '## 1.2.0 (unreleased)\n\nMore.\n' },
    problems: [/wanted a date/],
  },
  {
    name: 'an empty section',
    reason: 'as none',
    change: { changelog: '## 1.2.0 (2026-05-01)\n\n## 1.1.0 (2026-01-01)\n\nLess.\n' },
    problems: [/is empty/],
  },
  {
    name: 'a longer version',
    reason: '1.2.0 is not 1.2.0-rc.1',
    change: { changelog: '## 1.2.0-rc.1 (2026-05-01)\n\nMore.\n' },
    problems: [/no section/],
  },
];

table(test, rows, ({ change, problems }) => {
  const found = releaseProblems({ ...GOOD, ...change });
  assert.equal(found.length, problems.length, found.join('; '));
  for (const [index, pattern] of problems.entries()) assert.match(found[index] ?? '', pattern);
});

const missing: string[] = [];
for (const tool of ['dpkg-deb', 'apt-get', 'npm'])
  if ((await runProcess(['sh', '-c', `command -v ${tool}`])).code !== 0) missing.push(tool);

if (missing.length > 0 || process.getuid?.() !== 0)
  test.skip('is built', missing.length > 0 ? `this machine has no ${missing.join(', ')}` : 'needs root');
else {
  test('is whole, its sums hold, and a second run gives the same bytes', async () => {
    const executables = { x64: await executable('x64'), arm64: await executable('arm64') };
    const one = join(work, 'one');
    const files = await buildRelease({ to: one, executables });
    const name = (what: string): string => `pullwright-${VERSION}-${what}`;
    assert.deepEqual(
      files,
      [
        'SHA256SUMS',
        name('image.oci.tar'),
        name('library.tgz'),
        `pullwright-charts-${VERSION}.tgz`,
        name('linux-arm64'),
        name('linux-x64'),
        name('manifests.tar.gz'),
        name('sbom.spdx.json'),
        'pullwright.1',
      ].sort(),
    );
    const sums = readFileSync(join(one, 'SHA256SUMS'), 'utf8');
    for (const line of sums.trimEnd().split('\n')) {
      const [digest = '', file = ''] = line.split('  ');
      const bytes = readFileSync(join(one, file));
      assert.equal(createHash('sha256').update(bytes).digest('hex'), digest, file);
    }
    assert.equal(statSync(join(one, name('linux-x64'))).mode & 0o111, 0o111);
    const two = join(work, 'two');
    await buildRelease({ to: two, executables });
    assert.equal(readFileSync(join(two, 'SHA256SUMS'), 'utf8'), sums);
  });

  test('the manifests are those of the tree', async () => {
    const archive = join(work, 'one', `pullwright-${VERSION}-manifests.tar.gz`);
    const listed = await runProcess(['tar', '-tzf', archive]);
    assert.match(listed.stdout, /^\.\/kustomization\.yaml$/m);
    assert.match(listed.stdout, /^\.\/crds\/pullstatuses\.pullwright\.dev\.yaml$/m);
  });
}

test.lastly('the work folder is removed', () => rmSync(work, { recursive: true, force: true }));
test.run();
