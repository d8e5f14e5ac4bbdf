/**
 * A stand-in for HyperShift's operator in a hosted cluster: it makes the objects of its global pull secret as the real one does, by
 * get, change and update, under the same field manager, with every pass.
 *
 * Source: `globalps` of HyperShift, as recorded in the conformance cases; the DaemonSet is the one that those cases hold.
 */

import { redact } from '../../runtime/core/redacted.ts';
import { upstreamDaemonSet } from '../../runtime/global-pull-secret/daemon-set.ts';
import { configHash } from '../../runtime/global-pull-secret/eligibility.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { resourcePath, type TestObject } from '../control-plane/resource-path.ts';

const MANAGER = 'hosted-cluster-config-operator-manager';
const KEY = '.dockerconfigjson';
export const OPERATOR_IMAGE = 'quay.example.com/hypershift/control-plane-operator:1';

type Auths = Readonly<Record<string, unknown>>;

const inKubeSystem = (apiVersion: string, kind: string, name: string): TestObject => ({
  apiVersion,
  kind,
  metadata: { name, namespace: 'kube-system' },
});

export class HostedClusterConfigOperator {
  readonly #hosted: ControlPlane;
  readonly #platform: () => Promise<TestObject | undefined>;
  /** Objects that it made or changed. */
  writes = 0;

  /** @param platform reads `pull-secret` of the control plane's namespace */
  constructor(hosted: ControlPlane, platform: () => Promise<TestObject | undefined>) {
    this.#hosted = hosted;
    this.#platform = platform;
  }

  /** One pass, in the operator's order. */
  async pass(): Promise<void> {
    await this.#upsert(inKubeSystem('v1', 'ServiceAccount', 'global-pull-secret-syncer'));
    const original = textOf(await this.#platform());
    if (original === undefined) throw new Error('failed to get original pull secret');
    const tenant = textOf(await this.#hosted.get(inKubeSystem('v1', 'Secret', 'additional-pull-secret')));
    const global = inKubeSystem('v1', 'Secret', 'global-pull-secret');
    const merged = tenant === undefined ? undefined : merge(original, tenant);
    await this.#upsert({ ...inKubeSystem('v1', 'Secret', 'original-pull-secret'), data: dataOf(original) });
    if (merged === undefined) await this.#hosted.remove(global);
    else await this.#upsert({ ...global, type: 'kubernetes.io/dockerconfigjson', data: dataOf(merged) });
    const state = { merged: merged !== undefined, configHash: configHash(redact(merged ?? original)) };
    await this.#upsert(upstreamDaemonSet({ image: OPERATOR_IMAGE }, state));
  }

  /** Same as `CreateOrUpdate`: sends an update only when the object differs. */
  async #upsert(wanted: TestObject): Promise<void> {
    const { client } = this.#hosted;
    const path = resourcePath(wanted);
    const live = await this.#hosted.get(wanted);
    if (live === undefined) {
      const folder = path.slice(0, path.lastIndexOf('/'));
      await this.#send(() => client.request('POST', `${folder}?fieldManager=${MANAGER}`, wanted));
      return;
    }
    const { type: _type, metadata: _metadata, ...content } = wanted;
    const next = { ...live, ...content };
    const dry = await client.request('PUT', `${path}?fieldManager=${MANAGER}&dryRun=All`, next);
    if (isSame(dry.body as TestObject, live)) return;
    await this.#send(() => client.request('PUT', `${path}?fieldManager=${MANAGER}`, next));
  }

  async #send(request: () => Promise<{ readonly status: number; readonly body: unknown }>): Promise<void> {
    const { status, body } = await request();
    // Conflict with another writer: the next pass reads the object again.
    if (status === 409) return;
    if (status >= 300) throw new Error(`the operator was refused: ${status} ${JSON.stringify(body)}`);
    this.writes += 1;
  }
}

function isSame(a: TestObject, b: TestObject): boolean {
  const content = ({ data, spec }: TestObject): string => JSON.stringify([data, spec]);
  return content(a) === content(b);
}

function textOf(secret: TestObject | undefined): string | undefined {
  const value: unknown = secret?.['data']?.[KEY];
  return typeof value === 'string' ? Buffer.from(value, 'base64').toString() : undefined;
}

function dataOf(text: string): Readonly<Record<string, string>> {
  return { [KEY]: Buffer.from(text).toString('base64') };
}

/** Keys as texts, the platform's entry whole, sorted; only `auths` is left. */
function merge(original: string, tenant: string): string {
  const auths = { ...authsOf(tenant), ...authsOf(original) };
  const sorted = Object.keys(auths)
    .sort()
    .map((key) => [key, auths[key]] as const);
  return JSON.stringify({ auths: Object.fromEntries(sorted) });
}

function authsOf(text: string): Auths {
  return (JSON.parse(text) as { auths: Auths }).auths;
}
