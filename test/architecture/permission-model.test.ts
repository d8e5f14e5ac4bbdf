// deadline: 900 s
/**
 * Each command under Node's `--permission` with exactly what it declares: it works; with one grant less it fails and says
 * what is missing. Commands that must fsync are refused by the permission model as a whole and are tested elsewhere.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { COMMANDS } from '../../runtime/commands/table.ts';
import { kubeconfigText } from '../control-plane/users.ts';
import { plantedPassword } from '../support/canary.ts';
import { makeCertificates } from '../support/certificates.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = new URL('../..', import.meta.url).pathname;
const work = tempFolder();

/** The program itself; no data of users. */
const PROGRAM: readonly string[] = ['main.ts', 'package.json', 'charts', 'runtime', 'node_modules'].map(
  (name) => join(root, name),
);

interface Row {
  readonly command: string;
  /** Values of flags; a flag that the permissions name becomes a grant. */
  readonly flags: Readonly<Record<string, string>>;
  readonly positionals?: readonly string[];
}

const FLEET = join(root, 'examples/fleet');

/** A pull secret that is copied by annotation, and a workload without images that need a registry request. */
const SCENE = join(work, 'scene');
mkdirSync(SCENE);
writeFileSync(
  join(SCENE, 'scene.yaml'),
  `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: web}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: web}, spec: {template: {spec: {containers: []}}}}
---
apiVersion: v1
kind: Secret
type: kubernetes.io/dockerconfigjson
metadata:
  name: pull
  namespace: hub
  annotations: {replicator.v1.mittwald.de/replicate-to: web}
data: {.dockerconfigjson: e30=}
`,
);
writeFileSync(join(work, 'expectations.yaml'), 'tests: [{image: quay.io/a/b, expect: anonymous}]\n');

/** An API server that serves no kind and holds no object: for what asks it and writes nothing else. */
const { ca, cert, key } = makeCertificates();
const emptyServer = createServer({ cert, key }, (request, response) => {
  const kind = request.url?.startsWith('/apis') === true ? 'APIGroupList' : 'APIResourceList';
  const isDiscovery = ['/api', '/apis', '/api/v1'].includes(request.url?.split('?')[0] ?? '');
  response.writeHead(isDiscovery ? 200 : 404, { 'content-type': 'application/json' });
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };
  response.end(JSON.stringify(isDiscovery ? { kind, groups: [], resources: [], versions: [] } : status));
});
await new Promise<void>((listening) => {
  emptyServer.listen(0, '127.0.0.1', () => listening());
});
const KUBECONFIG = join(work, 'kubeconfig');
const { port } = emptyServer.address() as AddressInfo;
writeFileSync(
  KUBECONFIG,
  kubeconfigText(`https://127.0.0.1:${port}`, ca, { token: plantedPassword('permission') }),
);

/** Commands without a row, and where the same is shown of them. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  adapter: 'hosts: test/pull-secret-adapter/adapter-process.test.ts',
  agent: 'must fsync: test/global-pull-secret/agent-files.test.ts',
  completion: 'reads and writes nothing',
  'install-provider': 'must fsync: test/credential-provider/installer-systemd.test.ts',
  job: 'must fsync: test/pull-secret-adapter/job-executable.test.ts',
  provider: 'must fsync: test/credential-provider/executable-faults.test.ts',
  sentinel: 'hosts: test/pull-secret-adapter/sentinel.test.ts',
  webhook: 'waits for an API server: test/pull-secret-injection/webhook.test.ts',
};

const rows: readonly Row[] = [
  {
    command: 'reconcile',
    flags: { '--from': join(FLEET, 'hosted'), '--management': join(FLEET, 'management') },
  },
  {
    command: 'reconcile',
    flags: {
      '--from': join(FLEET, 'hosted'),
      '--management': join(FLEET, 'management'),
      '--to': join(work, 'reconciled'),
    },
  },
  { command: 'synth', flags: { '--fleet': join(FLEET, 'fleet.yaml'), '--to': join(work, 'manifests') } },
  {
    command: 'mirrors',
    flags: { '--from': join(FLEET, 'management/mirror-sets.yaml') },
    positionals: ['quay.io/openshift-release-dev/ocp-release:4.20.6-x86_64'],
  },
  {
    command: 'explain',
    flags: { '--from': join(FLEET, 'hosted/clusters/prod') },
    positionals: ['registry.example.com/payments/api:1.4.2'],
  },
  { command: 'validate', flags: {}, positionals: [join(FLEET, 'fleet.yaml')] },
  { command: 'test', flags: { '--from': SCENE }, positionals: [join(work, 'expectations.yaml')] },
  { command: 'status', flags: { '--from': SCENE } },
  { command: 'verify', flags: { '--from': SCENE }, positionals: ['--all-in-use'] },
  { command: 'doctor', flags: { '--from': SCENE }, positionals: ['deploy/web', '-n', 'web'] },
  {
    command: 'check',
    flags: { '--fleet': join(FLEET, 'fleet.yaml'), '--from': SCENE },
    positionals: ['--pre', '--cluster', 'management'],
  },
  { command: 'report', flags: { '--from': SCENE } },
  { command: 'uninstall', flags: { '--kubeconfig': KUBECONFIG }, positionals: ['--yes'] },
];

test('every command of the table has a row, or a place where the same is shown', () => {
  const shown = new Set([...rows.map(({ command }) => command), ...Object.keys(ELSEWHERE)]);
  assert.deepEqual([...shown].sort(), Object.keys(COMMANDS).sort());
  for (const [command, place] of Object.entries(ELSEWHERE)) {
    assert.ok(!rows.some((row) => row.command === command), `"${command}" has a row: leave it out here`);
    const file = place.split(': ')[1];
    if (file !== undefined) assert.ok(existsSync(join(root, file)), `${command}: ${file}`);
  }
});

interface Grants {
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

async function grantsOf(row: Row): Promise<Grants> {
  const command = await COMMANDS[row.command]?.load();
  assert.ok(command !== undefined, `no command "${row.command}"`);
  const paths = (names: readonly string[]): string[] =>
    names.flatMap((name) =>
      name === '<FILE>' ? (row.positionals ?? []) : (row.flags[/^<(.*)>$/.exec(name)?.[1] ?? ''] ?? []),
    );
  return { reads: paths(command.permissions.reads), writes: paths(command.permissions.writes) };
}

async function run(row: Row, grants: Grants): Promise<ProcessResult> {
  const allow = [
    ...[...PROGRAM, ...grants.reads, ...grants.writes].map((path) => `--allow-fs-read=${resolve(path)}`),
    ...grants.writes.map((path) => `--allow-fs-write=${resolve(path)}`),
  ];
  // A grant of a folder reaches below it only when the folder is there.
  for (const path of grants.writes) mkdirSync(path, { recursive: true });
  const flags = Object.entries(row.flags).flat();
  return runProcess(
    [
      process.execPath,
      '--permission',
      ...allow,
      join(root, 'main.ts'),
      row.command,
      ...(row.positionals ?? []),
      ...flags,
    ],
    { cwd: root },
  );
}

for (const row of rows) {
  const title = `${row.command} ${Object.keys(row.flags).join(' ')}`;
  test(`${title} works with what it declares`, async () => {
    const grants = await grantsOf(row);
    assert.ok(grants.reads.length > 0, 'the command declares no flag of this row');
    const ran = await run(row, grants);
    assert.equal(ran.code, 0, ran.stderr);
    for (const path of grants.writes) rmSync(path, { recursive: true, force: true });
  });
  test(`${title} fails with one grant less, and says which`, async () => {
    const grants = await grantsOf(row);
    for (const missing of [...grants.reads, ...grants.writes]) {
      const without = (paths: readonly string[]): readonly string[] =>
        paths.filter((path) => path !== missing);
      const ran = await run(row, { reads: without(grants.reads), writes: without(grants.writes) });
      assert.notEqual(ran.code, 0, `works without "${missing}"`);
      assert.match(ran.stderr, /not granted/, ran.stderr);
      assert.doesNotMatch(ran.stderr, /^ +at /m);
    }
  });
}

test.lastly('the work folder is removed', () => {
  emptyServer.close();
});
