/** What is said of a cluster before an installation: version, definitions, priority classes, other tools, rights. */
import assert from 'node:assert/strict';
import { checkBefore } from '../../runtime/diagnose/checks/installed.ts';
import { suite, table } from '../support/suite.ts';
import { agent, crd, image, NOTHING, namespace, object, policy, type Row, row } from './check-objects.ts';

const test = suite('check before, of the cluster');
const before: readonly Row[] = [
  row(
    'an old API server',
    { serverVersion: 'v1.29.4', plan: [policy('ValidatingAdmissionPolicy')] },
    ['kubernetes', 'fail'],
    /is v1\.29\.4; 1\.30 or newer is wanted for ValidatingAdmissionPolicy/,
    /Upgrade/,
  ),
  row(
    'one that lacks mutating policies',
    { serverVersion: 'v1.35.0', plan: [policy('MutatingAdmissionPolicy')] },
    ['kubernetes', 'fail'],
    /1\.36 or newer/,
    /admission: webhook/,
  ),
  row(
    'the newest API server',
    { plan: [policy('MutatingAdmissionPolicy')] },
    ['kubernetes', 'ok'],
    /is v1\.36\.0/,
  ),
  row(
    'one that nobody has tested',
    { serverVersion: 'v1.44.0-rc.1' },
    ['kubernetes', 'warn'],
    /newest release that is tested is 1\.36/,
  ),
  row('a version that nobody can read', { serverVersion: 'main' }, ['kubernetes', 'warn'], /is not known/),
  row(
    'a definition that is not there',
    { plan: [crd('things.x.io', ['v1'])] },
    ['crds', 'ok'],
    /not there yet/,
  ),
  row(
    'a definition of older versions',
    { plan: [crd('things.x.io', ['v2'])], objects: [crd('things.x.io', ['v1'])] },
    ['crds', 'fail'],
    /does not serve v2/,
    /crds/,
  ),
  row(
    'a definition with another schema',
    {
      plan: [crd('things.x.io', ['v1'], { spec: { properties: { a: {} } } })],
      objects: [crd('things.x.io', ['v1'], { spec: {} })],
    },
    ['crds', 'warn'],
    /another schema/,
  ),
  row(
    'the same definition',
    { plan: [crd('things.x.io', ['v1'])], objects: [crd('things.x.io', ['v1'])] },
    ['crds', 'ok'],
    /as it is rendered/,
  ),
  row(
    'a namespace that nobody brings',
    { plan: [object('v1', 'ConfigMap', 'c', { metadata: { name: 'c', namespace: 'openshift-config' } })] },
    ['namespaces', 'fail'],
    /openshift-config is not there/,
    /kubectl create namespace openshift-config/,
  ),
  row('one that every API server makes', { plan: [agent()] }, ['namespaces', 'ok'], /every namespace/),
  row(
    'one that is rendered',
    {
      plan: [
        object('v1', 'ConfigMap', 'c', { metadata: { name: 'c', namespace: 'openshift-config' } }),
        namespace('openshift-config'),
      ],
    },
    ['namespaces', 'ok'],
    /every namespace/,
  ),
  row(
    'a kind that nobody defines',
    { plan: [object('monitoring.coreos.com/v1', 'PodMonitor', 'm')] },
    ['kinds', 'fail'],
    /PodMonitor of monitoring\.coreos\.com/,
    /overlays\/monitoring/,
  ),
  row(
    'the same of a folder',
    { live: false, plan: [object('monitoring.coreos.com/v1', 'PodMonitor', 'm')] },
    ['kinds', 'warn'],
    /the folder has no definition/,
  ),
  row(
    'a priority class that is not there',
    { plan: [agent({ priorityClassName: 'openshift-user-critical' })] },
    ['priority-class', 'fail'],
    /pods that name it are refused/,
    /agent\.priorityClassName/,
  ),
  row(
    'one of every cluster',
    { plan: [agent({ priorityClassName: 'system-node-critical' })] },
    ['priority-class', 'ok'],
    /every cluster/,
  ),
  row('no other tool', {}, ['other-operators', 'ok'], /no other tool/),
  ...(
    [
      ['Kruise', crd('sidecarsets.apps.kruise.io', ['v1'])],
      ['reflector', object('apps/v1', 'Deployment', 'r', image('kubernetes-reflector'), 'x')],
      [
        'reflector',
        object(
          'v1',
          'Secret',
          's',
          { metadata: { name: 's', annotations: { 'reflector.v1.k8s.emberstack.com/reflects': 'a/b' } } },
          'x',
        ),
      ],
      ['replicator', object('apps/v1', 'Deployment', 'r', image('kubernetes-replicator'), 'x')],
      ['imps', crd('imagepullsecrets.images.banzaicloud.io', ['v1'])],
      [
        'imagepullsecret-patcher',
        object('apps/v1', 'Deployment', 'r', image('imagepullsecret-patcher'), 'x'),
      ],
      ['registry-creds', crd('clusterpullsecrets.ops.alexellis.io', ['v1'])],
      ['External Secrets', crd('externalsecrets.external-secrets.io', ['v1'])],
    ] as const
  ).map(([tool, one]) =>
    row(
      `${tool} by ${one.kind}`,
      { objects: [one] },
      ['other-operators', 'warn'],
      new RegExp(`^${tool} is there \\(${one.kind} `),
      /./,
    ),
  ),
  row(
    'an object of somebody else',
    { plan: [agent()], objects: [agent()] },
    ['foreign-objects', 'warn'],
    /DaemonSet\/kube-system\/agent is there and not ours/,
  ),
  row(
    'an account without rights',
    {
      rights: [
        { verb: 'create', group: 'apps', resource: 'daemonsets', namespace: 'kube-system', allowed: false },
      ],
    },
    ['rights', 'fail'],
    /may not create daemonsets\.apps in kube-system/,
    /--as/,
  ),
  row(
    'an account with them',
    { rights: [{ verb: 'create', group: '', resource: 'secrets', allowed: true }] },
    ['rights', 'ok'],
    /all 1 kinds/,
  ),
];
table(test, before, ({ input, check, level, says, fix }) => {
  const found = checkBefore({ ...NOTHING, ...input }).filter((line) => line.check === check);
  const line = found.find((one) => says.test(one.message));
  assert.ok(line, JSON.stringify(found));
  assert.equal(line.level, level);
  if (fix !== undefined) assert.match(line.fix ?? '', fix);
});

test('of a folder the version and the rights are not known, and that is said', () => {
  const { serverVersion: _version, rights: _rights, ...folder } = { ...NOTHING, live: false };
  const lines = checkBefore(folder);
  assert.match(lines.find(({ check }) => check === 'kubernetes')?.message ?? '', /not known from a folder/);
  assert.match(lines.find(({ check }) => check === 'rights')?.message ?? '', /not asked/);
});

test.run();
