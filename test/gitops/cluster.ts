/**
 * A cluster that a GitOps tool delivers to: pods become ready as if kubelets looked after them, and the program of the reconciler's
 * Deployment runs, with the configuration and the account that were delivered, whenever the Deployment asks for it.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import { meta } from '../support/meta.ts';
import { StandIn } from '../uninstall/scene.ts';

const OWN = { name: 'pullwright-reconciler', namespace: 'pullwright-system' };
const DEPLOYMENT: TestObject = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: OWN };
const CONFIG: TestObject = meta('v1 ConfigMap', { ...OWN, name: 'pullwright-reconciler-config' });

export class DeliveredCluster {
  readonly plane: ControlPlane;
  readonly #kubelet: StandIn;
  readonly #over = new AbortController();
  #work: Promise<void> = Promise.resolve();
  #program: { readonly of: string; readonly process: ReconcilerProcess } | undefined;
  /** While true, no pod of the reconciler comes up. */
  #isHeld = false;

  private constructor(plane: ControlPlane) {
    this.plane = plane;
    this.#kubelet = new StandIn(plane, '/api/v1/pods');
  }

  static async start(): Promise<DeliveredCluster> {
    const cluster = new DeliveredCluster(await startControlPlane({ controllerManager: true }));
    await cluster.plane.apply(meta('v1 Node', { name: 'node-a', labels: { 'kubernetes.io/os': 'linux' } }));
    const status = {
      nodeInfo: { kubeletVersion: 'v1.34.0', containerRuntimeVersion: 'cri-o://1.34.0' },
      conditions: [{ type: 'Ready', status: 'True' }],
    };
    const type = 'application/merge-patch+json';
    await cluster.plane.client.request('PATCH', '/api/v1/nodes/node-a/status', { status }, type);
    cluster.#kubelet.start();
    cluster.#work = cluster.#run(cluster.#over.signal);
    return cluster;
  }

  /** Log of the reconciler since its last start. */
  get log(): string {
    return this.#program?.process.log ?? 'the reconciler does not run';
  }

  /** Ends the reconciler, and keeps it from coming back until `resume`. */
  async hold(): Promise<void> {
    this.#isHeld = true;
    await this.#end();
  }

  resume(): void {
    this.#isHeld = false;
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#work;
    await this.#end();
    await this.#kubelet.stop();
    await this.plane.stop();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (!this.#isHeld) await this.#follow();
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }

  /** Starts the program that the Deployment asks for now; ends one that it no longer asks for. */
  async #follow(): Promise<void> {
    const [deployment, config] = await Promise.all([this.plane.get(DEPLOYMENT), this.plane.get(CONFIG)]);
    const wanted =
      deployment === undefined || config === undefined
        ? undefined
        : JSON.stringify([deployment['spec'].template, config['data']]);
    if (this.#program?.of === wanted && (wanted === undefined || this.#program?.process.running === true))
      return;
    await this.#end();
    if (wanted === undefined || config === undefined) return;
    const file = join(this.plane.folder, 'reconciler.yaml');
    writeFileSync(file, String(config['data']['config.yaml']));
    const kubeconfig = await this.plane.account(OWN.namespace, OWN.name);
    const args = [`--kubeconfig=${kubeconfig}`, `--config=${file}`, `--lease-namespace=${OWN.namespace}`];
    this.#program = { of: wanted, process: new ReconcilerProcess(NODE, args) };
  }

  async #end(): Promise<void> {
    await this.#program?.process.stop();
    this.#program = undefined;
  }
}
