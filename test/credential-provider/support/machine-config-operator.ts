/** A cluster with the Machine Config Operator's kinds on a real API server, and a stand-in of the operator. */
import { machineConfig, machineConfigName } from '../../../runtime/credential-provider/objects.ts';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import type { TestObject } from '../../control-plane/resource-path.ts';
import { meta } from '../../support/meta.ts';

const MC_API = 'machineconfiguration.openshift.io/v1';
const MC_PATH = `/apis/${MC_API}/machineconfigs`;
const MERGE = 'application/merge-patch+json';
const CONTROLLER = 'machine-config-controller';

export const CR: TestObject = meta('config.openshift.io/v1 CRIOCredentialProviderConfig', {
  name: 'cluster',
});
const CR_PATH = '/apis/config.openshift.io/v1/criocredentialproviderconfigs/cluster';

/** The rendered object of a pool. */
export function configOf(pool: string): TestObject {
  return { apiVersion: MC_API, kind: 'MachineConfig', metadata: { name: machineConfigName(pool) } };
}

/** Infrastructure of this platform and a built-in pool `worker`. */
export async function furnishPools(plane: ControlPlane, platform: string): Promise<void> {
  const infrastructure = meta('config.openshift.io/v1 Infrastructure', { name: 'cluster' });
  await plane.apply({ ...infrastructure, spec: {} });
  const said = await plane.client.request(
    'PATCH',
    '/apis/config.openshift.io/v1/infrastructures/cluster/status',
    { status: { platform, platformStatus: { type: platform }, infrastructureName: 'test' } },
    MERGE,
  );
  if (said.status >= 300) throw new Error(JSON.stringify(said.body));
  await plane.apply({
    ...meta(`${MC_API} MachineConfigPool`, {
      name: 'worker',
      labels: { 'machineconfiguration.openshift.io/mco-built-in': '' },
    }),
    spec: { nodeSelector: { matchLabels: { 'node-role.kubernetes.io/worker': '' } } },
  });
}

/** Sets the rollout state of the pool. */
export async function rollOut(plane: ControlPlane, isDone: boolean): Promise<void> {
  const lastTransitionTime = new Date().toISOString();
  const condition = {
    type: 'Updated',
    status: isDone ? 'True' : 'False',
    lastTransitionTime,
    reason: '',
    message: '',
  };
  const source = isDone
    ? [{ apiVersion: MC_API, kind: 'MachineConfig', name: machineConfigName('worker') }]
    : [];
  const said = await plane.client.request(
    'PATCH',
    `/apis/${MC_API}/machineconfigpools/worker/status`,
    { status: { conditions: [condition], configuration: { source } } },
    MERGE,
  );
  if (said.status >= 300) throw new Error(JSON.stringify(said.body));
}

/** Adds or changes a node of the pool. */
export async function workerNode(
  plane: ControlPlane,
  name: string,
  minor: number,
  labels: object = {},
): Promise<void> {
  const metadata = { name, labels: { 'node-role.kubernetes.io/worker': '', ...labels } };
  await plane.apply({ apiVersion: 'v1', kind: 'Node', metadata });
  const blank = ['machineID', 'systemUUID', 'bootID', 'kernelVersion', 'osImage', 'kubeProxyVersion'];
  const nodeInfo = {
    ...Object.fromEntries([...blank, 'operatingSystem', 'architecture'].map((field) => [field, ''])),
    kubeletVersion: `v1.${minor}.0`,
    containerRuntimeVersion: `cri-o://1.${minor}.0`,
  };
  const said = await plane.client.request(
    'PATCH',
    `/api/v1/nodes/${name}/status`,
    { status: { nodeInfo } },
    MERGE,
  );
  if (said.status >= 300) throw new Error(JSON.stringify(said.body));
}

/**
 * The operator's sync loop: writes the object's status, and the whole MachineConfig with one annotation when it differs from its
 * own rendering, regardless of other writers.
 */
export class OperatorStandIn {
  readonly #plane: ControlPlane;
  readonly #files: (matchImages: readonly string[]) => readonly { path: string; text: string }[];
  #timer: NodeJS.Timeout | undefined;
  #work = Promise.resolve();
  rounds = 0;
  /** MachineConfigs that it created or replaced. */
  writes = 0;

  constructor(
    plane: ControlPlane,
    files: (matchImages: readonly string[]) => readonly { path: string; text: string }[],
  ) {
    this.#plane = plane;
    this.#files = files;
  }

  start(everyMs: number): void {
    this.#timer = setInterval(() => {
      this.#work = this.#work.then(() => this.#sync()).catch(() => undefined);
    }, everyMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#work;
  }

  async #sync(): Promise<void> {
    const { client } = this.#plane;
    const { status: code, body: object } = await client.request('GET', CR_PATH);
    if (code !== 200) return;
    const matchImages = (object.spec?.matchImages ?? []) as readonly string[];
    await this.#machineConfig(object, matchImages);
    const lastTransitionTime = '2026-01-01T00:00:00Z';
    const well = {
      status: 'True',
      message: 'Success',
      observedGeneration: object.metadata.generation,
      lastTransitionTime,
    };
    const conditions = [
      { type: 'MachineConfigRendered', reason: 'MachineConfigRenderingSucceeded', ...well },
      { type: 'Validated', reason: 'Succeeded', ...well },
    ];
    await client.request(
      'PATCH',
      `${CR_PATH}/status?fieldManager=${CONTROLLER}`,
      { status: { conditions } },
      MERGE,
    );
    this.rounds += 1;
  }

  async #machineConfig(object: TestObject, matchImages: readonly string[]): Promise<void> {
    const { client } = this.#plane;
    const { uid } = object.metadata as unknown as { uid: string };
    const owner = { apiVersion: object.apiVersion, kind: object.kind, name: 'cluster', uid };
    const wanted = machineConfig('worker', this.#files(matchImages), owner);
    const annotations = { 'machineconfiguration.openshift.io/generated-by-controller-version': 'abc' };
    const path = `${MC_PATH}/${wanted.metadata.name}`;
    const { status, body: present } = await client.request('GET', path);
    if (status === 404) {
      const made = { ...wanted, metadata: { ...wanted.metadata, annotations } };
      await client.request('POST', `${MC_PATH}?fieldManager=${CONTROLLER}`, made);
      this.writes += 1;
      return;
    }
    const isSame =
      JSON.stringify(present.spec?.config) ===
        JSON.stringify(wanted.spec && (wanted.spec as { config: unknown }).config) &&
      present.metadata.annotations?.[Object.keys(annotations)[0] ?? ''] === 'abc';
    if (isSame) return;
    const metadata = { ...present.metadata, annotations, ownerReferences: [owner] };
    await client.request('PUT', `${path}?fieldManager=${CONTROLLER}`, {
      ...present,
      metadata,
      spec: wanted.spec,
    });
    this.writes += 1;
  }
}
