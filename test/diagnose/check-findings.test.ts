/** Findings of a cluster before an installation, and of the installation after it. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { judge } from '../../runtime/diagnose/checks/findings.ts';
import { AFTER_CHECKS, BEFORE_CHECKS, type CheckInput } from '../../runtime/diagnose/checks/installation.ts';
import type { StatusRow } from '../../runtime/diagnose/checks/status.ts';
import type { Finding, Severity } from '../../runtime/diagnose/model/types.ts';
import { type Case, table, test } from '../support/suite.ts';

const NOTHING: CheckInput = {
  objects: [],
  plan: [],
  systems: [],
  nodes: 'linux',
  live: true,
  serverVersion: 'v1.36.0',
  rights: [],
  rows: [],
};
const object = (
  ...[apiVersion, kind, name, more = {}, namespace]: readonly [
    apiVersion: string,
    kind: string,
    name: string,
    more?: object,
    namespace?: string,
  ]
): KubeObject => ({
  apiVersion,
  kind,
  ...more,
  metadata: {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(more as Partial<KubeObject>).metadata,
  },
});
const crd = (
  name: string,
  versions: readonly string[],
  properties: object = {},
  status?: object,
): KubeObject =>
  object('apiextensions.k8s.io/v1', 'CustomResourceDefinition', name, {
    spec: {
      group: name.slice(name.indexOf('.') + 1),
      names: { kind: 'Thing' },
      versions: versions.map((version) => ({
        name: version,
        served: true,
        schema: { openAPIV3Schema: { properties } },
      })),
    },
    ...(status === undefined ? {} : { status }),
  });
const node = (
  name: string,
  {
    labels = { 'kubernetes.io/os': 'linux' },
    annotations = {},
    runtime = 'containerd://2.1',
    kubelet = 'v1.36.0',
  }: {
    labels?: Readonly<Record<string, string>>;
    annotations?: Readonly<Record<string, string>>;
    runtime?: string;
    kubelet?: string;
  } = {},
): KubeObject =>
  object('v1', 'Node', name, {
    metadata: { name, labels, annotations },
    status: { nodeInfo: { containerRuntimeVersion: runtime, kubeletVersion: kubelet } },
  });
const namespace = (name: string, labels: Record<string, string> = {}): KubeObject =>
  object('v1', 'Namespace', name, { metadata: { name, labels } });
const MCO: Readonly<Record<string, string>> = {
  'machineconfiguration.openshift.io/currentConfig': 'rendered-worker-1',
};
const agent = (spec: object = {}, status?: object): KubeObject =>
  object(
    'apps/v1',
    'DaemonSet',
    'agent',
    {
      spec: {
        template: {
          spec: {
            serviceAccountName: 'agent',
            containers: [{ name: 'a', securityContext: { privileged: true } }],
            ...spec,
          },
        },
      },
      ...(status === undefined ? {} : { status }),
    },
    'kube-system',
  );
const policy = (kind: string, status?: object): KubeObject =>
  object('admissionregistration.k8s.io/v1', kind, 'p', {
    spec: {},
    ...(status === undefined ? {} : { status }),
  });
const scc = (users: readonly string[]): KubeObject =>
  object('security.openshift.io/v1', 'SecurityContextConstraints', 'privileged', {
    allowPrivilegedContainer: true,
    users,
  });
const image = (name: string): object => ({
  spec: { template: { spec: { containers: [{ image: `ghcr.io/x/${name}:1` }] } } },
});

interface Row extends Case {
  readonly input: Partial<CheckInput>;
  readonly check: string;
  readonly severity: Severity;
  readonly says: RegExp;
  readonly fix?: RegExp;
}
const row = (
  ...[name, input, [check, severity], says, fix]: readonly [
    name: string,
    input: Partial<CheckInput>,
    outcome: readonly [string, Severity],
    says: RegExp,
    fix?: RegExp,
  ]
): Row => ({
  name,
  reason: 'what to do depends on it',
  input,
  check,
  severity,
  says,
  ...(fix === undefined ? {} : { fix }),
});

const GLOBAL = { systems: ['global-pull-secret'] } as const;

const before: readonly Row[] = [
  row(
    'an old API server',
    { serverVersion: 'v1.29.4', plan: [policy('ValidatingAdmissionPolicy')] },
    ['kubernetes', 'error'],
    /is v1\.29\.4; 1\.30 or newer is required for ValidatingAdmissionPolicy/,
    /Upgrade/,
  ),
  row(
    'one that lacks mutating policies',
    { serverVersion: 'v1.35.0', plan: [policy('MutatingAdmissionPolicy')] },
    ['kubernetes', 'error'],
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
    ['kubernetes', 'warning'],
    /newest release that is tested is 1\.36/,
  ),
  row('a version that nobody can read', { serverVersion: 'main' }, ['kubernetes', 'warning'], /is unknown/),
  row(
    'a definition that is not there',
    { plan: [crd('things.x.io', ['v1'])] },
    ['crds', 'ok'],
    /not installed yet/,
  ),
  row(
    'a definition of older versions',
    { plan: [crd('things.x.io', ['v2'])], objects: [crd('things.x.io', ['v1'])] },
    ['crds', 'error'],
    /does not serve v2/,
    /crds/,
  ),
  row(
    'a definition with another schema',
    {
      plan: [crd('things.x.io', ['v1'], { spec: { properties: { a: {} } } })],
      objects: [crd('things.x.io', ['v1'], { spec: {} })],
    },
    ['crds', 'warning'],
    /a different schema/,
  ),
  row(
    'the same definition',
    { plan: [crd('things.x.io', ['v1'])], objects: [crd('things.x.io', ['v1'])] },
    ['crds', 'ok'],
    /as rendered/,
  ),
  row(
    'a namespace that nobody brings',
    { plan: [object('v1', 'ConfigMap', 'c', { metadata: { name: 'c', namespace: 'openshift-config' } })] },
    ['namespaces', 'error'],
    /openshift-config is not found/,
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
    ['kinds', 'error'],
    /PodMonitor of monitoring\.coreos\.com/,
    /overlays\/monitoring/,
  ),
  row(
    'the same of a folder',
    { live: false, plan: [object('monitoring.coreos.com/v1', 'PodMonitor', 'm')] },
    ['kinds', 'warning'],
    /the folder has no CustomResourceDefinition/,
  ),
  row(
    'a priority class that is not there',
    { plan: [agent({ priorityClassName: 'openshift-user-critical' })] },
    ['priority-class', 'error'],
    /pods that name it are rejected/,
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
      ['other-operators', 'warning'],
      new RegExp(`^${tool} is installed \\(${one.kind} `),
      /./,
    ),
  ),
  row(
    'an object of somebody else',
    { plan: [agent()], objects: [agent()] },
    ['foreign-objects', 'warning'],
    /DaemonSet\/kube-system\/agent exists and is not managed/,
  ),
  row(
    'an account without rights',
    {
      rights: [
        { verb: 'create', group: 'apps', resource: 'daemonsets', namespace: 'kube-system', allowed: false },
      ],
    },
    ['rights', 'error'],
    /may not create daemonsets\.apps in kube-system/,
    /--as/,
  ),
  row(
    'an account with them',
    { rights: [{ verb: 'create', group: '', resource: 'secrets', allowed: true }] },
    ['rights', 'ok'],
    /all 1 kinds/,
  ),
  row(
    'a namespace that refuses the agent',
    {
      plan: [agent()],
      objects: [namespace('kube-system', { 'pod-security.kubernetes.io/enforce': 'baseline' })],
    },
    ['pod-security', 'error'],
    /enforces "baseline"/,
    /kubectl label namespace kube-system/,
  ),
  row(
    'one that lets it in',
    { plan: [agent()], objects: [namespace('kube-system')] },
    ['pod-security', 'ok'],
    /admits it/,
  ),
  row(
    'OpenShift, without constraints for the account',
    { plan: [agent()], objects: [namespace('kube-system'), scc([])] },
    ['scc', 'error'],
    /may not use the privileged/,
    /oc adm policy add-scc-to-user privileged -z agent -n kube-system/,
  ),
  row(
    'OpenShift, with them',
    { plan: [agent()], objects: [scc(['system:serviceaccount:kube-system:agent'])] },
    ['scc', 'ok'],
    /may use/,
  ),
  row(
    'OpenShift, in a namespace of run level 0',
    { plan: [agent()], objects: [namespace('kube-system', { 'openshift.io/run-level': '0' }), scc([])] },
    ['scc', 'ok'],
    /run level/,
  ),
  row('no node', GLOBAL, ['eligible-nodes', 'warning'], /has no node/),
  row(
    'Linux nodes of a stand-alone cluster',
    { ...GLOBAL, objects: [node('a'), node('w', { labels: { 'kubernetes.io/os': 'windows' } })] },
    ['eligible-nodes', 'ok'],
    /1 of 2 nodes/,
  ),
  row(
    'nodes of pools without the label',
    { ...GLOBAL, nodes: 'pools', objects: [node('a')] },
    ['eligible-nodes', 'warning'],
    /yet: the reconciler sets the label .* of NodePools with upgradeType Replace/,
    /"nodes"/,
  ),
  row(
    'nodes that the fleet does not select',
    { ...GLOBAL, nodes: [{ key: 'pool', operator: 'In', values: ['x'] }], objects: [node('a')] },
    ['eligible-nodes', 'error'],
    /none has "nodes"/,
  ),
  row(
    'nodes of the Machine Config Operator alone',
    { ...GLOBAL, objects: [node('a', { annotations: MCO })] },
    ['eligible-nodes', 'error'],
    /manages all of them/,
    /openshift-config\/pull-secret/,
  ),
  row(
    'the Machine Config Operator',
    { objects: [node('a', { annotations: MCO })] },
    ['machine-config-operator', 'warning'],
    /manages 1 node \(a\)/,
  ),
  row(
    'the provider on containerd',
    { systems: ['credential-provider'], objects: [node('a')] },
    ['runtime', 'error'],
    /1 of 1 node does not run CRI-O \(a\)/,
  ),
  row(
    'the provider on CRI-O',
    { systems: ['credential-provider'], objects: [node('a', { runtime: 'cri-o://1.36.0' })] },
    ['runtime', 'ok'],
    /cri-o:\/\/1\.36/,
  ),
  row(
    'the provider on old kubelets',
    {
      systems: ['credential-provider'],
      objects: [node('a', { runtime: 'cri-o://1.33.0', kubelet: 'v1.33.1' })],
    },
    ['kubelet', 'error'],
    /older than 1\.34 \(a\)/,
  ),
  row(
    'HyperShift',
    {
      objects: [
        object(
          'apps/v1',
          'DaemonSet',
          'global-pull-secret-syncer',
          {
            metadata: {
              name: 'global-pull-secret-syncer',
              namespace: 'kube-system',
              managedFields: [{ manager: 'hosted-cluster-config-operator-manager', operation: 'Update' }],
            },
          },
          'kube-system',
        ),
      ],
    },
    ['hypershift', 'warning'],
    /Pullwright only observes it/,
    /mode: own/,
  ),
];

const READY = { observedGeneration: 1, desiredNumberScheduled: 2, numberReady: 2 };
const hook = (clientConfig: object): KubeObject =>
  object('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration', 'w', {
    metadata: { name: 'w', labels: { 'app.kubernetes.io/part-of': 'pullwright' } },
    webhooks: [{ clientConfig }],
  });
const slice = (ready: boolean): KubeObject =>
  object('discovery.k8s.io/v1', 'EndpointSlice', 'e', {
    metadata: { name: 'e', namespace: 'n', labels: { 'kubernetes.io/service-name': 's' } },
    endpoints: [{ conditions: { ready } }],
  });
const HOOK = hook({ caBundle: 'Q0E=', service: { namespace: 'n', name: 's' } });
const bindingOf = (kind: string): KubeObject =>
  object('admissionregistration.k8s.io/v1', `${kind}Binding`, 'b', { spec: { policyName: 'p' } });
const VALIDATING = 'ValidatingAdmissionPolicy';
const after: readonly Row[] = [
  row(
    'an object that is not there',
    { plan: [agent()] },
    ['objects', 'error'],
    /1 of 1 object of the plan is.*DaemonSet\/kube-system\/agent/,
    /synth/,
  ),
  row(
    'all objects',
    { plan: [agent()], objects: [agent()] },
    ['objects', 'ok'],
    /the object of the plan exists/,
  ),
  row(
    'a definition that is not served',
    {
      plan: [crd('a.x.io', ['v1'])],
      objects: [
        crd(
          'a.x.io',
          ['v1'],
          {},
          { conditions: [{ type: 'Established', status: 'False', message: 'names conflict' }] },
        ),
      ],
    },
    ['crds', 'error'],
    /names conflict/,
  ),
  row(
    'one that is',
    {
      plan: [crd('a.x.io', ['v1'])],
      objects: [crd('a.x.io', ['v1'], {}, { conditions: [{ type: 'Established', status: 'True' }] })],
    },
    ['crds', 'ok'],
    /is served/,
  ),
  row(
    'a workload that nobody has looked at',
    { plan: [agent()], objects: [agent()] },
    ['workloads', 'error'],
    /not been reconciled/,
  ),
  row(
    'a DaemonSet without nodes',
    { plan: [agent()], objects: [agent({}, { ...READY, desiredNumberScheduled: 0 })] },
    ['workloads', 'error'],
    /expects no pod: no node is eligible/,
    /check --pre/,
  ),
  row(
    'pods that are not ready',
    { plan: [agent()], objects: [agent({}, { ...READY, numberReady: 1 })] },
    ['workloads', 'error'],
    /1 of 2 pods/,
    /doctor --all/,
  ),
  row('pods that are', { plan: [agent()], objects: [agent({}, READY)] }, ['workloads', 'ok'], /all 2 pods/),
  row(
    'a policy without a binding',
    { plan: [policy(VALIDATING)], objects: [policy(VALIDATING)] },
    ['admission', 'error'],
    /rejects nothing/,
  ),
  row(
    'a policy that is not understood',
    {
      plan: [policy(VALIDATING)],
      objects: [policy(VALIDATING, { typeChecking: { expressionWarnings: [{}] } }), bindingOf(VALIDATING)],
    },
    ['admission', 'error'],
    /expressions that the API server rejects/,
  ),
  row(
    'a policy that nobody has checked',
    { plan: [policy(VALIDATING)], objects: [policy(VALIDATING), bindingOf(VALIDATING)] },
    ['admission', 'warning'],
    /not checked/,
  ),
  row(
    'a policy that works',
    {
      plan: [policy(VALIDATING)],
      objects: [policy(VALIDATING, { observedGeneration: 1 }), bindingOf(VALIDATING)],
    },
    ['admission', 'ok'],
    /is bound/,
  ),
  row(
    'a webhook without a CA',
    { objects: [hook({ service: { namespace: 'n', name: 's' } })] },
    ['admission', 'error'],
    /no caBundle/,
  ),
  row(
    'a webhook without a pod',
    { objects: [HOOK, slice(false)] },
    ['admission', 'error'],
    /without a ready pod: n\/s/,
  ),
  row('a webhook that answers', { objects: [HOOK, slice(true)] }, ['admission', 'ok'], /has a CA/),
];

const judgedBefore = (input: Partial<CheckInput>) => judge(BEFORE_CHECKS, { ...NOTHING, ...input });
const judged = (input: Partial<CheckInput>) => judge(AFTER_CHECKS, { ...NOTHING, ...input });

for (const [rows, findings] of [
  [before, judgedBefore],
  [after, judged],
] as const)
  table(test, rows, ({ input, check, severity, says, fix }) => {
    const found: readonly Finding[] = findings(input).filter((one) => one.check === check);
    const one = found.find(({ message }) => says.test(message));
    assert.ok(one, JSON.stringify(found));
    assert.equal(one.severity, severity);
    if (fix !== undefined) assert.match(one.advice ?? '', fix);
  });

test('of a folder the version and the rights are not known, and that is said', () => {
  const { serverVersion: _version, rights: _rights, ...folder } = { ...NOTHING, live: false };
  const lines = judge(BEFORE_CHECKS, folder);
  assert.match(lines.find(({ check }) => check === 'kubernetes')?.message ?? '', /unknown in a folder/);
  assert.match(lines.find(({ check }) => check === 'rights')?.message ?? '', /not checked/);
});

test('what reports by conditions counts: trouble fails, work in progress warns, silence is not taken for health', () => {
  const reported = (state: StatusRow['state']): StatusRow => ({
    check: 'R',
    severity: 'unknown',
    subject: 'PullStatus/a/b',
    reporter: 's',
    state,
    message: 'm',
  });
  const severities = (...rows: readonly StatusRow[]) =>
    judged({ rows }).flatMap(({ check, severity }) => (check === 'status' ? severity : []));
  assert.deepEqual(severities(reported('Ready'), reported('Attention'), reported('Progressing')), [
    'ok',
    'error',
    'warning',
  ]);
  assert.deepEqual(severities(), ['warning']);
});
