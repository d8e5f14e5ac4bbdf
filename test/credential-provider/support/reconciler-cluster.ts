/** A cluster with the real definitions, reconciler processes of the credential provider, and accessors for tests. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { clusterAccess } from '../../../charts/credential-provider/access.ts';
import type { Condition } from '../../../runtime/core/kubernetes/conditions.ts';
import type { EntryStatus } from '../../../runtime/core/kubernetes/pull-status.ts';
import { credentialProviderCrd } from '../../../runtime/credential-provider/kind.ts';
import { type ControlPlane, startControlPlane } from '../../control-plane/control-plane.ts';
import { installCrd } from '../../control-plane/crds.ts';
import { eventually } from '../../control-plane/eventually.ts';
import type { TestObject } from '../../control-plane/resource-path.ts';
import { rightsOf } from '../../control-plane/users.ts';
import { NODE, ReconcilerProcess } from '../../reconcile/process.ts';
import { CR, configOf, furnishPools, type OperatorStandIn } from './machine-config-operator.ts';

/** Longer deadline for busy machines. */
export const SLOW = { withinMs: 60_000, everyMs: 100 };
/** Object in which the reconciler reports. */
export const STATUS: TestObject = {
  apiVersion: 'pullwright.dev/v1alpha1',
  kind: 'PullStatus',
  metadata: { name: 'criocredentialproviderconfig-cluster', namespace: 'openshift-config' },
};

interface Status {
  readonly conditions: readonly Condition[];
  readonly verdicts?: readonly EntryStatus[];
}

/** The cluster and its accessors. */
export class ReconcilerCluster {
  readonly plane: ControlPlane;
  readonly #kubeconfig: string;
  #count = 0;

  private constructor(plane: ControlPlane, kubeconfig: string) {
    this.plane = plane;
    this.#kubeconfig = kubeconfig;
  }

  static async start(): Promise<ReconcilerCluster> {
    const plane = await startControlPlane({
      crds: [
        'infrastructures.config.openshift.io',
        'machineconfigpools.machineconfiguration.openshift.io',
        'machineconfigs.machineconfiguration.openshift.io',
        'pullstatuses.pullwright.dev',
      ],
    });
    await installCrd(plane.client, credentialProviderCrd());
    await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name: 'openshift-config' } });
    const rights = rightsOf(clusterAccess('openshift-config'));
    const user = await plane.user({ name: 'credential-provider', ...rights });
    await furnishPools(plane, 'AWS');
    return new ReconcilerCluster(plane, user.kubeconfig);
  }

  reconciler(mode: 'auto' | 'own'): ReconcilerProcess {
    const config = `${this.plane.folder}/config-${(this.#count += 1)}.yaml`;
    writeFileSync(config, `systems: { credential-provider: { mode: ${mode} } }\n`);
    return new ReconcilerProcess(NODE, [
      `--kubeconfig=${this.#kubeconfig}`,
      `--config=${config}`,
      '--health-port=0',
      '--metrics-port=0',
    ]);
  }

  async entries(...matchImages: readonly string[]): Promise<void> {
    await eventually(() => this.plane.apply({ ...CR, spec: { matchImages } }));
  }

  /** Text of the file that is rendered for the pool; undefined when nothing is. */
  async file(): Promise<string | undefined> {
    const config = (await this.plane.get(configOf('worker'))) as
      | { spec: { config: { storage: { files?: { contents: { source: string } }[] } } } }
      | undefined;
    const source = config?.spec.config.storage.files?.[0]?.contents.source;
    return source === undefined ? undefined : Buffer.from(source.split(',')[1] ?? '', 'base64').toString();
  }

  async #status(ref: TestObject): Promise<Status> {
    return ((await this.plane.get(ref)) as { status?: Status } | undefined)?.status ?? { conditions: [] };
  }

  async condition(type: string, ref: TestObject = CR): Promise<string> {
    const found = (await this.#status(ref)).conditions.find((one) => one.type === type);
    return found === undefined ? 'absent' : `${found.status} ${found.reason}`;
  }

  async verdict(subject: string): Promise<string> {
    const found = (await this.#status(STATUS)).verdicts?.find((one) => one.subject === subject);
    return found === undefined ? 'absent' : `${found.verdict} ${found.reason}`;
  }
}

/** Waits until `read` returns the expected text. */
export async function soon(read: () => Promise<string | undefined>, wanted: string | RegExp): Promise<void> {
  await eventually(async () => {
    const found = (await read()) ?? '';
    if (typeof wanted === 'string') assert.equal(found, wanted);
    else assert.match(found, wanted);
  }, SLOW);
}

/** Waits for further rounds of the stand-in. */
export async function rounds(operator: OperatorStandIn, count: number): Promise<void> {
  const target = operator.rounds + count;
  await eventually(() => assert.ok(operator.rounds >= target, 'the stand-in does not go round'), SLOW);
}

/** Waits for a few rounds without a write of either; returns their numbers of writes. */
export async function settled(
  process: ReconcilerProcess,
  operator: OperatorStandIn,
): Promise<readonly [number, number]> {
  return eventually(async () => {
    const before = [await process.writes(), operator.writes] as const;
    await rounds(operator, 8);
    assert.deepEqual([await process.writes(), operator.writes], before, 'they go on writing');
    return before;
  }, SLOW);
}
