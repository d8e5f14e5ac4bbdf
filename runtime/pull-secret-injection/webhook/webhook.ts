/** The webhook as a running thing: caches of what the plan needs, and the handler over them. */
import { once } from 'node:events';
import { ClusterCache } from '../../controller/cluster-cache.ts';
import type { Read, World } from '../../controller/contract.ts';
import type { Source } from '../../controller/source.ts';
import { kindKey } from '../../controller/store.ts';
import { worldView } from '../../controller/world.ts';
import type { KubeClient } from '../../kube/client.ts';
import { GRANT_KIND } from '../../rules/injection/pull-secret-grant.ts';
import type { Labels } from '../../rules/kubernetes/label-selector.ts';
import type { AdmissionAnswer, AdmissionRequest } from '../../webhook/admission-review.ts';
import type { InjectionOptions } from '../options.ts';
import { pullSecretInjection } from '../reconciler/reconciler.ts';
import { namespaceLabels, planIn } from '../reconciler/view.ts';
import { admitPod, isNewPod, policyInjects } from './admit-pod.ts';

/** A namespace that was made a moment ago is asked for; no pod waits longer than this for the answer. */
const LOOKUP_MS = 1000;

/** What only distribution looks at. The pod that answers admission reads no Secret: whoever got hold of it would have them all. */
const REPORTS: ReadonlySet<string> = new Set(['PullStatus', 'EndpointSlice', 'Secret', GRANT_KIND]);

export class InjectionWebhook {
  readonly #client: KubeClient;
  readonly #options: InjectionOptions;
  readonly #cache: ClusterCache;
  readonly #sources: readonly Source[];
  readonly #world: World;
  #plan: ReturnType<typeof planIn> | undefined;

  constructor(client: KubeClient, options: InjectionOptions) {
    this.#client = client;
    this.#options = options;
    this.#cache = new ClusterCache(client);
    const all = pullSecretInjection({ ...options, audit: false }).reads;
    const reads: readonly Read[] = all.filter(({ kind }) => !REPORTS.has(kind));
    const sources = reads.map(({ role: _role, optional: _optional, ...selection }) =>
      this.#cache.source(selection),
    );
    this.#sources = sources;
    this.#world = worldView({
      scope: { name: 'local', controlPlaneNamespace: '' },
      now: new Date(0),
      stores: { hosted: this.#cache.store, management: this.#cache.store },
      reads,
      serves: (_role, kind) =>
        sources.some(({ selection, status }) => kindKey(selection) === kind && status.is === 'synced'),
      fact: () => undefined,
    });
    for (const source of sources)
      source.subscribe(({ kind }) => {
        if (kind !== 'Namespace' && kind !== 'ServiceAccount') this.#plan = undefined;
      });
  }

  /** What is still to be read, for `/readyz`; undefined when all is there. */
  get waitingFor(): string | undefined {
    const waiting = this.#sources.find(({ status }) => status.is === 'new');
    return waiting === undefined ? undefined : `${waiting.selection.kind} is not read yet`;
  }

  /** Resolves once all is read, or when `signal` says that nobody waits any more. */
  async synced(signal: AbortSignal): Promise<void> {
    await Promise.race([
      ...(signal.aborted ? [Promise.resolve()] : [once(signal, 'abort')]),
      new Promise<void>((resolve) => {
        const look = (): void => {
          if (this.waitingFor === undefined) resolve();
        };
        for (const source of this.#sources) source.onStatus(look);
        look();
      }),
    ]);
  }

  /** Answers one request. */
  async admit(request: AdmissionRequest): Promise<AdmissionAnswer> {
    if (!isNewPod(request) || policyInjects(this.#world)) return { outcome: 'skipped' };
    this.#plan ??= planIn(this.#world, this.#options);
    const namespace = request.namespace ?? 'default';
    return admitPod(this.#world, {
      pod: request.object,
      namespace,
      namespaceLabels: await this.#labelsOf(namespace),
      plan: this.#plan,
      options: this.#options,
    });
  }

  close(): void {
    this.#cache.close();
  }

  async #labelsOf(name: string): Promise<Labels | undefined> {
    const ref = { apiVersion: 'v1', kind: 'Namespace', name };
    const known = this.#world.get({ role: 'hosted', ...ref });
    if (known !== undefined) return namespaceLabels(known);
    const late = new Promise<undefined>((resolve) => {
      setTimeout(() => resolve(undefined), LOOKUP_MS).unref();
    });
    const found = await Promise.race([this.#client.get(ref).catch(() => undefined), late]);
    return found === undefined ? undefined : namespaceLabels(found);
  }
}
