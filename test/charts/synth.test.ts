/** `pullwright synth`, as people and pipelines run it. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  defaultFleet,
  fleetJsonSchema,
  parseFleet,
  readFleet,
  renderFleet,
  writeTree,
} from '../../charts/mod.ts';
import { goldenTree } from '../support/golden.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { root, SynthFolder, snapshot } from './synth-folder.ts';

const folder = new SynthFolder();
const { scratch } = folder;
const EXAMPLE = join(root, 'examples/fleet/fleet.yaml');

test('the committed tree is what the built-in fleet renders', async () => {
  const ran = await folder.synth(['--check', '--to', join(root, 'dist/manifests')]);
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
});

test('the committed JSON Schema is what the fleet file takes', () => {
  const file = join(root, 'docs/fleet.schema.json');
  const text = `${JSON.stringify(fleetJsonSchema(), null, 2)}\n`;
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(file, text);
  assert.ok(readFileSync(file, 'utf8') === text, 'docs/fleet.schema.json is old: run with UPDATE_GOLDEN=1');
});

test('the example fleet renders as before', () => {
  goldenTree('charts/example-fleet', renderFleet(parseFleet(readFileSync(EXAMPLE, 'utf8'))).tree);
});

test('prints a line per cluster and the counts', async () => {
  const ran = await folder.synth(['--fleet', EXAMPLE, '--to', 'out']);
  assert.equal(ran.stderr, '');
  assert.match(ran.stdout, /^Fleet .*fleet\.yaml to out\n/);
  assert.match(ran.stdout, /\n {2}prod +\d+ objects in prod\n/);
  assert.match(ran.stdout, /\n {2}edge +nothing in git, applied by the reconciler\n/);
  assert.match(ran.stdout, /\n(\d+) files: \1 added, 0 unchanged\n$/);
  assert.match(
    ran.stdout,
    /\n {2}overlays\/config\.openshift\.io: CRIOCredentialProviderConfig; not in the base/,
  );
  assert.equal(ran.stdout.split('\n').length, 10);
});

test('a second run changes no byte', async () => {
  await folder.synth(['--fleet', EXAMPLE, '--to', 'twice']);
  const before = snapshot(join(scratch, 'twice'));
  const ran = await folder.synth(['--fleet', EXAMPLE, '--to', 'twice']);
  assert.match(ran.stdout, /files: \d+ unchanged\n$/);
  assert.deepEqual(snapshot(join(scratch, 'twice')), before);
});

test('--check lists added, changed and stale files, exits 1, and writes nothing', async () => {
  writeTree(join(scratch, 'check'), renderFleet(readFleet(defaultFleet)).tree);
  const checked = join(scratch, 'check');
  rmSync(join(checked, 'kube-system/daemonset-global-pull-secret-syncer.yaml'));
  writeFileSync(
    join(checked, 'kustomization.yaml'),
    `${readFileSync(join(checked, 'kustomization.yaml'), 'utf8')}# edited\n`,
  );
  writeFileSync(
    join(checked, 'old.yaml'),
    '# Rendered by pullwright as old.yaml; change the fleet, not this file.\n',
  );
  const before = snapshot(checked);
  const ran = await folder.synth(['--check', '--to', 'check']);
  assert.equal(ran.code, 1);
  assert.deepEqual(ran.stdout.split('\n').slice(0, 3), [
    'added kube-system/daemonset-global-pull-secret-syncer.yaml',
    'changed kustomization.yaml',
    'stale old.yaml',
  ]);
  const json = JSON.parse((await folder.synth(['--check', '--to', 'check', '--output', 'json'])).stdout) as {
    difference: Record<string, unknown>;
  };
  assert.deepEqual(json.difference['stale'], ['old.yaml']);
  assert.deepEqual(snapshot(checked), before);
});

test('CDK8S_OUTDIR is where it writes, and --to wins', async () => {
  await folder.synth([], { CDK8S_OUTDIR: 'from-env' });
  assert.ok(existsSync(join(scratch, 'from-env/kustomization.yaml')));
  await folder.synth(['--to', 'from-flag'], { CDK8S_OUTDIR: 'not-here' });
  assert.ok(existsSync(join(scratch, 'from-flag')) && !existsSync(join(scratch, 'not-here')));
});

test('cdk8s synth runs it, into the folder and to standard output', async () => {
  const app = join(scratch, 'cdk8s');
  mkdirSync(app);
  cpSync(join(root, 'cdk8s.yaml'), join(app, 'cdk8s.yaml'));
  // The command line of cdk8s deletes its output folder, so that it runs on a copy beside the tree.
  writeFileSync(join(app, 'main.ts'), `await import('${join(root, 'main.ts')}');\n`);
  const run = (...args: readonly string[]): Promise<ProcessResult> =>
    runProcess(
      [
        process.execPath,
        join(root, 'node_modules/cdk8s-cli/bin/cdk8s'),
        'synth',
        '--check-upgrade=false',
        ...args,
      ],
      {
        cwd: app,
        env: { ...process.env, PATH: `${join(process.execPath, '..')}:${process.env['PATH']}` },
      },
    );
  const ran = await run();
  assert.equal(ran.code, 0, ran.stderr);
  assert.deepEqual(snapshot(join(app, 'dist/manifests')), snapshot(join(root, 'dist/manifests')));
  const printed = await run('--stdout');
  assert.equal(printed.code, 0, printed.stderr);
  assert.match(printed.stdout, /kind: DaemonSet/);
});

test('"-" prints every object', async () => {
  const ran = await folder.synth(['--to', '-']);
  assert.equal((ran.stdout.match(/^---$/gm) ?? []).length, 34);
  assert.doesNotMatch(ran.stdout, /kind: Kustomization/);
});

test('a fleet in TypeScript may add and patch', async () => {
  writeFileSync(
    join(scratch, 'fleet.ts'),
    `import { ApiObject, JsonPatch } from '${join(root, 'node_modules/cdk8s/lib/index.js')}';
export default {
  image: 'registry.example.com/pullwright:0.1.0',
  clusters: [{
    name: 'a', path: '.', systems: { 'global-pull-secret': {} },
    extend(chart) {
      const id = 'DaemonSet-kube-system-global-pull-secret-syncer';
      const daemonSet = chart.node.findChild('global-pull-secret').node.findChild(id);
      daemonSet.addJsonPatch(JsonPatch.add('/spec/minReadySeconds', 30));
      new ApiObject(chart, 'mine', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mine', namespace: 'default' } });
    },
  }],
};
`,
  );
  const ran = await folder.synth(['--fleet', 'fleet.ts', '--to', 'typed']);
  assert.equal(ran.code, 0, ran.stderr);
  assert.ok(existsSync(join(scratch, 'typed/default/configmap-mine.yaml')));
  assert.match(
    readFileSync(join(scratch, 'typed/kube-system/daemonset-global-pull-secret-syncer.yaml'), 'utf8'),
    /minReadySeconds: 30/,
  );
});

test('runs confined to what it declares: the fleet and the program to read, the output to write', async () => {
  const to = join(scratch, 'confined');
  // Node widens a path to what is below it only where a folder is there.
  mkdirSync(to);
  const confined = (output: string): Promise<ProcessResult> =>
    runProcess([
      process.execPath,
      '--permission',
      `--allow-fs-read=${root}`,
      `--allow-fs-read=${to}`,
      `--allow-fs-write=${to}`,
      join(root, 'main.ts'),
      'synth',
      `--fleet=${EXAMPLE}`,
      `--to=${output}`,
    ]);
  const ran = await confined(to);
  assert.equal(ran.code, 0, ran.stderr);
  assert.ok(existsSync(join(to, 'prod/kustomization.yaml')));
  const elsewhere = await confined(join(scratch, 'not-declared'));
  assert.equal(elsewhere.code, 1);
  assert.match(elsewhere.stderr, /not-declared/);
  assert.ok(!existsSync(join(scratch, 'not-declared')));
});

test('a SOPS file that is not there yet is asked for, and kept once it is', async () => {
  const fleet = `image: registry.example.com/p:1
gitops: { tool: argo-cd, repository: https://git.example.com/f.git }
clusters: [{ name: a, systems: { global-pull-secret: { source: { sops: {} } } } }]
`;
  writeFileSync(join(scratch, 'sops.yaml'), fleet);
  const first = await folder.synth(['--fleet', 'sops.yaml', '--to', 'sops']);
  const path = 'a/overlays/sops/kube-system/secret-additional-pull-secret.sops.yaml';
  assert.equal(first.code, 0);
  assert.ok(first.stderr.includes(`warning: ${path} is missing: create it with "kubectl create secret`));
  assert.match(first.stderr, /warning: Argo CD does not decrypt SOPS files/);
  mkdirSync(join(scratch, 'sops', path, '..'), { recursive: true });
  writeFileSync(join(scratch, 'sops', path), 'encrypted: true\n');
  const second = await folder.synth(['--fleet', 'sops.yaml', '--to', 'sops']);
  assert.doesNotMatch(second.stderr, /is missing: create it/);
  assert.equal(readFileSync(join(scratch, 'sops', path), 'utf8'), 'encrypted: true\n');
});

test('no rendered file holds a credential or a Secret', () => {
  const texts = [...renderFleet(parseFleet(readFileSync(EXAMPLE, 'utf8'))).tree].map(([, text]) => text);
  for (const text of texts) {
    assert.doesNotMatch(text, /^kind: Secret$/m);
    assert.doesNotMatch(text, /"auths"|"auth":|eyJhdXRocyI6/);
  }
});

test.lastly('the scratch folder goes', () => folder.close());
