// needs: control plane
/** `pullwright check`: of a folder, of a cluster that is there, and what is no use of it. */
import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { controlPlane } from '../control-plane/live.ts';
import { runInProcess } from '../support/in-process.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const fleet = join(folder, 'fleet.yaml');
writeFileSync(
  fleet,
  `image: registry.example.com/pullwright:0.1.0
clusters:
  - name: one
    systems: { global-pull-secret: { createConfigNamespace: true } }
  - name: two
    systems: { pull-secret-injection: {} }
`,
);
const dump = join(folder, 'dump');
const nodes = join(folder, 'nodes.json');
writeFileSync(
  nodes,
  JSON.stringify({
    ...meta('v1 Node', { name: 'n', labels: { 'kubernetes.io/os': 'linux' } }),
    status: { nodeInfo: { containerRuntimeVersion: 'containerd://2.1.0', kubeletVersion: 'v1.36.0' } },
  }),
);
const check = (...args: readonly string[]) => runInProcess(['check', ...args]);

interface Answer {
  readonly findings: readonly {
    readonly check: string;
    readonly severity: string;
    readonly message: string;
  }[];
}

test('a folder before an installation: what it tells, and what it cannot', async () => {
  const ran = await check('--pre', '--fleet', fleet, '--cluster', 'one', '--from', nodes);
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
  assert.match(ran.stdout, /^warn {2}kubernetes {6,}the version of the API server is unknown in a folder/);
  assert.match(ran.stdout, /\nok {4}eligible-nodes {2,}1 of 1 node is eligible\n/);
  assert.match(ran.stdout, /\n\d+ ok, \d+ warn, 0 fail\n$/);
});

test('a folder after it: what is rendered is not there', async () => {
  const ran = await check('--fleet', fleet, '--cluster', 'one', '--from', nodes, '-o', 'json');
  assert.equal(ran.code, 1);
  const { findings } = JSON.parse(ran.stdout) as Answer;
  assert.equal(findings[0]?.severity, 'error');
  assert.match(findings[0].message, /objects of the plan are not found/);
});

test('nodes of a management cluster take no part: its sections speak of hosted clusters', async () => {
  const hub = join(folder, 'hub.yaml');
  writeFileSync(
    hub,
    'image: registry.example.com/pullwright:0.1.0\nclusters: [{ name: hub, kind: management, systems: { global-pull-secret: {} } }]\n',
  );
  const ran = await check('--pre', '--fleet', hub, '--from', nodes, '-o', 'json');
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
  const { findings } = JSON.parse(ran.stdout) as Answer;
  assert.ok(!findings.some((line) => line.check === 'eligible-nodes'), JSON.stringify(findings));
});

test('the manifests themselves are all there', async () => {
  const written = await runInProcess(['synth', '--fleet', fleet, '--to', dump]);
  assert.equal(written.code, 0, written.stderr);
  const ran = await check('--fleet', fleet, '--cluster', 'one', '--from', join(dump, 'one'), '-o', 'json');
  const { findings } = JSON.parse(ran.stdout) as Answer;
  assert.equal(findings[0]?.severity, 'ok');
  assert.match(findings[0].message, /^all \d+ objects of the plan exist$/);
});

test('of a dump of several clusters the one of the fleet is checked', async () => {
  const ran = await check('--fleet', fleet, '--cluster', 'one', '--from', dump, '-o', 'json');
  const { findings } = JSON.parse(ran.stdout) as Answer;
  assert.match(findings[0]?.message ?? ran.stderr, /^all \d+ objects of the plan exist$/);
  assert.ok(!findings.some((line) => line.check === 'read'), ran.stdout);
  const single = join(folder, 'single.yaml');
  writeFileSync(
    single,
    'image: registry.example.com/pullwright:0.1.0\nclusters: [{ name: lab, systems: { pull-secret-injection: {} } }]\n',
  );
  const asked = await check('--fleet', single, '--from', dump);
  assert.equal(asked.code, 2, asked.stdout);
  assert.match(asked.stderr, /Cannot find cluster "lab" in --from: found .*one.*two.*--cluster/);
  const typo = await check('--pre', '--fleet', single, '--cluster', 'nonsense', '--from', nodes);
  assert.equal(typo.code, 2, typo.stdout);
  assert.match(typo.stderr, /Cannot find cluster "nonsense" in --from: found local/);
  const named = await check('--pre', '--fleet', single, '--cluster', 'local', '--from', nodes);
  assert.equal(named.code, 0, named.stdout + named.stderr);
});

test('of a fleet of several, a folder whose clusters have other names is named alone', async () => {
  const renamed = join(folder, 'renamed');
  for (const name of ['one', 'two'])
    cpSync(join(dump, name), join(renamed, `prod-${name}`), { recursive: true });
  const ran = await check('--fleet', fleet, '--cluster', 'one', '--from', renamed);
  assert.equal(ran.code, 2, ran.stdout);
  assert.match(ran.stderr, /found prod-one, prod-two; pass only its folder/);
});

test('a standalone cluster of a fleet of several is what is in no folder of its own', async () => {
  const hub = join(folder, 'hub.json');
  const hosted = meta('hypershift.openshift.io/v1beta1 HostedCluster', {
    name: 'prod',
    namespace: 'clusters',
  });
  const items = [JSON.parse(readFileSync(nodes, 'utf8')) as unknown, hosted, hosted];
  writeFileSync(hub, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  const ran = await check('--pre', '--fleet', fleet, '--cluster', 'one', '--from', hub);
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
  assert.match(ran.stdout, /\nwarn {2}read {2,}(?!warning).*hub\.json:/);
});

table(
  test,
  [
    {
      name: 'several clusters',
      reason: 'one is checked',
      args: ['--fleet', fleet],
      says: /choose one with --cluster: one, two/,
      code: 2,
    },
    {
      name: 'an unknown one',
      reason: 'it is a typo',
      args: ['--fleet', fleet, '--cluster', 'tow'],
      says: /Cannot find cluster "tow".*one, two/,
      code: 2,
    },
    {
      name: 'no such fleet',
      reason: 'nothing is rendered',
      args: ['--fleet', join(folder, 'none.yaml')],
      says: /Cannot read fleet/,
      code: 1,
    },
    {
      name: 'no such folder',
      reason: 'nothing is read',
      args: ['--fleet', fleet, '--cluster', 'one', '--from', join(folder, 'none')],
      says: /none/,
      code: 1,
    },
    {
      name: 'an argument',
      reason: 'there is none',
      args: ['one'],
      says: /Unexpected argument "one"/,
      code: 2,
    },
  ] satisfies readonly (Case & { args: readonly string[]; says: RegExp; code: number })[],
  async ({ args, says, code }) => {
    const ran = await check(...args);
    assert.match(ran.stderr, says);
    assert.equal(ran.code, code, ran.stderr);
  },
);
const plane = await controlPlane();
const live = async (...args: readonly string[]): Promise<Answer & { readonly code: number }> => {
  const ran = await check(
    '--fleet',
    fleet,
    '--cluster',
    'one',
    '-o',
    'json',
    '--kubeconfig',
    plane.kubeconfig,
    ...args,
  );
  assert.equal(ran.stderr, '');
  return { ...(JSON.parse(ran.stdout) as Answer), code: ran.code };
};

test('a cluster before an installation: version, rights and nodes of the real API server', async () => {
  await plane.apply(meta('v1 Node', { name: 'n', labels: { 'kubernetes.io/os': 'linux' } }));
  const { findings, code } = await live('--pre');
  const of = (name: string) =>
    findings.filter((line) => line.check === name).map(({ severity, message }) => `${severity}: ${message}`);
  assert.match(of('kubernetes').join(), /^ok: the API server is v1\.\d+/);
  assert.match(of('rights').join(), /^ok: this account may write all \d+ kinds/);
  assert.match(of('eligible-nodes').join(), /^ok: 1 of 1 node is eligible$/);
  assert.match(of('crds').join(), /pullstatuses\.pullwright\.dev is not installed yet/);
  assert.equal(code, 0, JSON.stringify(findings));
});

test('an account without rights is told which are missing', async () => {
  const looks = [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list'] }];
  const user = await plane.user({ name: 'looker', by: 'token', cluster: looks });
  const { findings, code } = await live('--pre', '--kubeconfig', user.kubeconfig);
  const rights = findings.find((line) => line.check === 'rights');
  assert.equal(rights?.severity, 'error');
  assert.match(rights.message, /may not create .* and \d+ more$/);
  assert.equal(code, 1);
});

test('after it: what was applied is there and served, and pods that no node runs are said', async () => {
  const written = await runInProcess(['synth', '--fleet', fleet, '--to', dump]);
  assert.equal(written.code, 0, written.stderr);
  for (const part of ['one/crds', 'one']) {
    const applied = await plane.kubectl('apply', '--server-side', '-k', join(dump, part));
    assert.equal(applied.code, 0, applied.stderr);
  }
  const { findings, code } = await live();
  const levels = (name: string) =>
    findings.filter((line) => line.check === name).map(({ severity }) => severity);
  assert.deepEqual(levels('objects'), ['ok'], JSON.stringify(findings));
  assert.ok(levels('workloads').length > 0 && levels('workloads').every((level) => level === 'error'));
  assert.ok(
    levels('admission').length > 0 && !levels('admission').includes('error'),
    JSON.stringify(findings),
  );
  assert.equal(code, 1);
});
