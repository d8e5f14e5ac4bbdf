/** An HTTPS server for admission webhooks: one path per webhook, certificate reload, graceful shutdown. */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { CommandIo } from '../../cli/command.ts';
import type { Frozen } from '../../core/kubernetes/fields.ts';
import type { Labels } from '../../core/kubernetes/label-selector.ts';
import { createLogger, type Logger } from '../../core/logger.ts';
import { jsonOf } from '../../core/record.ts';
import { VERSION } from '../../core/version.ts';
import { ClusterCache } from '../../engine/cache.ts';
import type { Reader } from '../../engine/contract.ts';
import { createMetrics, type Metrics, servePorts } from '../../engine/metrics.ts';
import { createReader, kindKey } from '../../engine/store.ts';
import type { KubeClient } from '../../kube/client.ts';
import { HttpKubeClient } from '../../kube/http-client.ts';
import { loadConnection } from '../../kube/kubeconfig.ts';
import {
  type CertificateFiles,
  expiry,
  HttpsServer,
  readPair,
  untimely,
  watchPair,
} from '../../node/https.ts';
import { GRANT } from '../kinds/grant.ts';
import { DEFAULT_OPTIONS, type InjectionOptions, isSkipped } from '../options.ts';
import {
  type AddOperation,
  INJECTED_ANNOTATION,
  type InjectionPlan,
  injectedText,
  type LocalObjectReference,
  mergeImagePullSecrets,
  patchImagePullSecrets,
  patchInjectedText,
  planInjection,
} from '../plan/plan.ts';
import { policyObjects, policyVersion } from '../reconciler/admission.ts';
import { isActive } from '../reconciler/pods.ts';
import { pullSecretInjection } from '../reconciler/reconcile.ts';
import { accountRefuses, namespaceLabels, planIn, SERVICE_ACCOUNT } from '../reconciler/view.ts';
import type { WebhookFlags } from './command.ts';

// AdmissionReview v1: reads requests and writes responses. Objects stay raw JSON, so that unknown fields survive the patch.

const REVIEW = z.looseObject({
  apiVersion: z.literal('admission.k8s.io/v1'),
  request: z.looseObject({
    uid: z.string(),
    operation: z.string(),
    resource: z.looseObject({ resource: z.unknown() }),
    subResource: z.string().optional(),
    namespace: z.string().optional(),
    object: z.record(z.string(), z.unknown()),
  }),
});

/** The fields of a request that handlers use; `object` is the object to be created or updated. */
export type AdmissionRequest = Frozen<z.output<typeof REVIEW>['request']>;

/** The response. Requests are never denied: failures become warnings. */
interface AdmissionAnswer {
  /** JSON patch; absent or empty: no change. */
  readonly patch?: readonly AddOperation[];
  /** Shown to the client, such as kubectl. */
  readonly warnings?: readonly string[];
  /** Label of the metric: `injected`, `unchanged`, `skipped`. */
  readonly outcome: string;
}

/**
 * Reads the body of a request.
 *
 * @returns undefined when the text is not an AdmissionReview v1 with a request and an object
 */
export function readReview(text: string): AdmissionRequest | undefined {
  return REVIEW.safeParse(jsonOf(text)).data?.request;
}

/** Returns the response body. */
export function answerText(uid: string, answer: AdmissionAnswer): string {
  const { patch = [], warnings = [] } = answer;
  const patched =
    patch.length === 0
      ? {}
      : { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid, allowed: true, ...patched, ...(warnings.length === 0 ? {} : { warnings }) },
  });
}

type AdmissionHandler = (request: AdmissionRequest) => AdmissionAnswer | Promise<AdmissionAnswer>;

interface WebhookServerOptions {
  /** 0: the system chooses a free port. */
  readonly port: number;
  readonly host?: string;
  readonly files: CertificateFiles;
  /** Keyed by path, such as `/inject`. */
  readonly handlers: Readonly<Record<string, AdmissionHandler>>;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'admitted'>;
}

/** Limit of concurrent connections. An API server opens one for each request in flight. */
const MOST_CONNECTIONS = 1000;

/** Limit for one request. Objects are up to 1.5 MiB, and an update also carries the stored one. */
const MOST_BYTES = 3 * 1024 * 1024;

/** Twice the webhook's timeoutSeconds (3) in the charts: the API server ignores later responses. */
const GRACE_MS = 6000;
const IDLE_MS = 10_000;

/** Starts the server. @throws PullwrightError `CertificateUnusable` if the certificate files are unusable at the start */
export async function serveWebhook(options: WebhookServerOptions) {
  let pair = await readPair(options.files);
  const server = new HttpsServer({
    pair,
    idleMs: IDLE_MS,
    maxConnections: MOST_CONNECTIONS,
    listener: (request, response) => {
      answer(options, request, response).catch(() => end(response, 500, 'the request failed'));
    },
  });
  const { log } = options;
  const stop = watchPair({
    files: options.files,
    everyMs: 10_000,
    present: pair,
    onChange: (next) => {
      server.renew(next);
      pair = next;
      log.info('certificate reloaded', { ends: expiry(next).toISOString() });
    },
    onProblem: (problem) => log.warn('certificate kept', { problem: problem.message }),
  });
  const port = await server.listen(options.port, options.host);
  log.info('webhook listens', { port, ends: expiry(pair).toISOString() });
  let said: string | undefined;
  return {
    port,
    /** Returns why the API server would reject the served certificate; undefined if valid. Logs each change. */
    trouble: () => {
      const problem = untimely(pair, new Date());
      if (problem !== said && problem !== undefined) log.warn('webhook is not ready', { problem });
      said = problem;
      return problem;
    },
    /** Answers open requests, then stops. */
    close: async () => {
      stop();
      await server.close(GRACE_MS);
    },
  };
}

async function answer(options: WebhookServerOptions, request: IncomingMessage, response: ServerResponse) {
  const path = new URL(request.url ?? '/', 'https://webhook').pathname;
  const handler = options.handlers[path];
  if (handler === undefined) return end(response, 404, 'no such webhook');
  if (request.method !== 'POST') return end(response, 405, 'expected POST');
  const body = await bodyOf(request);
  if (body === undefined) return refuse(request, response);
  const started = performance.now();
  const review = readReview(body);
  if (review === undefined) return end(response, 400, 'expected an AdmissionReview of admission.k8s.io/v1');
  const given = await Promise.try(handler, review).catch((error: unknown): AdmissionAnswer => {
    // An internal error must not reject a pod.
    options.log.error('handler failed', {
      problem: error instanceof Error ? error.name : 'unknown',
      uid: review.uid,
    });
    return { outcome: 'failed', warnings: ['Pullwright failed to process this object; it is unchanged'] };
  });
  const text = answerText(review.uid, given);
  options.metrics.admitted(path.slice(1), given.outcome, (performance.now() - started) / 1000);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** The whole body; undefined if it is too large. Rejects when the request is aborted. */
function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > MOST_BYTES) resolve(undefined);
      else chunks.push(chunk);
    });
    request.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    request.once('close', () => reject(new Error('the request was aborted')));
  });
}

/** The rest of the body is not read, so the response closes the connection. */
function refuse(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => request.socket.destroy());
  response.setHeader('connection', 'close');
  end(response, 413, `the request is too large: at most ${MOST_BYTES} bytes are allowed`);
}

function end(response: ServerResponse, status: number, text: string): void {
  if (!response.headersSent) response.writeHead(status, { 'content-type': 'text/plain' });
  response.end(`${text}\n`);
}

// Decision for a pod at creation, from the same plan that the admission policy is compiled from.

/** The pod as the API server sends it. */
interface AdmittedPod {
  readonly metadata?: {
    readonly labels?: Labels;
    readonly annotations?: Readonly<Record<string, unknown>>;
  };
  readonly spec?: {
    readonly imagePullSecrets?: readonly LocalObjectReference[];
    readonly serviceAccountName?: string;
  };
}

/** Reports whether the request creates a pod; all others are ignored. */
export function isNewPod({ operation, resource, subResource }: AdmissionRequest): boolean {
  return operation === 'CREATE' && resource.resource === 'pods' && (subResource ?? '') === '';
}

interface AdmissionInput {
  readonly pod: AdmittedPod;
  readonly namespace: string;
  /** Undefined if the namespace is unknown: profiles then see no labels, and SidecarSets with a namespaceSelector never match. */
  readonly namespaceLabels: Labels | undefined;
  readonly plan: InjectionPlan;
  readonly options: InjectionOptions;
}

type PodAnswer = Required<AdmissionAnswer>;

const SKIPPED: PodAnswer = { outcome: 'skipped', patch: [], warnings: [] };

/** Reports whether our admission policy is active: the webhook then skips every pod, so that no profile is applied twice. */
function policyInjects(reader: Reader): boolean {
  return policyVersion(reader) !== undefined && policyObjects(reader).every((object) => object !== undefined);
}

/** Decides for one pod. */
export function admitPod(reader: Reader, { pod, namespace, namespaceLabels, plan, options }: AdmissionInput) {
  const { metadata: { labels = {}, annotations } = {}, spec = {} } = pod;
  const seen = { namespace, namespaceLabels, labels, annotations: annotations ?? {} };
  if (!isActive(pod) || isSkipped(seen, options)) return SKIPPED;
  const planned = planInjection(plan, seen);
  if (planned.names.length === 0) return { ...SKIPPED, outcome: 'unchanged' };
  const { imagePullSecrets: own = [], serviceAccountName: account = 'default' } = spec;
  const merged = mergeImagePullSecrets(own, planned.names);
  const { added } = merged;
  if (accountRefuses(reader.get({ ...SERVICE_ACCOUNT, namespace, name: account }), merged.merged)) {
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

/** Kinds that injection does not need. Without access to Secrets, a compromised webhook cannot expose them. */
const REPORTS: ReadonlySet<string> = new Set(['PullStatus', 'EndpointSlice', 'Secret', GRANT.kind]);

/** The running webhook: caches of the plan's inputs, and the request handler. */
function injectionWebhook(client: KubeClient, options: InjectionOptions) {
  const cache = new ClusterCache(client);
  const { watches } = pullSecretInjection({ ...options, audit: false });
  const reads = watches.filter(({ kind }) => !REPORTS.has(kind));
  const sources = reads.map(({ role: _role, optional: _optional, ...selection }) => cache.source(selection));
  const reader = createReader({
    scope: { name: 'local', controlPlaneNamespace: '' },
    now: new Date(0),
    stores: { hosted: cache.store, management: cache.store },
    reads,
    serves: (kind) =>
      sources.some(({ selection, status }) => kindKey(selection) === kindKey(kind) && status.is === 'synced'),
  });
  let plan: InjectionPlan | undefined;
  for (const source of sources)
    source.subscribe(({ kind }) => {
      if (kind !== 'Namespace' && kind !== 'ServiceAccount') plan = undefined;
    });
  const waitingFor = (): string | undefined => {
    const waiting = sources.find(({ status }) => status.is === 'new');
    return waiting && `${waiting.selection.kind} is not synced yet`;
  };
  const labelsOf = async (name: string): Promise<Labels | undefined> => {
    const ref = { apiVersion: 'v1', kind: 'Namespace', name };
    const known = reader.get({ role: 'hosted', ...ref });
    if (known !== undefined) return namespaceLabels(known);
    const late = sleep(LOOKUP_MS, undefined, { ref: false });
    const found = await Promise.race([client.get(ref).catch(() => undefined), late]);
    return found && namespaceLabels(found);
  };
  return {
    /** Names a kind that is not synced yet, for `/readyz`; undefined if all are synced. */
    waitingFor,
    /** Resolves once all caches are synced, or when `signal` aborts. */
    synced: async (signal: AbortSignal): Promise<void> => {
      if (signal.aborted) return;
      const all = Promise.withResolvers<void>();
      const look = (): void => {
        if (waitingFor() === undefined) all.resolve();
      };
      for (const source of sources) source.onStatus(look);
      look();
      await Promise.race([all.promise, once(signal, 'abort')]);
    },
    /** Answers one request. */
    admit: async (request: AdmissionRequest): Promise<AdmissionAnswer> => {
      if (!isNewPod(request) || policyInjects(reader)) return { outcome: 'skipped' };
      plan ??= planIn({ reader: reader, options });
      const { object: pod, namespace = 'default' } = request;
      return admitPod(reader, { pod, namespace, plan, options, namespaceLabels: await labelsOf(namespace) });
    },
    close: () => cache.close(),
  };
}

/** Runs the webhook until the signal; resolves with exit code 0. */
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
  const webhook = injectionWebhook(client, {
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
  let server: Awaited<ReturnType<typeof serveWebhook>> | undefined;
  try {
    // Report unusable certificate files before waiting for the caches.
    await readPair(files);
    closeProbes = await servePorts(
      { health: port, metrics: port },
      {
        ready: () => webhook.waitingFor() ?? (server === undefined ? 'not listening yet' : server.trouble()),
        metrics: () => metrics.render(),
      },
    );
    // Listen only once the caches are synced: partial caches would give wrong answers. Until then the pod is not ready, so the
    // Service does not route to it. A direct call is refused and the pod admitted (failurePolicy: Ignore).
    const waiting = webhook.waitingFor();
    if (waiting !== undefined) log.info('webhook waits', { for: waiting });
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
