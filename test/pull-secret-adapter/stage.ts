/** Everything around the adapter: a control plane with pods that run, RabbitMQ, the API and Google, each on loopback. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Connection } from 'rabbitmq-client';
import { ADAPTER_ACCOUNT } from '../../charts/pull-secret-adapter/access.ts';
import { adapterInstallation } from '../../charts/pull-secret-adapter/chart.ts';
import { type RabbitMqNode, startRabbitMq } from '../brokers/rabbitmq-node.ts';
import { type ControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { meta } from '../support/meta.ts';
import { RunningProgram } from '../support/running-program.ts';
import { NODE, programOf } from './container.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { SecretManagerDouble } from './doubles/secret-manager.ts';
import { Kubelet } from './kubelet.ts';

export const NAMESPACE = 'hyperfleet-system';
export const QUEUE = 'hyperfleet-clusters-pullsecret';
const IMAGE = 'pullwright:test';

interface Parts {
  readonly plane: ControlPlane;
  readonly rabbit: RabbitMqNode;
  readonly api: HyperfleetDouble;
  readonly gcp: SecretManagerDouble;
}

export class Stage {
  readonly plane: ControlPlane;
  readonly rabbit: RabbitMqNode;
  readonly api: HyperfleetDouble;
  readonly gcp: SecretManagerDouble;
  readonly kubelet: Kubelet;
  /** A connection of the test's own; it is killed along with the broker, and comes back by itself. */
  readonly probe: Connection;
  readonly #programs: RunningProgram[] = [];
  readonly #shared: readonly string[];
  /** Kubeconfig of the adapter's ServiceAccount. */
  readonly kubeconfig: string;

  private constructor(parts: Parts, jobs: readonly string[], kubeconfig: string) {
    const { plane, rabbit, api, gcp } = parts;
    this.plane = plane;
    this.rabbit = rabbit;
    this.api = api;
    this.gcp = gcp;
    this.kubeconfig = kubeconfig;
    const urlFile = join(plane.folder, 'broker-url');
    writeFileSync(urlFile, rabbit.url, { mode: 0o600 });
    this.#shared = ['--api', api.url, '--broker-url-file', urlFile];
    this.kubelet = new Kubelet(plane, NAMESPACE, programOf(jobs));
    this.probe = new Connection({ url: rabbit.url, retryHigh: 1000 });
    this.probe.on('error', () => undefined);
  }

  /** @param jobs program that the pods run */
  static async start(jobs: readonly string[] = NODE): Promise<Stage> {
    const [plane, rabbit] = await Promise.all([
      startControlPlane({ controllerManager: true }),
      startRabbitMq(),
    ]);
    const [api, gcp] = [await HyperfleetDouble.start(), await SecretManagerDouble.start()];
    await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
    const objects = adapterInstallation({
      image: IMAGE,
      api: api.url,
      replicas: 0,
      jobGoogleServiceAccount: 'job@mgmt.iam.gserviceaccount.com',
      adapterOptions: { jobEnv: gcp.jobEnv },
      alerts: false,
    });
    for (const object of objects) await plane.apply(object);
    const kubeconfig = await plane.account(NAMESPACE, ADAPTER_ACCOUNT);
    return new Stage({ plane, rabbit, api, gcp }, jobs, kubeconfig);
  }

  /** Runs a command that speaks with the API and the broker. */
  run(program: readonly string[], args: readonly string[]): RunningProgram {
    const started = new RunningProgram([...program, ...args, ...this.#shared]);
    this.#programs.push(started);
    return started;
  }

  /** Output of the started programs. */
  get output(): string {
    return this.#programs.map(({ log }) => log).join('');
  }

  adapter(program: readonly string[], flags: Readonly<Record<string, string>> = {}): RunningProgram {
    const all = {
      '--kubeconfig': this.kubeconfig,
      // Same image as the Deployment: policies require it for the Jobs.
      '--image': IMAGE,
      '--health-port': 'off',
      '--metrics-port': 'off',
      // Prevents sweeps, so that only events trigger a reconcile.
      '--sweep': '100000',
      '--repeat': '0',
      ...flags,
    };
    const env = Object.entries(this.gcp.jobEnv).flatMap(([key, value]) => ['--job-env', `${key}=${value}`]);
    return this.run(program, ['adapter', ...Object.entries(all).flat(), ...env]);
  }

  /** A cluster and the namespace of its hosted control plane. */
  async add(id: string, spec: Record<string, unknown>): Promise<void> {
    await this.plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: `clusters-${id}` } });
    this.api.add(id, spec);
  }

  /** Number of consumers at the broker, so that a state from before a restart does not count. */
  async consumers(): Promise<number> {
    return (await this.probe.queueDeclare({ queue: QUEUE, passive: true })).consumerCount;
  }

  /** Messages that wait in a queue; 0 when there is no such queue. */
  async waiting(queue: string = QUEUE): Promise<number> {
    return (await this.probe.queueDeclare({ queue, durable: true })).messageCount;
  }

  /** Contents of the versions of a cluster's secret at Google, oldest first; undefined when there is no secret. */
  stored(id: string): readonly string[] | undefined {
    const secret = this.gcp.secrets.get(`projects/cust-proj/secrets/hyperfleet-${id}-pull-secret`);
    return secret?.versions.map((version) => version.data.toString());
  }

  /** Text of the pull secret that HyperShift reads; undefined when there is none. */
  async delivered(id: string): Promise<string | undefined> {
    const found = await this.plane.get(
      meta('v1 Secret', { name: 'pull-secret', namespace: `clusters-${id}` }),
    );
    const data = (found as { readonly data?: Record<string, string> } | undefined)?.data;
    const text = data?.['.dockerconfigjson'];
    return text === undefined ? undefined : Buffer.from(text, 'base64').toString();
  }

  /** Status and reason of a condition of the last report. */
  condition(id: string, type: string): string {
    const found = this.api.last(id)?.conditions.find((one) => one.type === type);
    return `${found?.status} ${found?.reason}`;
  }

  async close(): Promise<void> {
    await this.probe.close();
    await this.kubelet.stop();
    await this.rabbit.stop();
    await this.api.close();
    await this.gcp.close();
    await this.plane.stop();
  }
}
