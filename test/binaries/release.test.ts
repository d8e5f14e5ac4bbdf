// deadline: 600 s
/** A release: conditions that block it, files in its folder, and equal bytes of two runs. */
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { buildRelease } from '../../build/release.ts';
import { type ReleaseInput, releaseProblems, versionBefore } from '../../build/release-problems.ts';
import { VERSION } from '../../runtime/core/version.ts';
import { executable } from '../support/executable.ts';
import { runProcess } from '../support/process.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const work = tempFolder();

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
    problems: [/expected a date/],
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

const versions: readonly (Case & { readonly changelog: string; readonly before: string | undefined })[] = [
  { name: 'none before', reason: 'the first', changelog: '## 1.2.0 (2026-05-01)\n', before: undefined },
  { name: 'one before', reason: 'as written', changelog: GOOD.changelog, before: '1.1.0' },
  {
    name: 'one before that was never released',
    reason: 'no catalog has it',
    changelog: '## 1.2.0 (2026-05-01)\n\n## 1.1.0 (unreleased)\n\n## 1.0.0 (2025-01-01)\n',
    before: '1.0.0',
  },
  { name: 'an empty changelog', reason: 'a trial', changelog: '', before: undefined },
];

table(test, versions, ({ changelog, before }) => assert.equal(versionBefore(changelog, '1.2.0'), before));

interface ServiceVersion {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
  readonly spec: {
    readonly version: string;
    readonly relatedImages: readonly { readonly image: string }[];
    readonly install: { readonly spec: { readonly deployments: readonly unknown[] } };
  };
}

const missing: string[] = [];
for (const tool of ['dpkg-deb', 'apt-get', 'npm'])
  if ((await runProcess(['sh', '-c', `command -v ${tool}`])).code !== 0) missing.push(tool);

if (missing.length > 0 || process.getuid?.() !== 0)
  test.skip('is built', missing.length > 0 ? `this machine has no ${missing.join(', ')}` : 'needs root');
else {
  test('is whole, its sums hold, and a second run gives the same bytes', async () => {
    const executables = { x64: await executable('x64'), arm64: await executable('arm64') };
    const one = join(work, 'one');
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const signing = {
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      image: 'registry.example.com/pullwright/pullwright',
    };
    const files = await buildRelease({ to: one, executables, signing });
    const name = (what: string): string => `pullwright-${VERSION}-${what}`;
    assert.deepEqual(
      files,
      [
        'SHA256SUMS',
        'SHA256SUMS.sig',
        name('bundle.tar.gz'),
        name('chart.tgz'),
        name('image-signatures.oci.tar'),
        name('image.oci.tar'),
        `pullwright-${VERSION}.tgz`,
        `pullwright-charts-${VERSION}.tgz`,
        name('linux-arm64'),
        name('linux-x64'),
        name('manifests.tar.gz'),
        name('provenance.intoto.jsonl'),
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
    const pem = join(work, 'release.pub');
    writeFileSync(pem, publicKey.export({ type: 'spki', format: 'pem' }));
    const signature = join(work, 'sums.sig');
    writeFileSync(signature, Buffer.from(readFileSync(join(one, 'SHA256SUMS.sig'), 'utf8'), 'base64'));
    const command = ['openssl', 'dgst', '-sha256', '-verify', pem, '-signature', signature];
    const verified = await runProcess([...command, join(one, 'SHA256SUMS')]);
    assert.equal(verified.stdout, 'Verified OK\n', verified.stderr);
    // Every file that has a sum, and every image, is a subject of the provenance.
    const { payload } = JSON.parse(readFileSync(join(one, name('provenance.intoto.jsonl')), 'utf8')) as {
      payload: string;
    };
    const { subject } = JSON.parse(Buffer.from(payload, 'base64').toString()) as {
      subject: { name: string; digest: { sha256: string } }[];
    };
    const listed = new Set(subject.map((each) => `${each.digest.sha256}  ${each.name}`));
    for (const line of sums.trimEnd().split('\n')) assert.ok(listed.has(line), line);
    assert.equal(subject.filter((each) => each.name === signing.image).length, 3);
    assert.equal(statSync(join(one, name('linux-x64'))).mode & 0o111, 0o111);
    const two = join(work, 'two');
    await buildRelease({ to: two, executables });
    assert.equal(readFileSync(join(two, 'SHA256SUMS'), 'utf8'), sums);
  });

  test('the bundle names the image of the release by its digest', async () => {
    const folder = join(work, 'bundle');
    mkdirSync(folder);
    const archive = join(work, 'one', `pullwright-${VERSION}-bundle.tar.gz`);
    const unpacked = await runProcess(['tar', '-xzf', archive, '-C', folder]);
    assert.equal(unpacked.code, 0, unpacked.stderr);
    const file = join(folder, 'manifests/pullwright.clusterserviceversion.yaml');
    const { spec, metadata } = parse(readFileSync(file, 'utf8')) as ServiceVersion;
    const listed = await runProcess([
      'tar',
      '-xOf',
      join(work, 'one', `pullwright-${VERSION}-image.oci.tar`),
      './index.json',
    ]);
    const { manifests } = JSON.parse(listed.stdout) as { manifests: readonly { digest: string }[] };
    const image = `registry.example.com/pullwright/pullwright@${manifests[0]?.digest}`;
    assert.deepEqual(spec.relatedImages, [{ name: 'pullwright', image }]);
    assert.equal(metadata.annotations['containerImage'], image);
    assert.ok(JSON.stringify(spec.install.spec.deployments).includes(`"${image}"`));
    assert.equal(spec.version, VERSION);
    const definitions = readdirSync(join(folder, 'manifests')).filter((name) => name.endsWith('.crd.yaml'));
    assert.equal(definitions.length, 3, definitions.join());
  });

  test('is not made without a key, nor without the name of the image that is signed', async () => {
    const script = new URL('../../build/release.ts', import.meta.url).pathname;
    for (const flags of [[], ['--snapshot', '--key', 'x']]) {
      const ran = await runProcess([process.execPath, script, '--to', join(work, 'unsigned'), ...flags]);
      assert.equal(ran.code, 1);
      assert.match(ran.stderr, /Cannot release/);
    }
  });

  test('the manifests are those of the tree', async () => {
    const archive = join(work, 'one', `pullwright-${VERSION}-manifests.tar.gz`);
    const listed = await runProcess(['tar', '-tzf', archive]);
    assert.match(listed.stdout, /^\.\/kustomization\.yaml$/m);
    assert.match(listed.stdout, /^\.\/crds\/pullstatuses\.pullwright\.dev\.yaml$/m);
  });

  test('the chart lies in a folder of its name, as Helm wants it', async () => {
    const listed = await runProcess(['tar', '-tzf', join(work, 'one', `pullwright-${VERSION}-chart.tgz`)]);
    assert.match(listed.stdout, /^pullwright\/Chart\.yaml$/m);
    assert.match(listed.stdout, /^pullwright\/crds\/pullstatuses\.pullwright\.dev\.yaml$/m);
  });
}
