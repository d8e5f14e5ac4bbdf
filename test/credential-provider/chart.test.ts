/** Objects of a fleet's section, and rejected sections. */
import assert from 'node:assert/strict';
import { stringify } from 'yaml';
import { credentialProviderSystem } from '../../charts/credential-provider/chart.ts';
import type { ClusterContext } from '../../charts/shared/system.ts';
import { schema } from '../../runtime/credential-provider/options.ts';
import { golden } from '../support/golden.ts';
import { type Case, table, test } from '../support/suite.ts';

const CLUSTER: ClusterContext = {
  name: 'prod',
  kind: 'standalone',
  delivery: 'gitops',
  namespace: 'pullwright-system',
  image: 'registry.example.com/pullwright:0.1.0',
  hosted: [],
  discovery: false,
};

test('everything, as YAML', () => {
  const config = schema.parse({
    matchImages: ['docker.io', '*.example.io'],
    crd: true,
    nodeAccess: 'shipped',
    namespaces: [
      { namespace: 'app-team-alpha', serviceAccounts: ['app'] },
      { namespace: 'app-team-beta', secrets: ['mirror'], readReferences: false },
    ],
    alerts: true,
  });
  golden(
    'credential-provider/section.yaml',
    credentialProviderSystem
      .objects(config, CLUSTER)
      .map((object) => stringify(object))
      .join('---\n'),
  );
});

test('an empty section renders the roles of the nodes, as narrow as can be', () => {
  const objects = credentialProviderSystem.objects(schema.parse({}), CLUSTER);
  assert.deepEqual(
    objects.map(({ kind }) => kind),
    ['ClusterRole', 'ClusterRoleBinding'],
  );
  assert.deepEqual(objects[0]?.['rules'], [
    {
      apiGroups: [''],
      resources: ['https://kubernetes.default.svc'],
      verbs: ['request-serviceaccounts-token-audience'],
    },
  ]);
});

test('the reconciler may write its MachineConfigs by name and nothing else of the kind', () => {
  const part = credentialProviderSystem.reconciler?.({}, CLUSTER);
  const rules = part?.access.flatMap((one) => one.rules) ?? [];
  const writes = rules.filter(({ verbs }) => verbs.includes('patch'));
  assert.ok(writes.some(({ resources }) => resources.includes('machineconfigs')));
  for (const rule of writes)
    assert.ok(rule.resourceNames !== undefined || rule.resources.includes('events'), JSON.stringify(rule));
});

test('the installer is asked for, and may only look', () => {
  const without = credentialProviderSystem.objects({}, CLUSTER);
  assert.ok(without.every(({ kind }) => kind !== 'DaemonSet'));
  const objects = credentialProviderSystem.objects({ installer: { restartWindowSeconds: 60 } }, CLUSTER);
  const rules = objects
    .filter(({ metadata }) => metadata.name === 'pullwright-credential-provider-installer')
    .flatMap((object) => (object['rules'] ?? []) as readonly { verbs: readonly string[] }[]);
  assert.deepEqual(
    rules.flatMap(({ verbs }) => verbs),
    ['get', 'get', 'list', 'watch'],
  );
  const set = objects.find(({ kind }) => kind === 'DaemonSet') as unknown as {
    spec: { template: { spec: { containers: { command: string[] }[] } } };
  };
  const [container] = set.spec.template.spec.containers;
  assert.deepEqual(container?.command.slice(1), ['install-provider', '--root=/host', '--restart-window=60']);
  assert.equal(credentialProviderSystem.check?.({ installer: {} }, CLUSTER).length, 0);
  assert.equal(credentialProviderSystem.check?.({ installer: {} }, { ...CLUSTER, kind: 'hosted' }).length, 1);
});

test('the installer listens on the address of its node only when asked to', () => {
  const of = (installer: object) =>
    JSON.stringify(credentialProviderSystem.objects(schema.parse({ installer, alerts: true }), CLUSTER));
  const closed = of({});
  assert.match(closed, /"host":"127\.0\.0\.1"/);
  assert.doesNotMatch(closed, /PodMonitor|health-address/);
  const open = of({ metrics: true, report: true });
  assert.match(open, /"kind":"PodMonitor"/);
  assert.match(open, /--health-address=\$\(NODE_ADDRESS\)/);
  assert.doesNotMatch(open, /"host":"127\.0\.0\.1"/);
  assert.match(open, /"resources":\["pullstatuses"\]/);
  assert.match(of({ uninstall: true }), /"--uninstall"/);
});

interface Bad extends Case {
  readonly section: unknown;
}

const bad: readonly Bad[] = [
  { name: 'lone star', reason: 'the definition refuses it', section: { matchImages: ['*'] } },
  { name: 'upper case', reason: 'the definition refuses it', section: { matchImages: ['Docker.io'] } },
  { name: 'nothing in the list', reason: 'leave the field out instead', section: { matchImages: [] } },
  { name: 'twice the same', reason: 'the list is a set', section: { matchImages: ['a.io', 'a.io'] } },
  {
    name: 'fifty-one',
    reason: 'fifty at most',
    section: { matchImages: Array.from({ length: 51 }, (_, index) => `r${index}.io`) },
  },
  {
    name: 'a restart window that is none',
    reason: 'all kubelets would restart at once',
    section: { installer: { restartWindowSeconds: -1 } },
  },
  { name: 'unknown field', reason: 'a typing mistake must not pass', section: { matchImage: ['a.io'] } },
  {
    name: 'namespace that is none',
    reason: 'no such namespace exists',
    section: { namespaces: [{ namespace: 'Team_A' }] },
  },
];
table(test, bad, ({ section }) => assert.equal(schema.safeParse(section).success, false));
