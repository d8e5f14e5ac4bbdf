/** The objects of the global pull secret, field by field where a field is a promise. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { PodSpec } from '../../runtime/core/kubernetes/objects.ts';
import { agentOptions } from '../../runtime/global-pull-secret/agent/command.ts';
import {
  additionalSecretPolicies,
  agentBounds,
  agentCommand,
  agentDaemonSet,
  agentPodMonitor,
  agentRbac,
  syncObjects,
  upstreamDaemonSet,
} from '../../runtime/global-pull-secret/daemon-set.ts';
import type { AgentOptions } from '../../runtime/global-pull-secret/options.ts';
import { test } from '../support/suite.ts';

const image = 'registry.example.com/pullwright:0.1.0';

function podOf(options: Partial<AgentOptions> = {}): PodSpec {
  const spec = agentDaemonSet({ image, ...options }).spec as { template: { spec: PodSpec } };
  return spec.template.spec;
}

const containerOf = (options: Partial<AgentOptions> = {}): PodSpec['containers'][number] => {
  const [container] = podOf(options).containers;
  assert.ok(container !== undefined);
  return container;
};

const flagsOf = (options: Partial<AgentOptions>): ReturnType<typeof agentOptions> =>
  agentOptions(agentCommand({ image, ...options }).slice(2), { NODE_NAME: 'worker-1' });

test('readiness asks over HTTP on loopback, at the port that the agent serves and the pod declares', () => {
  for (const healthPort of [undefined, 10_001]) {
    const options = healthPort === undefined ? {} : { healthPort };
    const { readinessProbe, livenessProbe, ports } = containerOf(options);
    const port = flagsOf(options).healthPort;
    assert.deepEqual(readinessProbe?.httpGet, {
      path: '/readyz',
      port,
      host: flagsOf(options).healthAddress,
    });
    assert.deepEqual(
      ports?.map(({ hostPort }) => hostPort),
      [port],
    );
    // Who else holds the port must not end the agent.
    assert.equal(livenessProbe, undefined);
  }
});

test('metrics: a port with TLS where Prometheus reaches it, and a PodMonitor that verifies it', () => {
  const metrics = { tlsSecret: 'agent-tls' };
  const { ports, volumeMounts, command } = containerOf({ metrics });
  const monitor = JSON.stringify(agentPodMonitor(metrics));
  assert.ok(command?.includes('--metrics-address=$(NODE_ADDRESS)'));
  assert.equal(flagsOf({ metrics }).metricsPort, ports?.find(({ name }) => name === 'metrics')?.hostPort);
  assert.ok(volumeMounts?.some(({ mountPath }) => mountPath === flagsOf({ metrics }).metricsTlsDir));
  assert.match(monitor, /"scheme":"https".*"serverName":"global-pull-secret-syncer.kube-system.svc"/);
  assert.doesNotMatch(monitor, /insecureSkipVerify/);
});

test('every option reaches the agent, which understands its whole command line', () => {
  const flags = flagsOf({
    foreign: 'keep',
    restart: 'on-removal',
    restartWindow: '1m30s',
    logLevel: 'debug',
    janitor: true,
    report: false,
  });
  assert.equal(flags.report, false);
  assert.equal(flags.foreign, 'keep');
  assert.equal(flags.restart, 'on-removal');
  assert.equal(flags.windowMs, 90_000);
  assert.equal(flags.logLevel, 'debug');
});

test('paths that the agent reads and writes are the ones that are mounted', () => {
  const mounts = containerOf({ janitor: true }).volumeMounts ?? [];
  const flags = flagsOf({ janitor: true });
  assert.ok(mounts.some(({ mountPath }) => mountPath === flags.janitorFolder));
  for (const file of [flags.globalFile, flags.originalFile, flags.file, flags.busSocket, flags.stateDir]) {
    const mount = mounts.find((one) => file.startsWith(`${one.mountPath}/`));
    assert.ok(mount !== undefined, `${file} is not mounted`);
    assert.equal(mount.readOnly ?? false, mount.mountPath.startsWith('/etc/'), file);
  }
});

test('there is a token only where something asks the API server, and the rights are by name', () => {
  const quiet = { watch: false, restartWindow: '5m', report: false } as const;
  assert.equal(podOf(quiet).automountServiceAccountToken, false);
  for (const asks of [{ watch: true }, { restartWindow: 'auto' }, { report: true }] as const)
    assert.equal(podOf({ ...quiet, ...asks }).automountServiceAccountToken, true);
  assert.equal(podOf({ watch: false, restart: 'never', report: false }).automountServiceAccountToken, false);
  const rules = (options: Parameters<typeof agentRbac>[0]): readonly string[] =>
    agentRbac(options).flatMap(({ metadata, ...object }) =>
      ((object['rules'] as Record<string, string[]>[]) ?? []).map(({ resources, resourceNames, verbs }) =>
        [metadata.namespace, resources, resourceNames, verbs].join(' '),
      ),
    );
  assert.deepEqual(rules({ report: false }), [
    'kube-system secrets original-pull-secret,global-pull-secret get,list,watch',
    'kube-system leases global-pull-secret-syncer-turns get,update',
    'kube-system daemonsets global-pull-secret-syncer get',
    'openshift-config secrets pull-secret get',
  ]);
  assert.deepEqual(rules({ watch: false, restart: 'never', report: false }), [
    'kube-system secrets original-pull-secret,global-pull-secret get',
    'openshift-config secrets pull-secret get',
  ]);
});

test('reports take a token, rights of their own, and a policy that binds them to the node; they are on by default', () => {
  const quiet = { watch: false, restartWindow: '5m' } as const;
  assert.equal(podOf(quiet).automountServiceAccountToken, true);
  const more = agentRbac({}).filter(({ kind }) => kind.startsWith('ClusterRole'));
  assert.deepEqual(
    more.map(({ kind }) => kind),
    ['ClusterRole', 'ClusterRoleBinding'],
  );
  const none = JSON.stringify([...agentRbac({ report: false }), ...agentBounds({ report: false })]);
  assert.doesNotMatch(none, /ClusterRole|pullstatuses|events/);
  assert.deepEqual(agentBounds({ shape: 'upstream' }), []);
  assert.match(
    JSON.stringify(agentBounds({})),
    /system:serviceaccount:kube-system:global-pull-secret-syncer/,
  );
});

test('restricted takes an SELinux type', () => {
  const { securityContext } = containerOf({ security: 'restricted', seLinuxType: 'spc_t' });
  assert.deepEqual(securityContext?.['seLinuxOptions'], { type: 'spc_t' });
});

test('nodes beside the eligible ones are reached by an affinity instead of the selector', () => {
  assert.deepEqual(podOf().nodeSelector, { 'hypershift.openshift.io/nodepool-globalps-enabled': 'true' });
  const pod = podOf({ alsoNodes: [{ 'karpenter.sh/nodepool': 'default' }] });
  assert.equal(pod.nodeSelector, undefined);
  const text = JSON.stringify(pod.affinity);
  assert.match(text, /nodepool-globalps-enabled/);
  assert.match(text, /karpenter\.sh\/nodepool/);
});

test('admission warns and audits; deny adds a policy that refuses; off has none', () => {
  const actions = (objects: readonly KubeObject[]): unknown =>
    objects
      .filter((object) => object.kind === 'ValidatingAdmissionPolicyBinding')
      .map((object) => (object.spec as { validationActions: unknown }).validationActions);
  assert.deepEqual(actions(additionalSecretPolicies('warn')), [['Warn', 'Audit']]);
  assert.deepEqual(actions(additionalSecretPolicies('deny')), [['Warn', 'Audit'], ['Deny']]);
  assert.deepEqual(additionalSecretPolicies('off'), []);
});

test("upstream's shape needs to know the content", () => {
  assert.throws(
    () => syncObjects({ image, shape: 'upstream' }, 'warn'),
    /the hash of the content is missing/,
  );
  const [account] = agentRbac({ shape: 'upstream' });
  assert.equal(account?.['automountServiceAccountToken'], undefined);
  const state = { configHash: 'aaaaaaaa', merged: true };
  assert.equal(upstreamDaemonSet({ image }, state).metadata.labels, undefined);
});
