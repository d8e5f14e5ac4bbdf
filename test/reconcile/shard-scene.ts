/** A management cluster, hosted clusters that write down who writes to them, and replicas that run as the fleet renders them. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { HostedStub } from '../../bench/hosted-stub.ts';
import { readFleet, renderFleet } from '../../charts/mod.ts';
import { shardLease, shardOf } from '../../runtime/rules/kubernetes/shards.ts';
import { type ControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { controlPlaneNamespace, hostedControlPlane } from '../support/hypershift.ts';
import { ReconcilerProcess } from './process.ts';
import { pullSecret } from './scene.ts';

const NAMESPACE = 'pullwright-system';
const ACCOUNT = 'pullwright-reconciler';
const RENDERED = ['Namespace', 'ServiceAccount', 'Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'];

/** A Lease of a shard, as it is now. */
export interface ShardState {
  /** Name of the replica; empty when nobody has it. */
  readonly holder: string;
  /** How often it went from one to another. */
  readonly transitions: number;
}

export class ShardScene {
  readonly shards: number;
  readonly clusters: readonly string[];
  readonly management: ControlPlane;
  readonly stub: HostedStub;
  readonly #args: readonly string[];
  readonly #kubeconfig: string;
  #rotating: Promise<void> | undefined;
  #rotations = 0;
  #started = 0;

  private constructor(parts: {
    readonly shards: number;
    readonly clusters: readonly string[];
    readonly management: ControlPlane;
    readonly stub: HostedStub;
    readonly args: readonly string[];
    readonly kubeconfig: string;
  }) {
    this.shards = parts.shards;
    this.clusters = parts.clusters;
    this.management = parts.management;
    this.stub = parts.stub;
    this.#args = parts.args;
    this.#kubeconfig = parts.kubeconfig;
  }

  /** Hosted clusters are called `hosted-0` and so on; the account of the replicas has the rights that are rendered, and no other. */
  static async start(input: { readonly shards: number; readonly clusters: number }): Promise<ShardScene> {
    const { shards } = input;
    const [management, stub] = await Promise.all([
      startControlPlane({
        crds: [
          'hostedcontrolplanes.hypershift.openshift.io',
          'hostedclusters.hypershift.openshift.io',
          'nodepools.hypershift.openshift.io',
          'machines.cluster.x-k8s.io',
        ],
      }),
      HostedStub.start(),
    ]);
    const objects = rendered(shards);
    for (const object of objects.filter(({ kind }) => RENDERED.includes(kind)))
      await management.apply(object);
    const clusters = Array.from({ length: input.clusters }, (_, at) => `hosted-${at}`);
    const args = argsOf(objects, `${management.folder}/config.yaml`);
    writeFileSync(`${management.folder}/config.yaml`, configOf(objects));
    const kubeconfig = await management.account(NAMESPACE, ACCOUNT);
    const scene = new ShardScene({ shards, clusters, management, stub, args, kubeconfig });
    for (const name of clusters) await scene.declare(name);
    return scene;
  }

  /** Declares the hosted cluster, with the kubeconfig of itself or of another one. */
  async declare(name: string, leadsTo: string = name): Promise<void> {
    const { management, stub } = this;
    const namespace = controlPlaneNamespace(name);
    await management.client.request('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    await management.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'pullwright-kubeconfig', namespace },
      data: { kubeconfig: Buffer.from(stub.kubeconfigOf(leadsTo)).toString('base64') },
    });
    await management.apply(pullSecret('pull-secret', namespace, ['quay.io']));
    await management.apply(hostedControlPlane(name));
  }

  /** Starts a replica with the arguments of the Deployment, and more. */
  replica(
    program: readonly string[],
    more: readonly string[] = [],
  ): ReconcilerProcess & { readonly name: string } {
    const name = `replica-${this.#started++}`;
    const args = [`--kubeconfig=${this.#kubeconfig}`, ...this.#args, ...more];
    return Object.assign(new ReconcilerProcess(program, args, { HOSTNAME: name }), { name });
  }

  /** Changes the pull secret of each hosted cluster again and again, so that whoever looks after it has to write there. */
  rotate(): void {
    const round = async (): Promise<void> => {
      const registries = ['quay.io', `round-${this.#rotations++}.example.com`];
      for (const name of this.clusters)
        await this.management.apply(pullSecret('pull-secret', controlPlaneNamespace(name), registries));
      if (this.#rotating !== undefined) await round();
    };
    this.#rotating = Promise.resolve();
    this.#rotating = round();
  }

  async rest(): Promise<void> {
    const last = this.#rotating;
    this.#rotating = undefined;
    await last;
  }

  async states(): Promise<readonly ShardState[]> {
    const leases = await Promise.all(
      Array.from({ length: this.shards }, (_, shard) => this.management.get(leaseRef(shardLease(shard)))),
    );
    return leases.map((lease) => ({
      holder: String(lease?.['spec']?.holderIdentity ?? '').split('_')[0] ?? '',
      transitions: Number(lease?.['spec']?.leaseTransitions ?? 0),
    }));
  }

  /** How many writes each replica has sent to any hosted cluster. */
  writesOf(replica: string): number {
    return this.clusters.flatMap((name) => this.writers(name)).filter((one) => one === replica).length;
  }

  /** Whoever wrote to the hosted cluster, in order. */
  writers(cluster: string): readonly string[] {
    return (this.stub.writers.get(cluster) ?? []).map((agent) => /\((.*)\)$/.exec(agent)?.[1] ?? agent);
  }

  /** Fails where the writers of a cluster took turns more often than the Lease of its shard changed hands. */
  async assertOneWriterAtATime(): Promise<void> {
    const states = await this.states();
    for (const name of this.clusters) {
      const writers = this.writers(name);
      const turns = writers.filter((writer, at) => writer !== writers[at - 1]);
      const { transitions = 0 } = states[shardOf(`clusters/${name}`, this.shards)] ?? {};
      assert.ok(
        turns.length <= transitions + 1,
        `${name} was written to by ${turns.join(', ')} in turns, and its Lease changed hands ${transitions} times`,
      );
    }
  }

  async stop(): Promise<void> {
    await this.rest();
    await this.stub.stop();
    await this.management.stop();
  }
}

export function leaseRef(name: string): TestObject {
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace: NAMESPACE } };
}

function rendered(shards: number): readonly TestObject[] {
  const fleet = readFleet({
    image: 'registry.example.com/pullwright:1',
    clusters: [
      {
        name: 'hub',
        kind: 'management',
        discovery: true,
        reconciler: { replicas: 3, shards, allowAddresses: ['127.0.0.0/8'] },
        systems: { 'global-pull-secret': {} },
      },
    ],
  });
  return [...renderFleet(fleet).tree].flatMap(([path, text]) =>
    path.endsWith('kustomization.yaml') ? [] : [parse(text) as TestObject],
  );
}

/** Of the Deployment, with free ports and a Lease that a busy machine renews in time. */
function argsOf(objects: readonly TestObject[], config: string): readonly string[] {
  const deployment = objects.find(({ kind }) => kind === 'Deployment');
  const args = deployment?.['spec'].template.spec.containers[0].args as readonly string[];
  assert.ok(args.includes('--discover'));
  return args
    .filter((arg) => !/^--(?:config|health-port|metrics-port)=/.test(arg))
    .concat(`--config=${config}`, '--health-port=0', '--metrics-port=0', '--lease-duration=15');
}

function configOf(objects: readonly TestObject[]): string {
  const config = objects.find(
    ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-config'),
  );
  const { 'config.yaml': text = '' } = (config?.['data'] ?? {}) as Record<string, string>;
  assert.notEqual(text, '');
  return text;
}
