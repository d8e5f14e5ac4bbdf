/**
 * What the pull secrets of one cluster should be, from what they are. Pure: Secrets in, decision out.
 *
 * Source of the rule: requirement 1, "Validation and merging", "Automatic cleanup", "Registry Precedence". Beyond it: a bad
 * additional secret never holds up the platform's own, and what was good before stays in use, entry by entry.
 */

import { encodeUsable, type UsablePart, usablePart } from '../../core/docker-config/encode.ts';
import {
  AUTHS_MISSING,
  type LastGood,
  MAX_SECRET_BYTES,
  type MergedEntry,
  type MergeResult,
  mergePullSecrets,
} from '../../core/docker-config/merge.ts';
import {
  type DockerConfig,
  type DockerConfigEntry,
  dataValue,
  fromBase64,
  parseDockerConfig,
  secretText,
  toBase64,
} from '../../core/docker-config/pull-secret.ts';
import type { JsonNode } from '../../core/go/json.ts';
import { compareBytes } from '../../core/go/text.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import type { ReconcileError } from '../../engine/contract.ts';
import {
  heldEntryRemoval,
  judgedMark,
  lostRemoval,
  type PendingRemoval,
  type RemovalInput,
  UNJUDGED,
} from '../removal-guard.ts';

// Which entries of a merged pull secret came from the additional one, as an annotation on the merge: one bit per entry, in the
// order of the document. However many entries a tenant has, it stays far below what annotations may hold.

/** On `global-pull-secret`: `<number of entries>:<base64 of the bits>`. */
export const ADDED_ENTRIES_ANNOTATION = 'pullwright.dev/additional-entries';

/** What releases before wrote: the keys themselves, as JSON. */
export const ADDITIONAL_KEYS_ANNOTATION = 'pullwright.dev/additional-keys';

/**
 * The value of the annotation for a merge.
 *
 * @param entries of the merge, sorted by key
 */
export function addedEntries(entries: readonly MergedEntry[]): string {
  const bits = new Uint8Array(Math.ceil(entries.length / 8));
  for (const [at, { source }] of entries.entries()) {
    const byte = at >> 3;
    if (source !== 'original') bits[byte] = (bits[byte] ?? 0) | (1 << (at & 7));
  }
  return `${entries.length}:${Buffer.from(bits).toString('base64')}`;
}

/** The keys of the merge in `global` that came from the additional secret; undefined when it does not say. */
export function addedKeys(global: KubeObject, text: Redacted<string>): readonly string[] | undefined {
  const annotations = global.metadata.annotations ?? {};
  const marked = annotations[ADDED_ENTRIES_ANNOTATION];
  if (typeof marked === 'string') return keysOf(marked, text);
  const listed = annotations[ADDITIONAL_KEYS_ANNOTATION];
  return typeof listed === 'string' ? parseKeys(listed) : undefined;
}

/** Undefined when the document is not the one that was marked: somebody changed it since. */
function keysOf(marked: string, text: Redacted<string>): readonly string[] | undefined {
  const parsed = parseDockerConfig(text);
  if (!parsed.ok) return undefined;
  const keys = parsed.config.entries.map(({ key }) => key.written).sort(compareBytes);
  const [count, bits = ''] = marked.split(':');
  if (count !== String(keys.length)) return undefined;
  const bytes = Buffer.from(bits, 'base64');
  return keys.filter((_, at) => ((bytes[at >> 3] ?? 0) & (1 << (at & 7))) !== 0);
}

function parseKeys(annotation: string): readonly string[] {
  try {
    const keys: unknown = JSON.parse(annotation);
    return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [];
  } catch {
    return [];
  }
}

// What nodes get of the platform's pull secret: the very bytes where every reader can use all of it, else the part that they
// can use, with the last good form of what they cannot, and with what a removal that is held would take. Pure.

/** What decides about a removal besides the documents. */
export type RemovalContext = Pick<RemovalInput, 'release' | 'confirmed' | 'held' | 'options' | 'now'>;

export interface PlatformInput {
  readonly secret: KubeObject | undefined;
  /** Where it is looked for. */
  readonly namespace: string | undefined;
  /** `original-pull-secret` as it is: what nodes have. */
  readonly copy: KubeObject | undefined;
  /** What nodes have of the platform's, where the copy is gone. */
  readonly lastText?: Redacted<string>;
  readonly removal: RemovalContext;
}

/** The platform's part, or why there is none. */
export type PlatformPlan =
  | { readonly ok: false; readonly problem: ReconcileError }
  | {
      readonly ok: true;
      /** The cluster has no pull secret of its own, and never had one: nothing is copied, and the tenant's part stands alone. */
      readonly absent?: true;
      /** The document as the platform has it. */
      readonly text: Redacted<string>;
      /** Base64 of what the copy should hold. */
      readonly value: Redacted<string>;
      /** What the copy holds now. */
      readonly copyText?: Redacted<string>;
      readonly held?: PendingRemoval;
      /** The entries that stay because of it. */
      readonly heldEntries: readonly DockerConfigEntry[];
    };

const NO_ENTRY = '{"auths":{}}';

/** Decides. Never throws. */
export function planPlatform(input: PlatformInput): PlatformPlan {
  // A copy would say that there was one, which is then missed.
  if (input.secret === undefined && input.copy === undefined && isStandalone(input))
    return {
      ok: true,
      absent: true,
      text: redact(NO_ENTRY),
      value: toBase64(redact(NO_ENTRY)),
      heldEntries: [],
    };
  const read = readPlatform(input);
  if ('problem' in read) return { ok: false, problem: read.problem };
  const { text, config, verbatim } = read;
  const copyText = input.copy === undefined ? input.lastText : secretText(input.copy);
  const before = readableEntries(copyText);
  const held = heldOf(input, before, config.entries);
  const heldEntries = before.filter(({ key }) => held?.keys.includes(key.written));
  const part = usablePart(config);
  const asItIs = part.whole && heldEntries.length === 0;
  return {
    ok: true,
    text,
    value: asItIs ? verbatim : composed(part, before, heldEntries),
    ...(copyText === undefined ? {} : { copyText }),
    ...(held === undefined ? {} : { held }),
    heldEntries,
  };
}

function heldOf(
  input: PlatformInput,
  before: readonly DockerConfigEntry[],
  after: readonly DockerConfigEntry[],
): PendingRemoval | undefined {
  const seen = heldEntryRemoval({ before, after, ...input.removal });
  return seen ?? (keepsNothing(input) ? lostRemoval(input.removal) : undefined);
}

/** The copy that held a removal is gone, or was created again without what it held; and there is no merge that has it. */
function keepsNothing({ copy, lastText }: PlatformInput): boolean {
  if (copy === undefined) return lastText === undefined;
  return plainText(copy, NAMES.judgedKey) === UNJUDGED;
}

/** What stands beside a pull secret and is no secret. */
export function plainText(secret: KubeObject | undefined, key: string): string | undefined {
  const value = (secret as SecretObject | undefined)?.data?.[key];
  return value === undefined ? undefined : reveal(fromBase64(value));
}

interface ReadPlatform {
  readonly text: Redacted<string>;
  readonly config: DockerConfig;
  /** The very bytes of the platform's secret, also where they are no UTF-8. */
  readonly verbatim: Redacted<string>;
}

function readPlatform(input: PlatformInput): ReadPlatform | { readonly problem: ReconcileError } {
  if (input.secret === undefined) return { problem: missing(input) };
  const verbatim = dataValue(input.secret);
  const text = secretText(input.secret);
  if (verbatim === undefined || text === undefined || reveal(text) === '')
    return { problem: keyMissing(input) };
  const parsed = parseDockerConfig(text);
  if (!parsed.ok) return { problem: invalid(input, parsed.problem.message) };
  if (!parsed.config.hasAuths) return { problem: invalid(input, AUTHS_MISSING.message) };
  return { text, config: parsed.config, verbatim };
}

/** What can be used, the last good form of what cannot, and what is held. Base64. */
function composed(
  { entries, broken, fields }: UsablePart,
  before: readonly DockerConfigEntry[],
  heldEntries: readonly DockerConfigEntry[],
): Redacted<string> {
  const brokenKeys = new Set(broken.map(({ key }) => key.written));
  const stay = before.filter(({ key }) => brokenKeys.has(key.written));
  const text = encodeUsable(
    [...entries, ...stay, ...heldEntries].map(({ key, value }): [string, JsonNode] => [
      key.written,
      reveal(value),
    ]),
    fields.map(({ key, value }) => [key, value] as const),
  );
  return toBase64(text);
}

function readableEntries(text: Redacted<string> | undefined): readonly DockerConfigEntry[] {
  const parsed = text === undefined ? undefined : parseDockerConfig(text);
  return parsed?.ok ? parsed.config.entries.filter((entry) => entry.readable) : [];
}

/** The document without the entries of these keys, as they are written. */
export function withoutEntries(text: Redacted<string>, keys: readonly string[]): Redacted<string> {
  const out = new Set(keys);
  const stay = readableEntries(text).filter(({ key }) => !out.has(key.written));
  return encodeUsable(
    stay.map(({ key, value }): [string, JsonNode] => [key.written, reveal(value)]),
    [],
  );
}

function placeOf({ secret, namespace }: PlatformInput): string {
  return `Secret/${secret?.metadata.namespace ?? namespace ?? 'control plane namespace'}/${NAMES.platform}`;
}

/** A stand-alone cluster keeps it in `openshift-config`; that of a hosted cluster comes from HyperShift. */
function isStandalone({ secret, namespace }: PlatformInput): boolean {
  return (secret?.metadata.namespace ?? namespace) === NAMES.configNamespace;
}

function remedy(input: PlatformInput): string {
  const fix = isStandalone(input) ? `fix "${placeOf(input)}"` : 'fix spec.pullSecret of the HostedCluster';
  return `Nodes keep the last good pull secret; ${fix}`;
}

function missing(input: PlatformInput): ReconcileError {
  const source = isStandalone(input)
    ? `Create it, of type kubernetes.io/dockerconfigjson, or "${NAMES.additional}", which works without it`
    : 'HyperShift copies it there from spec.pullSecret of the HostedCluster';
  return {
    retryPolicy: 'waiting',
    afterMs: 10_000,
    code: 'OriginalMissing',
    message: `Cannot read "${placeOf(input)}": failed to get original pull secret, it does not exist`,
    hint: `${source}; no pull secret on any node changes until it is there`,
  };
}

function keyMissing(input: PlatformInput): ReconcileError {
  return {
    retryPolicy: 'terminal',
    code: 'OriginalKeyMissing',
    message: `Cannot use "${placeOf(input)}": original pull secret does not contain ${NAMES.dataKey} key`,
    hint: remedy(input),
  };
}

function invalid(input: PlatformInput, fault: string): ReconcileError {
  return {
    retryPolicy: 'terminal',
    code: 'OriginalInvalid',
    message: `Cannot use "${placeOf(input)}": it ${fault}`,
    hint: remedy(input),
  };
}

/** The mark of a document, both as Secrets hold them. */
export function judgedMarkOf(value: Redacted<string>): Redacted<string> {
  return toBase64(redact(judgedMark(fromBase64(value))));
}

// The one builder of every pull Secret that is written at run time.

/** Input of {@link pullSecretObject}. */
export interface PullSecretInput {
  readonly name: string;
  readonly namespace: string;
  /** Base64 of the docker config. */
  readonly value: Redacted<string>;
  /** @default {'kubernetes.io/dockerconfigjson'} */
  readonly type?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Whether nodes are to hold whatever the document lacks. @default {false} */
  readonly unjudged?: boolean;
}

/** What the mark beside a document takes of what one Secret may hold: a SHA-256 in hexadecimal digits. */
export const MARK_BYTES = 64;

/** A copy of a document that fills a Secret goes without its mark: agents then judge by themselves. */
function hasRoom(value: Redacted<string>): boolean {
  return Buffer.byteLength(reveal(value), 'base64') + MARK_BYTES <= MAX_SECRET_BYTES;
}

/**
 * A Secret with the value under `.dockerconfigjson`, and the mark that its removals are judged beside it. Always `data`, never `stringData`: with client-side apply, tools that
 * own the object do not remove a key dropped from `stringData`.
 */
export function pullSecretObject(input: PullSecretInput): SecretObject {
  const { name, namespace, labels, annotations } = input;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    type: input.type ?? 'kubernetes.io/dockerconfigjson',
    data: {
      [NAMES.dataKey]: input.value,
      ...(hasRoom(input.value) ? { [NAMES.judgedKey]: markOf(input) } : {}),
    },
  };
}

function markOf({ unjudged, value }: PullSecretInput): Redacted<string> {
  return unjudged === true ? toBase64(redact(UNJUDGED)) : judgedMarkOf(value);
}

/** The four Secrets, as they are, and what decides about removals. */
export interface PullSecrets {
  /** `pull-secret` of the control plane namespace. */
  readonly platform: KubeObject | undefined;
  readonly additional: KubeObject | undefined;
  /** The copy of the platform's. */
  readonly original?: KubeObject | undefined;
  readonly global: KubeObject | undefined;
  /** Where the platform's pull secret is looked for. */
  readonly platformNamespace?: string;
  /** @default {nothing is confirmed, and nothing was held before} */
  readonly removal?: RemovalContext;
}

/** A value to write (base64, as Secrets hold it), or what to do instead. */
export type ValueDecision =
  | { readonly act: 'write'; readonly value: Redacted<string> }
  | { readonly act: 'keep' }
  | { readonly act: 'remove' };

export interface PullSecretPlan {
  readonly original: ValueDecision;
  readonly global: ValueDecision;
  /** Value of the annotation that tells the entries of the additional secret, when `global` is written. */
  readonly added: string;
  /** Number of those entries. */
  readonly addedCount: number;
  /** One per entry of the additional secret, and one for the secret as a whole when it cannot be used. */
  readonly verdicts: readonly EntryStatus[];
  /** On the platform's own entries: only what is wrong with them. */
  readonly platformVerdicts: readonly EntryStatus[];
  /** A removal that waits for a confirmation. */
  readonly held?: PendingRemoval;
  /** There is no platform's secret, and never was: the tenant's is all that nodes get. */
  readonly alone?: true;
  /** Of the platform's secret as a whole. */
  readonly problems: readonly ReconcileError[];
}

const KEEP: ValueDecision = { act: 'keep' };
const NO_REMOVALS: RemovalContext = { confirmed: [], options: {}, now: new Date(0), release: undefined };

/** Decides. Never throws. */
export function planPullSecrets(secrets: PullSecrets): PullSecretPlan {
  const platform = planPlatform({
    secret: secrets.platform,
    namespace: secrets.platformNamespace,
    copy: secrets.original,
    // Whoever deletes the copy must not let go what it holds: nodes have the merge.
    ...(secrets.original === undefined ? mergedBefore(secrets.global) : {}),
    removal: secrets.removal ?? NO_REMOVALS,
  });
  if (!platform.ok) return nothingToWrite(platform.problem);
  return withPlatform(secrets, platform);
}

/** The platform's part of the merge that nodes have, where it says which that is. */
function mergedBefore(global: KubeObject | undefined): { readonly lastText?: Redacted<string> } {
  const text = global === undefined ? undefined : secretText(global);
  const added = global === undefined || text === undefined ? undefined : addedKeys(global, text);
  return text === undefined || added === undefined ? {} : { lastText: withoutEntries(text, added) };
}

function nothingToWrite(problem: ReconcileError): PullSecretPlan {
  return {
    original: KEEP,
    global: KEEP,
    added: '',
    addedCount: 0,
    verdicts: [],
    platformVerdicts: [],
    problems: [problem],
  };
}

function withPlatform(secrets: PullSecrets, platform: PlatformPlan & { readonly ok: true }): PullSecretPlan {
  const additional = hasAdditional(secrets.additional) ? secrets.additional : undefined;
  const text = additional === undefined ? undefined : (secretText(additional) ?? redact(''));
  const merge = mergePullSecrets({
    original: platform.text,
    heldOriginal: platform.heldEntries,
    ...(platform.copyText === undefined ? {} : { lastOriginal: platform.copyText }),
    ...(text === undefined ? {} : { additional: text }),
    ...lastGood(secrets.global),
    maxBytes: MAX_SECRET_BYTES - MARK_BYTES,
  });
  const entries = merge.ok ? merge.entries : [];
  return {
    original: platform.absent === true ? KEEP : { act: 'write', value: platform.value },
    global: globalDecision(secrets, merge, additional !== undefined),
    added: addedEntries(entries),
    addedCount: entries.filter(({ source }) => source === 'additional').length,
    verdicts: tenantVerdicts(secrets.additional, merge),
    platformVerdicts: merge.ok ? merge.originalVerdicts : [],
    ...(platform.held === undefined ? {} : { held: platform.held }),
    ...(platform.absent === true ? { alone: true as const } : {}),
    problems: [],
  };
}

/** On what the tenant wrote; a Secret without an entry adds nothing, which its owner hardly meant. */
function tenantVerdicts(additional: KubeObject | undefined, merge: MergeResult): readonly EntryStatus[] {
  if (additional === undefined) return [];
  if (!hasAdditional(additional)) return [nothingAdded('has no data')];
  const verdicts = keyVerdict(additional, merge);
  const empty = merge.ok && verdicts.length === 0 ? [nothingAdded('has no entry in "auths"')] : [];
  return [...typeVerdict(additional), ...verdicts, ...empty];
}

function nothingAdded(state: string): EntryStatus {
  const message = `${state}, so that nothing is added to the platform's pull secret: add an entry, or delete the Secret`;
  return { subject: NAMES.additional, verdict: 'Pending', reason: 'NothingAdded', message };
}

function globalDecision(secrets: PullSecrets, merge: MergeResult, wanted: boolean): ValueDecision {
  if (!wanted) return { act: 'remove' };
  if (!merge.ok) return KEEP;
  // A merge whose parts are not known (upstream made it) is better than none while the tenant's secret cannot be read.
  const unknown = lastGood(secrets.global).lastGood === undefined;
  if (merge.additionalProblem !== undefined && unknown) return KEEP;
  return { act: 'write', value: toBase64(merge.text) };
}

function keyVerdict(additional: KubeObject, merge: MergeResult): readonly EntryStatus[] {
  if (secretText(additional) !== undefined) return merge.ok ? merge.verdicts : [];
  return [
    {
      subject: NAMES.additional,
      verdict: 'Rejected',
      reason: 'KeyMissing',
      message: `failed to validate user provided pull secret: there is no "${NAMES.dataKey}" in it, add it`,
    },
  ];
}

/** Whether there is an additional secret to merge. Upstream treats one with no data at all like an absent one. */
export function hasAdditional(secret: KubeObject | undefined): secret is KubeObject {
  return secret !== undefined && Object.keys((secret as SecretObject).data ?? {}).length > 0;
}

function typeVerdict(secret: KubeObject): readonly EntryStatus[] {
  const type = (secret as SecretObject).type ?? 'Opaque';
  if (type === NAMES.secretType) return [];
  return [
    {
      subject: NAMES.additional,
      verdict: 'Warning',
      reason: 'WrongType',
      message: `the Secret has type "${type}", expected "${NAMES.secretType}"; its content is used all the same`,
    },
  ];
}

function lastGood(global: KubeObject | undefined): { lastGood?: LastGood } {
  const text = global === undefined ? undefined : secretText(global);
  const keys = global === undefined || text === undefined ? undefined : addedKeys(global, text);
  return text === undefined || keys === undefined ? {} : { lastGood: { text, keys } };
}

// The Secrets that the merge is made of.

/** The Secrets of the system as they are. */
export interface SystemSecrets {
  readonly platform: KubeObject | undefined;
  readonly additional: KubeObject | undefined;
  readonly original: KubeObject | undefined;
  readonly global: KubeObject | undefined;
}
