/** For tests of the way out: a cluster with everything, a stand-in for the kubelet, and a run that is killed in the middle. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readFleet, renderFleet, SYSTEMS, writeTree } from '../../charts/mod.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import { additional, GLOBAL, platform, registriesOf } from '../reconcile/scene.ts';
import { meta } from '../support/meta.ts';
import { RunningProgram } from '../support/running-program.ts';

export const LABEL = 'hypershift.openshift.io/nodepool-globalps-enabled';
export const NODE_REF: TestObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-a' } };
export const MACHINE_CONFIG: TestObject = meta('machineconfiguration.openshift.io/v1 MachineConfig', {
  name: '97-worker-generated-credentialproviderconfig',
});
const CR: TestObject = meta('config.openshift.io/v1 CRIOCredentialProviderConfig', { name: 'cluster' });

/** Every system, one node, and a reconciler that has done its work and ended. */
export async function everySystem(plane: ControlPlane, kubelet: StandIn): Promise<void> {
  const systems = Object.fromEntries(SYSTEMS.map(({ name }) => [name, {}]));
  const fleet = readFleet({
    image: 'registry.example.com/pullwright:1',
    clusters: [
      {
        name: 'every',
        path: '.',
        systems: {
          ...systems,
          'global-pull-secret': { createConfigNamespace: true },
          'credential-provider': { crd: true },
          'pull-secret-adapter': {
            api: 'https://hyperfleet.example.com',
            jobGoogleServiceAccount: 'pull-secrets@example-project.iam.gserviceaccount.com',
          },
        },
      },
    ],
  });
  const folder = join(plane.folder, 'manifests');
  writeTree(folder, renderFleet(fleet).tree);
  await eventually(async () => {
    const applied = await plane.kubectl('apply', '--server-side', '-k', folder);
    assert.equal(applied.code, 0, applied.stderr);
  });
  await plane.apply({
    ...meta('scheduling.k8s.io/v1 PriorityClass', { name: 'openshift-user-critical' }),
    value: 1_000_000,
  });
  // A kubelet says what it runs on; without it a node is none that a selector of Linux nodes finds.
  await plane.apply({ ...NODE_REF, metadata: { name: 'node-a', labels: { 'kubernetes.io/os': 'linux' } } });
  await plane.client.request(
    'PATCH',
    '/api/v1/nodes/node-a/status',
    {
      status: {
        nodeInfo: { kubeletVersion: 'v1.34.0', containerRuntimeVersion: 'cri-o://1.34.0' },
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    },
    'application/merge-patch+json',
  );
  await plane.apply(
    {
      ...NODE_REF,
      metadata: { name: 'node-a', labels: { 'node-role.kubernetes.io/worker': '', [LABEL]: 'true' } },
    },
    'pullwright-global-pull-secret',
  );
  await plane.apply(platform('quay.io'));
  await plane.apply(additional('tenant.example.com'));
  await plane.apply({
    ...meta('machineconfiguration.openshift.io/v1 MachineConfigPool', {
      name: 'worker',
      labels: { 'machineconfiguration.openshift.io/mco-built-in': '' },
    }),
    spec: { nodeSelector: { matchLabels: { 'node-role.kubernetes.io/worker': '' } } },
  });
  await eventually(() => plane.apply({ ...CR, spec: { matchImages: ['mirror.example.com'] } }));
  kubelet.start();
  const config = join(plane.folder, 'config.yaml');
  const map = await plane.get(
    meta('v1 ConfigMap', { name: 'pullwright-reconciler-config', namespace: 'pullwright-system' }),
  );
  writeFileSync(config, String(map?.['data']['config.yaml']));
  const reconciler = new ReconcilerProcess(NODE, [
    `--kubeconfig=${plane.kubeconfig}`,
    `--config=${config}`,
    '--lease-namespace=pullwright-system',
  ]);
  try {
    await eventually(async () =>
      assert.deepEqual(registriesOf(await plane.get(GLOBAL)), ['quay.io', 'tenant.example.com']),
    );
  } catch (error) {
    throw new Error(`${String(error)}\n${reconciler.log.slice(-3000)}`, { cause: error });
  }
  assert.equal(await reconciler.stop(), 0);
  // The object that the reconciler creates if permitted; permissions are not tested here.
  const labels = { 'pullwright.dev/owner': 'credential-provider' };
  const spec = { config: { ignition: { version: '3.5.0' } } };
  await plane.apply({ ...MACHINE_CONFIG, metadata: { ...MACHINE_CONFIG.metadata, labels }, spec });
}

/** Pods become ready, and go when they are deleted, as if a kubelet looked after them. */
export class StandIn {
  readonly #plane: ControlPlane;
  readonly #pods: string;
  readonly #over = new AbortController();
  #work: Promise<void> = Promise.resolve();
  /** Pods whose container was told to uninstall, in the order in which they became ready. */
  readonly left: string[] = [];

  /** @param pods path of those that it looks after */
  constructor(plane: ControlPlane, pods = '/api/v1/namespaces/kube-system/pods') {
    this.#plane = plane;
    this.#pods = pods;
  }

  start(): void {
    this.#work = this.#run(this.#over.signal);
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#work;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#pass();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  async #pass(): Promise<void> {
    const { client } = this.#plane;
    const { body } = await client.request('GET', this.#pods);
    for (const pod of body.items ?? []) {
      const path = `/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}`;
      if (pod.metadata.deletionTimestamp !== undefined)
        await client.request('DELETE', path, { gracePeriodSeconds: 0 });
      else if (pod.status?.phase !== 'Running') {
        const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
        await client.request('PATCH', `${path}/status`, { status }, 'application/merge-patch+json');
        if (pod.spec.containers[0].command?.includes('--uninstall') === true)
          this.left.push(pod.metadata.name);
      }
    }
  }
}

export interface Ended {
  readonly killed: boolean;
  readonly code: number | null;
  readonly stderr: string;
}

/** Runs `uninstall --yes` and kills it when it has removed `count` objects; adds what it removed to `order`. */
export async function killedAfter(kubeconfig: string, count: number, order: string[]): Promise<Ended> {
  const run = new RunningProgram([...NODE, 'uninstall', '--kubeconfig', kubeconfig, '--yes']);
  const removed = (): readonly string[] =>
    [...run.log.matchAll(/^\[\d+\/\d+\] [a-z ]+: ((?:removed|released) .*)\n/gm)].map(
      ([, what = '']) => what,
    );
  run.process.stderr?.on('data', () => {
    if (removed().length >= count) run.process.kill('SIGKILL');
  });
  const code = await run.ended();
  order.push(...removed());
  return { killed: run.process.signalCode === 'SIGKILL', code, stderr: run.log };
}
