/** Flags for registry access, the registry client, and the registry requests of `verify`. */
import type { CommandIo } from '../../cli/command.ts';
import { ALLOW_ADDRESS, duration, file, several, text, type ValuesOf } from '../../cli/flags.ts';
import { control } from '../../cli/terminal.ts';
import { lookupForContainers } from '../../core/docker-config/containers-keyring.ts';
import { type AuthSource, pullSecretSource } from '../../core/docker-config/pull-secret.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import { parseImageReference } from '../../core/image-reference.ts';
import type { SecretObject } from '../../core/kubernetes/object.ts';
import { redact, sameSecret } from '../../core/redacted.ts';
import type { Lookup, LookupResult } from '../../engine/contract.ts';
import { type LookUp, NOT_ASKED } from '../../engine/lookups.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { networksOf } from '../../http/addresses.ts';
import { proxyFor } from '../../http/proxy.ts';
import { asPullwrightError } from '../../kube/api-error.ts';
import { RegistryClient } from '../../registry/client.ts';
import { probe, questionKey, verifyAll } from '../../registry/probe.ts';
import { credentialsOf } from '../../registry/token.ts';
import { RegistryTransport } from '../../registry/transport.ts';
import { type PullAttempt, pullAttempts } from './attempts.ts';
import { readCluster } from './look.ts';
import { type LookValues, type NextKinds, readGiven, type SourceKind } from './objects.ts';
import {
  CLUSTER_KINDS,
  explainIn,
  GLOBAL_SECRET,
  hasEnded,
  imageOf,
  imagesOf,
  joinedPodName,
  listedNames,
  nextNodeKinds,
  PLATFORM_SECRET,
  type PodPuller,
  type PullModelOptions,
  podSpecIn,
  providedImages,
  pullBy,
  pullModel,
  SECRET,
  SERVICE_ACCOUNT,
  WORKLOAD_KINDS,
} from './pull.ts';
import type { EntryPlace } from './types.ts';
import type { ImageInUse, RegistryAnswers } from './verification.ts';

/** Flags for connections to registries. */
export const REACH_FLAGS = {
  timeout: duration({
    default: '15s',
    least: 1,
    most: 3_600_000,
    help: 'timeout of one request to a registry',
  }),
  ca: file({ help: "certificates (PEM) to trust instead of the system's" }),
  'allow-host': several(
    text({
      value: 'HOST[:PORT]',
      help: 'a host that may have any address: a private one although a tenant named it, a loopback, link-local or metadata one',
    }),
  ),
  'allow-address': ALLOW_ADDRESS,
  'plain-host': several(text({ value: 'HOST:PORT', help: 'a host to contact without TLS' })),
};

/** {@link REACH_FLAGS}, and a file with credentials. */
export const ACCESS_FLAGS = {
  authfile: file({
    help: 'docker config.json with credentials; the longest key that covers a repository is used, as CRI-O does',
  }),
  ...REACH_FLAGS,
};

export type AccessValues = Partial<ValuesOf<typeof ACCESS_FLAGS>>;

/** Creates a client with the credentials of `secrets`, then `--authfile`. Honors `HTTPS_PROXY` and `NO_PROXY` as Go does. */
export async function registryClient(
  values: AccessValues,
  env: CommandIo['env'],
  secrets: readonly AuthSource[] = [],
): Promise<RegistryClient> {
  const { transport, timeoutMs } = await registryTransport(values, env);
  const given = values.authfile === undefined ? [] : [await readAuthFile(values.authfile)];
  const credentialFor = credentialsFrom([...secrets, ...given]);
  return new RegistryClient({ transport, credentialFor, timeoutMs });
}

/** Creates the transport from the flags, and returns it with the request timeout. */
async function registryTransport(values: AccessValues, env: CommandIo['env']) {
  const transport = new RegistryTransport({
    ...(values.ca !== undefined && { ca: [await readGiven(values.ca, 'file with certificates')] }),
    proxyFor: (url) => proxyFor(url, env),
    allowHosts: values['allow-host'] ?? [],
    ...(values['allow-address'] === undefined ? {} : { allowNetworks: networksOf(values['allow-address']) }),
    plainHosts: values['plain-host'] ?? [],
  });
  return { transport, timeoutMs: values.timeout ?? 15_000 };
}

/** Reads and validates a docker config.json. @throws UsageError */
export async function readAuthFile(path: string): Promise<AuthSource> {
  const file = {
    name: path,
    format: 'config.json',
    text: redact(await readGiven(path, 'file with credentials')),
  } as const;
  const fault = authFault(file);
  if (fault === undefined) return file;
  throw new UsageError(`Cannot read "${path}": ${fault}`);
}

/** Returns why credentials cannot be looked up in a file; undefined if they can. */
export function authFault(file: AuthSource): string | undefined {
  const probe = lookupForContainers([file], 'localhost/any');
  return probe.found === 'error' ? probe.goText : undefined;
}

/** Returns a lookup of credentials by repository; `files` are in order of precedence. */
function credentialsFrom(files: readonly AuthSource[]) {
  return (repository: string) => {
    const found = lookupForContainers(files, repository);
    return found.found === 'credential' ? credentialsOf(found.credential) : undefined;
  };
}

// Digest lookups for reconcilers.

export interface RegistryLookUpOptions {
  /** docker config.json for all clusters, used after the pull secret of each. */
  readonly authfile: string | undefined;
  /** Reads the current Secret; undefined if not found. */
  readonly readSecret: (ref: PullSecretRef) => Promise<SecretObject | undefined>;
  readonly env: CommandIo['env'];
  /** Connection settings. @default {the defaults of the flags} */
  readonly access?: Omit<AccessValues, 'authfile'>;
}

type PullSecretRef = NonNullable<Lookup['pullSecret']>;

/**
 * Looks up digests with the cluster's pull secret, which its nodes use too, and then with `authfile`. Each cluster has a separate
 * client, so that tokens are not shared.
 *
 * @throws UsageError if `authfile` is unusable
 */
export async function registryLookUp(options: RegistryLookUpOptions): Promise<LookUp> {
  const { authfile, readSecret, env, access = {} } = options;
  const { transport, timeoutMs } = await registryTransport(access, env);
  const file = authfile === undefined ? [] : [await readAuthFile(authfile)];
  const clients = new Map<string, { own: AuthSource | undefined; client: RegistryClient }>();
  const clientFor = (place: string, own: AuthSource | undefined): RegistryClient => {
    const known = clients.get(place);
    const isSame = known?.own && own ? sameSecret(known.own.text, own.text) : known?.own === own;
    if (known !== undefined && isSame) return known.client;
    const credentialFor = credentialsFrom(own === undefined ? file : [own, ...file]);
    const client = new RegistryClient({
      transport,
      credentialFor,
      timeoutMs,
      // The tenant controls mirror sets of a hosted cluster. A registry with a credential is the platform's choice.
      chosenBy: ({ repository }) => (credentialFor(repository) === undefined ? 'tenant' : 'platform'),
    });
    clients.set(place, { own, client });
    return client;
  };
  return async ({ image, pullSecret, asked }): Promise<LookupResult> => {
    if (authfile === undefined && asked !== true) return { ok: false, reason: NOT_ASKED };
    const place = pullSecret === undefined ? '' : `Secret/${pullSecret.namespace}/${pullSecret.name}`;
    try {
      const own = pullSecret === undefined ? undefined : await ownSource(place, pullSecret, readSecret);
      return await answer(clientFor(place, own), image);
    } catch (error) {
      // Fall back to `authfile`, which applies to all clusters, if the cluster's Secret is unusable.
      if (file.length > 0) return answer(clientFor(`${place} (without it)`, undefined), image);
      const { code, message } = asPullwrightError(error);
      return { ok: false, reason: `${code}: ${message}` };
    }
  };
}

async function answer(client: RegistryClient, image: string): Promise<LookupResult> {
  const found = await probe(client, image);
  return found.digest === undefined
    ? { ok: false, reason: `${found.verdict}: ${found.message}` }
    : { ok: true, value: found.digest };
}

async function ownSource(place: string, ref: PullSecretRef, readSecret: RegistryLookUpOptions['readSecret']) {
  const unusable = (fault: string, cause?: unknown): PullwrightError =>
    new PullwrightError(`Cannot contact registries with "${place}": ${fault}`, {
      code: 'PullSecretUnusable',
      cause,
    });
  // Do not report an API server error as a registry error.
  const secret = await readSecret(ref).catch((error: unknown) => {
    throw unusable(asPullwrightError(error).message, error);
  });
  if (secret === undefined) throw unusable('it does not exist');
  const source = pullSecretSource(secret);
  if (source === undefined) throw unusable('it is not a pull secret');
  const fault = authFault(source);
  if (fault !== undefined) throw unusable(fault);
  return source;
}

// Registry requests of `verify`, with a progress display.

/** Probes every attempt, once per credential and pull source. With `all-in-use`, non-platform hosts are the tenants' choice. */
export async function askRegistries(
  users: readonly ImageInUse[],
  flags: AccessValues & { readonly 'all-in-use': boolean; readonly concurrency: number },
  io: CommandIo,
): Promise<RegistryAnswers> {
  const { transport, timeoutMs } = await registryTransport(flags, io.env);
  const attempts = users.flatMap((user) => user.attempts);
  const asked = attempts
    .filter(({ notAsked }) => notAsked === undefined)
    .map((attempt) => {
      const { reference, credential } = attempt;
      const question = { reference, ...(credential && { credential: credentialsOf(credential) }) };
      return { attempt, question, key: questionKey(question) };
    });
  const known = platformHosts(attempts);
  const answers = await verifyAll(
    asked.map(({ question }) => question),
    {
      transport,
      ...(flags['all-in-use'] ? { chosenBy: (host) => (known.has(host) ? 'platform' : 'tenant') } : {}),
      concurrency: flags.concurrency,
      timeoutMs,
      signal: io.signal,
      onAnswer: progressOn(io, new Set(asked.map(({ key }) => key)).size),
    },
  );
  transport.close();
  return new Map(asked.map(({ attempt, key }) => [attempt, answers.get(key)]));
}

/** Hosts that the platform configures: mirrors, and pull sources with one of its credentials. */
function platformHosts(attempts: readonly PullAttempt[]): ReadonlySet<string> {
  const own = attempts.filter(
    ({ kind, entry }) => kind === 'mirror' || (entry !== undefined && isOfPlatform(entry)),
  );
  return new Set(own.map(({ reference }) => reference.split('/')[0] ?? ''));
}

/** Reports whether the entry is from the nodes' docker config, or from a Secret that it may be generated from. */
function isOfPlatform({ source }: EntryPlace): boolean {
  const [kind, namespace] = source.split('/');
  return kind !== 'Secret' || [GLOBAL_SECRET, PLATFORM_SECRET].some((one) => one.namespace === namespace);
}

const BAR = 30;
/** Maximum number of progress lines without a terminal. */
const LINES = 10;

/** Progress bar on a terminal. Elsewhere prints a line at most every 50 requests. */
function progressOn({ stderr }: CommandIo, total: number): (done: number) => void {
  const step = Math.max(50, Math.ceil(total / LINES));
  return (done) => {
    const filled = Math.round((done / total) * BAR);
    const bar = `[${'#'.repeat(filled)}${' '.repeat(BAR - filled)}] ${done}/${total}`;
    if (stderr.isTTY === true)
      stderr.write(done === total ? control('\r\u001b[K') : `${control('\r')}${bar}`);
    else if (done % step === 0) stderr.write(`checked ${done} of ${total}\n`);
  };
}

// Images in use by pods and pod templates.

/** Pods and kinds with a pod template, without ReplicaSets, because a Deployment keeps its old ones. */
export const USING_KINDS = WORKLOAD_KINDS.filter(({ kind }) => kind !== 'ReplicaSet');

/**
 * Lists the pods and workloads in `store` with their images, without finished ones. Each image is listed once per namespace and
 * list of pull secrets, under its first user.
 */
export function imageUsers(store: ObjectStore): readonly ImageUser[] {
  const seen = new Set<string>();
  return USING_KINDS.flatMap((kind) => store.list(kind))
    .filter((object) => !hasEnded(object))
    .flatMap((object): readonly ImageUser[] => {
      const user = userOf(store, pullBy(object), imagesOf(podSpecIn(object)));
      const images = user.images.filter((image) => {
        const id = [user.puller.namespace, ...user.secrets, '', image].join('\n');
        return !seen.has(id) && seen.add(id);
      });
      return images.length === 0 ? [] : [{ ...user, images }];
    });
}

/** A pod, workload or ServiceAccount with its images. */
type ImageUser = ReturnType<typeof userOf>;

function userOf(store: ObjectStore, puller: PodPuller, images: readonly string[]) {
  const { namespace, serviceAccount, pod = { kind: 'ServiceAccount', name: serviceAccount } } = puller;
  /** Names in its imagePullSecrets, in order. */
  const secrets = listedNames(store, puller).map(({ name }) => name);
  /** `usedBy`: such as `Deployment/web/shop`. */
  return { puller, images, usedBy: `${pod.kind}/${namespace}/${pod.name}`, secrets };
}

// Inputs of `verify`: images, the pods and workloads that pull them, and the credentials that would be tried.

interface Flags extends LookValues {
  /** Namespaces to read, the first one for named images. @default {all; `default` for named images} */
  readonly namespace: readonly string[] | undefined;
  readonly 'service-account': string;
  /** The only Secrets to read. @default {all listed ones} */
  readonly 'secret-name'?: readonly string[] | undefined;
}

/**
 * Reads a cluster or folders. Without `images`, verifies all images in use.
 *
 * @returns the images with their users and attempts, and problems: unreadable objects, invalid image names
 * @throws UsageError if an image name is invalid or the cluster is ambiguous; PullwrightError if nothing can be read
 */
export async function readImagesInUse(flags: Flags, images: readonly string[], io: CommandIo) {
  joinedPodName(images).forEach(imageOf);
  const { namespace: namespaces, 'secret-name': only } = flags;
  const asked = namespaces?.[0] ?? 'default';
  const usersIn = (store: ObjectStore): readonly ImageUser[] =>
    images.length > 0
      ? [userOf(store, { namespace: asked, serviceAccount: flags['service-account'] }, images)]
      : imageUsers(store).filter(({ puller }) => namespaces?.includes(puller.namespace) ?? true);
  const within = images.length > 0 ? [asked] : namespaces;
  const using = [...(images.length > 0 ? [] : USING_KINDS), SERVICE_ACCOUNT];
  const kinds = within?.flatMap((namespace) => using.map((kind) => ({ ...kind, namespace }))) ?? using;
  const steps: readonly NextKinds[] = [
    () => [...kinds, GLOBAL_SECRET, ...CLUSTER_KINDS],
    (store) => secretKinds(store, usersIn(store), only),
    nextNodeKinds,
  ];
  const { store, problems, hosted } = await readCluster(flags, steps, io, namespaces?.[0]);
  const options = { complete: problems.length === 0 && only === undefined, hosted };
  const found = usersIn(store).map((user) => attemptsOf(store, user, options));
  return {
    users: found.flatMap((one) => one.images),
    problems: [...problems, ...new Set(found.flatMap((one) => one.notes))],
  };
}

/** The listed Secrets by name, or all Secrets of the namespace if the credential provider is configured. */
function secretKinds(store: ObjectStore, users: readonly ImageUser[], only: readonly string[] | undefined) {
  const isProvided = providedImages(store).length > 0 && only === undefined;
  const kinds = users.flatMap(({ puller: { namespace }, secrets }): readonly SourceKind[] =>
    isProvided
      ? [{ ...SECRET, namespace }]
      : secrets
          .filter((name) => only?.includes(name) ?? true)
          .map((name) => ({ ...SECRET, namespace, name })),
  );
  return [...kinds, ...(store.get(GLOBAL_SECRET) === undefined ? [PLATFORM_SECRET] : [])];
}

/** Checks of `explain` whose findings do not depend on registry responses. */
const BEFORE_REGISTRIES = ['secrets-readable', 'pull-sources'];

function attemptsOf(store: ObjectStore, { puller, images, usedBy }: ImageUser, options: PullModelOptions) {
  const reader = pullModel(store, puller, options);
  const notes: string[] = [];
  const found = images.flatMap((image): readonly ImageInUse[] => {
    const parsed = parseImageReference(image);
    if (!parsed.ok) {
      notes.push(`${usedBy}: image name "${image}" is invalid: ${parsed.goText}`);
      return [];
    }
    const explanation = explainIn(reader, parsed.reference, { brief: true });
    return [
      {
        image: explanation.image,
        usedBy,
        attempts: pullAttempts(explanation),
        findings: explanation.findings.filter(({ check }) => BEFORE_REGISTRIES.includes(check)),
      },
    ];
  });
  return { images: found, notes: [...reader.notes.filter((note) => note.startsWith('error')), ...notes] };
}
