/** Deleted objects, their order, and kept objects: for everything that can be rendered, and case by case. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { readFleet, renderFleet, SYSTEMS } from '../../charts/mod.ts';
import { nodesToGo } from '../../runtime/commands/uninstall/carry-out.ts';
import { planUninstall, STAGES } from '../../runtime/commands/uninstall/plan.ts';
import { describeObject, type KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { type Case, table, test } from '../support/suite.ts';

/** Options with which the systems render the most objects. */
const SECTIONS: Readonly<Record<string, unknown>> = {
  'global-pull-secret': {
    createConfigNamespace: true,
    enforce: 'deny',
    agent: { report: true },
    source: { externalSecret: { store: 'vault', key: 'x' } },
  },
  'credential-provider': { crd: true, alerts: true, matchImages: ['a.example.com'], installer: {} },
  'pull-secret-adapter': {
    api: 'https://hyperfleet.example.com',
    jobGoogleServiceAccount: 'pull-secrets@example-project.iam.gserviceaccount.com',
  },
};

function rendered(): readonly KubeObject[] {
  const systems = Object.fromEntries(SYSTEMS.map(({ name }) => [name, SECTIONS[name] ?? {}]));
  const fleet = readFleet({
    image: 'registry.example.com/pullwright:1',
    defaults: { systems: { 'global-pull-secret': {} } },
    clusters: [
      { name: 'every', monitoring: true, systems },
      { name: 'management', kind: 'management', monitoring: true },
      { name: 'hosted', kind: 'hosted', management: 'management' },
    ],
  });
  return [...renderFleet(fleet).tree]
    .filter(([path]) => path.endsWith('.yaml') && !path.endsWith('kustomization.yaml'))
    .map(([, text]) => parse(text) as KubeObject);
}

/** Kept objects: the platform uses the same names, or another owner created them. */
const STAYS: readonly string[] = [
  'Namespace/hyperfleet-system',
  'ExternalSecret/kube-system/additional-pull-secret',
];

test('every object that is rendered is removed, but for what belongs to others', () => {
  const objects = rendered();
  assert.ok(objects.length > 80);
  const removed = new Set(
    planUninstall(objects).stages.flatMap(({ removals }) =>
      removals.map(({ object }) => describeObject(object)),
    ),
  );
  const stays = objects.map(describeObject).filter((name) => !removed.has(name));
  assert.deepEqual([...new Set(stays)].sort(), [...STAYS].sort());
});

test('the order: programs, custom resources, MachineConfigs, nodes, the rest, definitions', () => {
  const { stages } = planUninstall(rendered());
  const names = stages.map(({ name }) => name);
  assert.deepEqual(
    names,
    STAGES.filter((name) => names.includes(name)),
  );
  const at = (kind: string): number =>
    stages.findIndex(({ removals }) => removals.some(({ object }) => object.kind === kind));
  assert.ok(at('Deployment') < at('CRIOCredentialProviderConfig'));
  assert.ok(at('CRIOCredentialProviderConfig') < at('DaemonSet'));
  assert.ok(at('DaemonSet') < at('ClusterRole'));
  assert.ok(at('ClusterRole') < at('CustomResourceDefinition'));
  assert.ok(at('CustomResourceDefinition') < at('Namespace'));
});

const OURS = { labels: { 'app.kubernetes.io/part-of': 'pullwright' } };
const owned = (owner: string) => ({ 'pullwright.dev/owner': owner });

function object(kind: string, name: string, metadata: object = {}, more: object = {}): KubeObject {
  return { apiVersion: 'v1', kind, metadata: { name, ...metadata }, ...more };
}

interface Row extends Case {
  readonly objects: readonly KubeObject[];
  readonly options?: Parameters<typeof planUninstall>[1];
  /** `verb name`, in order. */
  /** @default none */
  readonly removed?: readonly string[];
  readonly kept?: readonly RegExp[];
  readonly delivered?: readonly string[];
}

const CR = object('CRIOCredentialProviderConfig', 'cluster');
const CONFIG = object('ConfigMap', 'provider', {
  namespace: 'clusters',
  labels: owned('credential-provider'),
});
const COPY = object('Secret', 'team', { namespace: 'a', labels: owned('pull-secret-injection') });

const rows: readonly Row[] = [
  {
    name: 'nothing of ours',
    reason: 'Secrets of others are none of our business',
    objects: [object('Secret', 'additional-pull-secret'), object('Node', 'a')],
  },
  {
    name: 'a provider configuration of the Machine Config Operator stays',
    reason: 'deleting it would take the platform its own MachineConfigs',
    objects: [CR],
    kept: [/Machine Config Operator/],
  },
  {
    name: 'ours goes, before the MachineConfig that was made of it',
    reason: 'the requirement wants the object gone before the definition',
    objects: [object('MachineConfig', '97-worker', { labels: owned('credential-provider') }), CR],
    removed: ['delete CRIOCredentialProviderConfig/cluster', 'delete MachineConfig/97-worker'],
  },
  {
    name: 'a ConfigMap that a NodePool refers to stays',
    reason: 'the NodePool would be invalid without it',
    objects: [
      CONFIG,
      object('NodePool', 'np', { namespace: 'clusters' }, { spec: { config: [{ name: 'provider' }] } }),
    ],
    kept: [/NodePool "np" references it/],
  },
  {
    name: 'a NodePool of another namespace does not count',
    reason: 'it means another ConfigMap of the same name',
    objects: [
      CONFIG,
      object('NodePool', 'np', { namespace: 'other' }, { spec: { config: [{ name: 'provider' }] } }),
    ],
    removed: ['delete ConfigMap/clusters/provider'],
  },
  {
    name: 'fields on objects of others are given up',
    reason: 'the Node stays, our label comes off',
    objects: [
      object('Node', 'a', {
        managedFields: [
          { manager: 'pullwright-global-pull-secret', operation: 'Apply' },
          { manager: 'kubelet', operation: 'Update' },
        ],
      }),
    ],
    removed: ['release Node/a'],
  },
  {
    name: 'a status that we wrote is not given up',
    reason: 'a subresource has no fields that an empty apply of the object gives up',
    objects: [
      object('Machine', 'a', {
        managedFields: [{ manager: 'pullwright-x', operation: 'Apply', subresource: 'status' }],
      }),
    ],
  },
  {
    name: 'copies of Secrets go',
    reason: 'they hold credentials',
    objects: [COPY],
    removed: ['delete Secret/a/team'],
  },
  {
    name: 'with --keep-secrets they stay',
    reason: 'pods that are running pull with them',
    objects: [COPY],
    options: { 'keep-secrets': true },
    kept: [/--keep-secrets/],
  },
  {
    name: 'with --skip-nodes a DaemonSet just goes',
    reason: 'nodes that do not answer must not hold up the rest for ever',
    objects: [object('DaemonSet', 'd', { labels: owned('global-pull-secret') })],
    options: { 'skip-nodes': true },
    removed: ['delete DaemonSet/d'],
  },
  {
    name: 'a definition of SidecarSets stays',
    reason: 'its objects are other people’s',
    objects: [object('CustomResourceDefinition', 'sidecarsets.apps.kruise.io', OURS)],
    kept: [/have other owners/],
  },
  {
    name: 'a definition that OpenShift brings stays, whatever its labels say',
    reason: 'a fleet with crd: true was applied to a cluster that has it',
    objects: [
      object('CustomResourceDefinition', 'criocredentialproviderconfigs.config.openshift.io', {
        ...OURS,
        managedFields: [{ manager: 'cluster-version-operator', operation: 'Update' }],
      }),
    ],
    kept: [/Cluster Version Operator/],
  },
  {
    name: 'roles of nodes that the Machine Config Operator keeps stay',
    reason: 'OpenShift has them under the same names, and its own provider needs them',
    objects: [
      object('ClusterRole', 'node-credential-providers', {
        ...OURS,
        managedFields: [{ manager: 'machine-config-operator', operation: 'Update' }],
      }),
    ],
    kept: [/Machine Config Operator/],
  },
  {
    name: 'programs end before policies go',
    reason: 'a reconciler that is ending makes a missing policy again',
    objects: [object('ValidatingAdmissionPolicyBinding', 'b', OURS), object('Deployment', 'd', OURS)],
    removed: ['delete Deployment/d', 'delete ValidatingAdmissionPolicyBinding/b'],
  },
  {
    name: 'a namespace that holds something of others stays',
    reason: 'it would take that with it',
    objects: [object('Namespace', 'openshift-config', OURS)],
    options: { inUse: new Map([['openshift-config', 'Secret/openshift-config/pull-secret']]) },
    kept: [/it contains "Secret\/openshift-config\/pull-secret"/],
  },
  {
    name: 'what Flux and Argo CD deliver is named',
    reason: 'they would bring it back',
    objects: [
      object('DaemonSet', 'd', {
        labels: { 'app.kubernetes.io/part-of': 'pullwright', 'kustomize.toolkit.fluxcd.io/name': 'pw' },
      }),
      object('Role', 'r', {
        ...OURS,
        annotations: { 'argocd.argoproj.io/tracking-id': 'prod:/Role:x/r' },
      }),
    ],
    removed: ['leave-nodes DaemonSet/d', 'delete Role/r'],
    delivered: ['Flux Kustomization "pw"', 'Argo CD Application "prod"'],
  },
];

table(test, rows, ({ objects, options, removed = [], kept = [], delivered = [] }) => {
  const plan = planUninstall(objects, options);
  assert.deepEqual(
    plan.stages.flatMap(({ removals }) => removals.map((one) => `${one.do} ${describeObject(one.object)}`)),
    removed,
  );
  assert.equal(plan.kept.length, kept.length);
  for (const [index, pattern] of kept.entries()) assert.match(plan.kept[index]?.reason ?? '', pattern);
  assert.deepEqual(
    plan.delivered.map(({ by }) => `${by.tool} "${by.name}"`),
    delivered,
  );
});

test('nodesToGo() waits for the controller, for new pods and for readiness', () => {
  const daemonSet = (status: object, generation = 2): KubeObject =>
    object('DaemonSet', 'd', { generation }, { status });
  const all = { observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberReady: 2 };
  assert.equal(nodesToGo(daemonSet(all)), '');
  assert.equal(nodesToGo(daemonSet(all, 3)), 'not yet observed by its controller');
  assert.equal(nodesToGo(daemonSet({ ...all, updatedNumberScheduled: 1 })), '1 of 2 nodes cleaned up');
  assert.equal(nodesToGo(daemonSet({ ...all, numberReady: 0 })), '0 of 2 nodes cleaned up');
  assert.equal(nodesToGo(daemonSet({ observedGeneration: 2 })), '');
});
