// deadline: 240 s
/** `release` of a hosted cluster against real registries: each component with the cluster's own secret, gaps, differences. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { suite } from '../support/suite.ts';
import { missingTool, ociLayout, push, scratch, startRegistry } from './docker-registry.ts';
import { cli, clusterFolder, releaseLayout, SOURCE } from './release-scene.ts';

const test = suite('release of a cluster');
const folder = scratch();

const missing = missingTool();
if (missing !== undefined) test.skip('release --check', `${missing} is not installed`);
else {
  const full = await startRegistry(folder, 'full');
  const bare = await startRegistry(folder, 'bare');
  test.lastly('the registries are stopped', () => {
    full.stop();
    bare.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const cli1 = ociLayout(join(folder, 'cli'), { cli: '1' });
  const components = {
    cli: `${SOURCE}/art@${cli1.digest}`,
    installer: `${SOURCE}/art@sha256:${'2'.repeat(64)}`,
  };
  const release = releaseLayout(folder, '4.22.3', components);
  const newer = releaseLayout(folder, '4.22.4', {
    cli: `${SOURCE}/art@sha256:${'3'.repeat(64)}`,
    etcd: `${SOURCE}/etcd@sha256:${'4'.repeat(64)}`,
  });
  push(release, full, 'm/release:4.22.3', folder);
  push(newer, full, 'm/release:4.22.4', folder);
  push(cli1, full, 'm/art:cli', folder);
  const from = clusterFolder(folder, [`${full.host}/m`, `${bare.host}/m`], full);
  const reach = [
    '--from',
    from,
    '--cluster',
    'clusters/prod',
    '--plain-host',
    full.host,
    '--plain-host',
    bare.host,
    '--allow-host',
    full.host,
    '--allow-host',
    bare.host,
  ];
  const image = `${SOURCE}/release:4.22.3`;

  test('--check asks every mirror of nodes and control plane with the secret of the cluster, and prints an image set', async () => {
    const ran = await cli(image, ...reach, '--check', '--output', 'json');
    assert.equal(ran.code, 1, ran.stderr);
    const { check } = JSON.parse(ran.stdout) as {
      check: {
        components: number;
        places: number;
        gaps: { reference: string; verdict: string; for: string[] }[];
        imageSet: unknown;
      };
    };
    assert.deepEqual([check.components, check.places], [3, 6]);
    const gaps = check.gaps.map((gap) => `${gap.verdict} ${gap.reference.replace(/sha256:(.{4}).*/, '$1')}`);
    assert.ok(gaps.includes(`NotFound ${full.host}/m/art@2222`), gaps.join());
    // Its credential is for the other mirror only.
    assert.equal(
      gaps.filter((gap) => gap.startsWith(`Invalid ${bare.host}`) || gap.startsWith(`Forbidden ${bare.host}`))
        .length,
      3,
      gaps.join(),
    );
    assert.equal(gaps.length, 4);
    assert.deepEqual(
      check.gaps[0]?.for.includes('node'),
      false,
      'nodes of the hosted cluster have the first mirror alone',
    );
    assert.deepEqual(check.imageSet, {
      apiVersion: 'mirror.openshift.io/v2alpha1',
      kind: 'ImageSetConfiguration',
      mirror: { additionalImages: [{ name: components.installer }] },
    });
    const alone = await cli(image, ...reach, '--check', '--output', 'imageset');
    assert.deepEqual(parseYaml(alone.stdout), check.imageSet);
    const text = await cli(image, ...reach, '--check');
    assert.match(text.stdout, /checked {7}3 images at 6 places: 4 gaps/);
    assert.match(text.stdout, /NotFound {2}.*@sha256:2{64}\n {2}installer, for node, /);
  });

  test('--image-for prints one image, and says what was probably meant', async () => {
    const one = await cli(image, ...reach, '--image-for', 'cli');
    assert.equal(one.stdout, `${components.cli}\n`);
    const at = await cli(image, ...reach, '--image-for', 'cli', '--translate');
    assert.equal(at.stdout, `${full.host}/m/art@${cli1.digest}\n`);
    const wrong = await cli(image, ...reach, '--image-for', 'instaler');
    assert.equal(wrong.code, 1);
    assert.match(
      wrong.stderr,
      /Cannot find component "instaler" in release 4\.22\.3: did you mean "installer"\?/,
    );
  });

  test('two releases are compared', async () => {
    const ran = await cli(image, `${SOURCE}/release:4.22.4`, ...reach);
    assert.equal(ran.code, 0, ran.stderr);
    assert.match(
      ran.stdout,
      /^from {2}4\.22\.3\nto {4}4\.22\.4\n\n\+ etcd .*\n- installer .*\n~ cli .* -> .*\n1 added, 1 removed, 1 changed, 0 unchanged\n$/,
    );
  });
}

test('the example of --help asks the mirrors of the management cluster first', async () => {
  const { stdout } = await cli('--help');
  const [, example = ''] = /main\.ts release (.*)/.exec(stdout) ?? [];
  const ran = await cli(...example.trim().split(' '), '--timeout', '2s');
  assert.equal(ran.code, 1);
  const [first = ''] = /Cannot read release "[^"]*": (\S+)/.exec(ran.stderr)?.slice(1) ?? [];
  assert.match(first, /^mirror/);
});

test('bad usage', async () => {
  for (const [args, says] of [
    [[], /expected one image, or two to compare/],
    [['a.io/b:1', 'a.io/b:2', '--check'], /Cannot compare two releases with --check/],
    [['a.io/b:1', '--check', '--image-for', 'x'], /Cannot use --check with --image-for/],
    [['a.io/b:1', '--output', 'imageset'], /Cannot print an image set without --check/],
  ] as const) {
    const ran = await cli(...args);
    assert.equal(ran.code, 2);
    assert.match(ran.stderr, says);
  }
});

test.run();
