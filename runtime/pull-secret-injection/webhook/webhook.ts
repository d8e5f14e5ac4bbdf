/** The running webhook: caches of the plan's inputs, and the request handler. */

import { once } from 'node:events';
import type { CommandIo } from '../../cli/command.ts';
import type { Labels } from '../../core/kubernetes/label-selector.ts';
import { createLogger } from '../../core/logger.ts';
import { VERSION } from '../../core/version.ts';
import { ClusterCache, type Source } from '../../engine/cache.ts';
import type { Reader, Watch } from '../../engine/contract.ts';
import { createMetrics, servePorts } from '../../engine/metrics.ts';
import { kindKey, worldView } from '../../engine/store.ts';
import type { KubeClient } from '../../kube/client.ts';
import { HttpKubeClient } from '../../kube/http-client.ts';
import { loadConnection } from '../../kube/kubeconfig.ts';
import { readPair } from '../../node/https.ts';
import { GRANT_KIND } from '../kinds/grant.ts';
import { DEFAULT_OPTIONS, exemptionOf, type InjectionOptions } from '../options.ts';
import {
  INJECTED_ANNOTATION,
  type InjectionPlan,
  injectedText,
  type LocalObjectReference,
  mergeImagePullSecrets,
  patchImagePullSecrets,
  patchInjectedText,
  planInjection,
} from '../plan/plan.ts';
import { refusesNames } from '../reconciler/accounts.ts';
import { policyObjects, policyVersion } from '../reconciler/admission.ts';
import { isActive } from '../reconciler/pods.ts';
import { pullSecretInjection } from '../reconciler/reconcile.ts';
import { namespaceLabels, planIn } from '../reconciler/view.ts';
import type { WebhookFlags } from './command.ts';
import { type AdmissionAnswer, type AdmissionRequest, serveWebhook, type WebhookServer } from './server.ts';

// Decision for a pod at creation, from the same plan that the admission policy is compiled from.

/** The pod as the API server sends it. */
export interface AdmittedPod {
  readonly metadata?: {
    readonly labels?: Labels;
    readonly annotations?: Readonly<Record<string, unknown>>;
    readonly deletionTimestamp?: string;
  };
  readonly spec?: {
    readonly imagePullSecrets?: readonly LocalObjectReference[];
    readonly serviceAccountName?: string;
  };
  readonly status?: { readonly phase?: string };
}

/** Reports whether the request creates a pod; all others are ignored. */
export function isNewPod({ operation, resource, subResource }: AdmissionRequest): boolean {
  return operation === 'CREATE' && resource.resource === 'pods' && (subResource ?? '') === '';
}

export interface AdmissionInput {
  readonly pod: AdmittedPod;
  readonly namespace: string;
  /**
   * Undefined for an unknown namespace: profiles then match as if it had no labels; SidecarSets with a namespaceSelector do not.
   */
  readonly namespaceLabels: Labels | undefined;
  readonly plan: InjectionPlan;
  readonly options: InjectionOptions;
}

export type PodAnswer = Required<AdmissionAnswer>;

const SKIPPED: PodAnswer = { outcome: 'skipped', patch: [], warnings: [] };

/** Reports whether our admission policy is active: the webhook then skips every pod, so that no profile is applied twice. */
function policyInjects(reader: Reader): boolean {
  return policyVersion(reader) !== undefined && policyObjects(reader).every((object) => object !== undefined);
}

/** Decides for one pod. */
export function admitPod(
  reader: Reader,
  { pod, namespace, namespaceLabels, plan, options }: AdmissionInput,
): PodAnswer {
  const { metadata: { labels = {}, annotations } = {}, spec = {} } = pod;
  const seen = { namespace, namespaceLabels, labels, annotations: annotations ?? {} };
  if (!isActive(pod) || exemptionOf(seen, options) !== undefined) return SKIPPED;
  const planned = planInjection(plan, seen);
  if (planned.names.length === 0) return { ...SKIPPED, outcome: 'unchanged' };
  const { imagePullSecrets: own = [], serviceAccountName: account = 'default' } = spec;
  const merged = mergeImagePullSecrets(own, planned.names);
  const { added } = merged;
  if (refusesNames(reader, namespace, account, merged.merged)) {
    const warning = `pull secrets ${added.join(', ')} are not added: service account "${account}" enforces mountable secrets; list them there`;
    return { ...SKIPPED, warnings: added.length === 0 ? [] : [warning] };
  }
  const patch = [...patchImagePullSecrets(own, merged)];
  if (added.length > 0) {
    const text = injectedText(planned.by, added, annotations?.[INJECTED_ANNOTATION]);
    patch.push(patchInjectedText(annotations, text));
  }
  return { outcome: patch.length === 0 ? 'unchanged' : 'injected', patch, warnings: [] };
}

/** Timeout for reading a new namespace from the API server during admission. */
const LOOKUP_MS = 1000;

/** Kinds that only distribution reads. The webhook reads no Secrets: if it were compromised, it would expose them all. */
const REPORTS: ReadonlySet<string> = new Set(['PullStatus', 'EndpointSlice', 'Secret', GRANT_KIND]);

export class InjectionWebhook {
  readonly #client: KubeClient;
  readonly #options: InjectionOptions;
  readonly #cache: ClusterCache;
  readonly #sources: readonly Source[];
  readonly #world: Reader;
  #plan: ReturnType<typeof planIn> | undefined;

  constructor(client: KubeClient, options: InjectionOptions) {
    this.#client = client;
    this.#options = options;
    this.#cache = new ClusterCache(client);
    const all = pullSecretInjection({ ...options, audit: false }).watches;
    const reads: readonly Watch[] = all.filter(({ kind }) => !REPORTS.has(kind));
    const sources = reads.map(({ role: _role, optional: _optional, ...selection }) =>
      this.#cache.source(selection),
    );
    this.#sources = sources;
    this.#world = worldView({
      scope: { name: 'local', controlPlaneNamespace: '' },
      now: new Date(0),
      stores: { hosted: this.#cache.store, management: this.#cache.store },
      reads,
      serves: (kind) =>
        sources.some(
          ({ selection, status }) => kindKey(selection) === kindKey(kind) && status.is === 'synced',
        ),
    });
    for (const source of sources)
      source.subscribe(({ kind }) => {
        if (kind !== 'Namespace' && kind !== 'ServiceAccount') this.#plan = undefined;
      });
  }

  /** The kind that is not synced yet, for `/readyz`; undefined when all are. */
  get waitingFor(): string | undefined {
    const waiting = this.#sources.find(({ status }) => status.is === 'new');
    return waiting === undefined ? undefined : `${waiting.selection.kind} is not read yet`;
  }

  /** Resolves once all caches are synced, or when `signal` aborts. */
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

// Assembles the webhook and runs it until the signal.

/** Serves until the signal; resolves with the exit code 0. */
export async function runWebhook(
  settings: WebhookFlags & { readonly 'cert-dir': string },
  { stdout, env, signal }: Pick<CommandIo, 'stdout' | 'env' | 'signal'>,
): Promise<0> {
  const log = createLogger({
    write: (line) => stdout.write(line),
    format: settings['log-format'],
    level: () => settings['log-level'],
  });
  const metrics = createMetrics();
  const connection = await loadConnection(settings.kubeconfig, env);
  const client = new HttpKubeClient({ connection, userAgent: `pullwright-webhook/${VERSION}` });
  const webhook = new InjectionWebhook(client, {
    ...DEFAULT_OPTIONS,
    ownNamespace: settings.namespace,
    excludedNamespaces: settings.exclude ?? [],
    withoutContainers: settings['without-containers'],
    admission: 'webhook',
  });
  const folder = settings['cert-dir'];
  const files = { certificate: `${folder}/tls.crt`, key: `${folder}/tls.key` };
  const port = settings['health-port'];
  let closeProbes: (() => Promise<unknown>) | undefined;
  let server: WebhookServer | undefined;
  try {
    // Report unusable certificate files before waiting for the caches.
    await readPair(files);
    closeProbes = await servePorts(
      { health: port, metrics: port },
      {
        ready: () => webhook.waitingFor ?? (server === undefined ? 'not listening yet' : server.trouble()),
        metrics: () => metrics.render(),
      },
    );
    // Listen only once the caches are synced: partial caches would give wrong answers. Until then the pod is not ready, so the
    // Service does not route to it. A direct call is refused and the pod admitted (failurePolicy: Ignore).
    if (webhook.waitingFor !== undefined) log.info('webhook waits', { for: webhook.waitingFor });
    await webhook.synced(signal);
    if (signal.aborted) return 0;
    server = await serveWebhook({
      port: settings.port,
      files,
      handlers: { '/inject': (request) => webhook.admit(request) },
      log,
      metrics,
    });
    if (!signal.aborted) await once(signal, 'abort');
    log.info('webhook stops');
    await server.close();
    return 0;
  } finally {
    await closeProbes?.();
    webhook.close();
  }
}
