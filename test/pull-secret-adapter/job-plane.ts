/** A control plane with the Job's identity and the rights of the charts, Google's double, running pods, and an audit log. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JOB_ACCOUNT } from '../../charts/pull-secret-adapter/access.ts';
import { adapterInstallation } from '../../charts/pull-secret-adapter/chart.ts';
import { Redacted, reveal } from '../../runtime/core/redacted.ts';
import { bindingObject, dataSecret, jobObject } from '../../runtime/pull-secret-adapter/adapter/resources.ts';
import { clusterDocument, type HyperfleetCluster } from '../../runtime/pull-secret-adapter/cluster.ts';
import { type AdapterSettings, DEFAULT_SETTINGS } from '../../runtime/pull-secret-adapter/options.ts';
import { type ControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { SecretManagerDouble } from './doubles/secret-manager.ts';
import { Kubelet } from './kubelet.ts';
import { pullSecret } from './run-job.ts';

export const NAMESPACE = 'hyperfleet-system';

/** One request of the Job's identity. */
export interface AuditLine {
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
}

export class JobPlane {
  readonly plane: ControlPlane;
  readonly gcp: SecretManagerDouble;
  readonly kubelet: Kubelet;
  /** Kubeconfig of the Job's ServiceAccount. */
  readonly kubeconfig: string;
  readonly #audit: string;

  private constructor(plane: ControlPlane, gcp: SecretManagerDouble, kubeconfig: string, audit: string) {
    this.plane = plane;
    this.gcp = gcp;
    this.kubeconfig = kubeconfig;
    this.#audit = audit;
    this.kubelet = new Kubelet(plane, NAMESPACE);
  }

  /** @param ids clusters that have a management namespace */
  static async start(ids: readonly string[]): Promise<JobPlane> {
    const audit = join(tmpdir(), `pullwright-audit-${process.pid}`);
    writeFileSync(`${audit}.yaml`, AUDIT_POLICY);
    const apiServerFlags = [`--audit-policy-file=${audit}.yaml`, `--audit-log-path=${audit}.log`];
    const plane = await startControlPlane({ controllerManager: true, apiServerFlags });
    for (const name of [NAMESPACE, ...ids.map((id) => `clusters-${id}`)])
      await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    for (const object of INSTALLATION) await plane.apply(object);
    const gcp = await SecretManagerDouble.start();
    return new JobPlane(plane, gcp, await plane.account(NAMESPACE, JOB_ACCOUNT), audit);
  }

  async stop(): Promise<void> {
    await this.kubelet.stop();
    await this.gcp.close();
    await this.plane.stop();
    for (const end of ['yaml', 'log']) rmSync(`${this.#audit}.${end}`, { force: true });
  }

  /** The right to write in the management namespace of a cluster. */
  async bind(id: string): Promise<void> {
    const subject = { cluster: clusterOf(id), settings: DEFAULT_SETTINGS };
    await this.plane.apply(plain(bindingObject(subject, `clusters-${id}`)));
  }

  /** Does what the adapter does to start a Job; gives its name. */
  async startJob(id: string, more: Partial<AdapterSettings> = {}): Promise<string> {
    const settings = { ...DEFAULT_SETTINGS, jobEnv: this.gcp.jobEnv, ...more };
    const subject = { cluster: clusterOf(id), settings };
    const name = `pullsecret-${id}-gen1`;
    await this.plane.apply(plain(dataSecret(subject, undefined)));
    const step = { job: name, purpose: 'store', attempt: 1, places: [] } as const;
    const job = await this.plane.apply(plain(jobObject(subject, step)));
    const uid = String(job.metadata['uid']);
    await this.plane.apply(plain(dataSecret(subject, { name, uid })));
    return name;
  }

  /** `Complete` or `Failed: <reason>`, once the Job controller has said so. */
  async verdict(name: string): Promise<string> {
    let said = '';
    await eventually(async () => {
      const job = await this.plane.get(jobNamed(name));
      const { conditions = [] } = (job?.['status'] ?? {}) as JobStatus;
      const end = conditions.find(
        ({ type, status }) => /^(Complete|Failed)$/.test(type) && status === 'True',
      );
      assert.ok(end, JSON.stringify(job?.['status']));
      said = end.type === 'Failed' ? `Failed: ${end.reason}` : end.type;
    });
    return said;
  }

  /** Exit codes of the pods of a Job, in order. */
  exitCodes(job: string): readonly number[] {
    return this.kubelet.runs.filter((run) => run.pod.startsWith(job)).map((run) => run.code);
  }

  /** Requests of the Job's identity to the API server. */
  audit(): readonly AuditLine[] {
    if (!existsSync(`${this.#audit}.log`)) return [];
    return readFileSync(`${this.#audit}.log`, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as AuditLine)
      .filter((line) => line.user.username === `system:serviceaccount:${NAMESPACE}:${JOB_ACCOUNT}`);
  }
}

interface JobStatus {
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason?: string;
  }[];
}

const AUDIT_POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata, omitStages: [RequestReceived]}]
`;

const INSTALLATION = adapterInstallation({
  image: 'pullwright:test',
  api: 'https://hyperfleet.example.com',
  replicas: 0,
  jobGoogleServiceAccount: 'job@mgmt.iam.gserviceaccount.com',
  alerts: false,
});

export function jobNamed(name: string): TestObject {
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace: NAMESPACE } };
}

export function secretNamed(namespace: string, name: string): TestObject {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace } };
}

function clusterOf(id: string): HyperfleetCluster {
  const spec = { provider: 'gcp', gcp: { projectId: 'cust-proj' }, pullSecret: { data: pullSecret(id) } };
  return clusterDocument.parse({ id, name: id, generation: 1, spec });
}

/** Object as the adapter sends it: secrets in clear text. */
function plain(value: unknown): TestObject {
  return clear(value) as TestObject;
}

function clear(value: unknown): unknown {
  if (value instanceof Redacted) return reveal(value as Redacted<string>);
  if (Array.isArray(value)) return value.map(clear);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]): [string, unknown] => [key, clear(one)]));
}
