/**
 * Plans the desired pull secrets of one cluster. Pure: Secrets in, decision out.
 *
 * Source of the rule: requirement 1, "Validation and merging", "Automatic cleanup", "Registry Precedence". In addition, an
 * invalid additional secret never blocks the platform's, and the last valid value of each entry stays in use.
 */
import { digestOfNode, encodeConfig, meaningOf } from '../../core/docker-config/encode.ts';
import {
  AUTHS_MISSING,
  MAX_SECRET_BYTES,
  type MergedEntry,
  type MergeResult,
  mergePullSecrets,
} from '../../core/docker-config/merge.ts';
import {
  type DockerConfigEntry,
  type PullSecret,
  secretDataText,
  toBase64,
  usablePart,
} from '../../core/docker-config/pull-secret.ts';
import { compareBytes } from '../../core/go/text.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { defined, recordOf, valueAt } from '../../core/record.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import { counted, withoutUserInfo } from '../../core/text.ts';
import type { ReconcileError } from '../../engine/contract.ts';
import { configHash } from '../eligibility.ts';
import { HASH_LABEL } from '../options.ts';
import {
  heldEntryRemoval,
  judgedMarkOf,
  lostRemoval,
  type PendingRemoval,
  type RemovalInput,
  UNJUDGED,
} from '../removal-guard.ts';

// Records which entries of the merge came from the additional secret, as an annotation on the merge: one bit per entry, in
// document order. The size stays far below the annotation limit for any number of entries.

/** On `global-pull-secret`: `<number of entries>:<base64 of the bits>`. */
export const ADDED_ENTRIES_ANNOTATION = 'pullwright.dev/additional-entries';

/**
 * Returns the annotation value for a merge.
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

/** Keys of the merge from the additional secret; undefined when the annotation is missing or does not match the entries. */
function addedKeys({ secret, entries, problem }: PullSecret): readonly string[] | undefined {
  const marked = secret.metadata.annotations?.[ADDED_ENTRIES_ANNOTATION];
  if (typeof marked !== 'string' || problem !== undefined) return undefined;
  const keys = writtenKeys(entries).toSorted(compareBytes);
  const [count, bits = ''] = marked.split(':');
  if (count !== String(keys.length)) return undefined;
  const bytes = Buffer.from(bits, 'base64');
  return keys.filter((_, at) => ((bytes[at >> 3] ?? 0) & (1 << (at & 7))) !== 0);
}

function writtenKeys(entries: readonly DockerConfigEntry[]): readonly string[] {
  return entries.map(({ key }) => key.written);
}

// The platform's pull secret for nodes: the exact bytes when every reader can use the whole document. Otherwise the usable
// part, plus the last valid values of unusable entries, plus the entries of a held removal. Pure.

/** Inputs of a removal decision besides the documents. */
export type RemovalContext = Pick<RemovalInput, 'release' | 'confirmed' | 'held' | 'options' | 'now'>;

/** The platform's part. */
interface PlatformPlan {
  /** The cluster has no platform pull secret and never had one. No copy is written; nodes get only the tenant's entries. */
  readonly absent?: true;
  /** The platform's document, verbatim. */
  readonly text: Redacted<string>;
  /** Desired content of the copy. */
  readonly copy: Written;
  readonly held?: PendingRemoval | undefined;
  /** Entries kept because of `held`. */
  readonly heldEntries: readonly DockerConfigEntry[];
}

const NO_ENTRY: Redacted<string> = redact('{"auths":{}}');

/**
 * Plans the platform's part, or returns the problem that prevents it. Never throws.
 *
 * @param known the platform's entries on nodes, from the copy or else the merge
 */
function planPlatform(
  input: PlanInput,
  known: readonly DockerConfigEntry[] | undefined,
): PlatformPlan | { readonly problem: ReconcileError } {
  // A copy would record that a platform secret existed, and its absence would become an error.
  if (input.platform === undefined && input.original === undefined && isStandalone(input))
    return {
      absent: true,
      text: NO_ENTRY,
      copy: { value: toBase64(NO_ENTRY), registries: [] },
      heldEntries: [],
    };
  const read = readPlatform(input);
  if (read.problem !== undefined) return { problem: read.problem };
  const { text, config, verbatim } = read;
  const before = known ?? [];
  const { removal = NO_REMOVALS } = input;
  const lost = keepsNothing(input.original, known) ? lostRemoval(removal) : undefined;
  const held = heldEntryRemoval({ before, after: config.entries, ...removal }) ?? lost;
  const heldEntries = before.filter(({ key }) => held?.keys.includes(key.written));
  const part = usablePart(config);
  const asItIs = part.whole && heldEntries.length === 0;
  return {
    text,
    copy: asItIs
      ? { value: verbatim, registries: writtenKeys(config.entries) }
      : composed(part, before, heldEntries),
    held,
    heldEntries,
  };
}

/** Whether the copy with the held removal was deleted, or recreated without the held entries, and the merge lacks them too. */
function keepsNothing(copy: PullSecret | undefined, before: unknown): boolean {
  if (copy === undefined) return before === undefined;
  const mark = copy.secret.data?.[NAMES.judgedKey];
  return mark !== undefined && reveal(secretDataText(mark)) === UNJUDGED;
}

/** Returns the platform's text, parsed config and verbatim bytes (which may be invalid UTF-8), or the problem. */
function readPlatform(input: PlanInput) {
  if (input.platform === undefined) return { problem: missing(input) };
  const { value: verbatim, text, config, problem } = input.platform;
  if (verbatim === undefined || reveal(text) === '') {
    const message = `Cannot use "${placeOf(input)}": original pull secret does not contain ${NAMES.dataKey} key`;
    return { problem: unusable(input, { code: 'OriginalKeyMissing', message }) };
  }
  if (config?.hasAuths !== true) {
    const { message: fault } = problem ?? AUTHS_MISSING;
    const message = `Cannot use "${placeOf(input)}": it ${fault}`;
    return { problem: unusable(input, { code: 'OriginalInvalid', message }) };
  }
  return { text, config, verbatim };
}

/** Composes the copy: the usable entries, the last valid values of unusable entries, and the held entries. */
function composed(
  { entries, broken, fields }: ReturnType<typeof usablePart>,
  before: readonly DockerConfigEntry[],
  heldEntries: readonly DockerConfigEntry[],
): Written {
  const brokenKeys = new Set(writtenKeys(broken));
  const stay = before.filter(({ key }) => brokenKeys.has(key.written));
  const all = [...entries, ...stay, ...heldEntries];
  const text = encodeConfig(
    all.map(({ key, value }) => ({ key: key.written, value })),
    fields,
  );
  return { value: toBase64(text), registries: writtenKeys(all) };
}

function placeOf(input: PlanInput): string {
  return `Secret/${namespaceOf(input) ?? 'control plane namespace'}/${NAMES.platform}`;
}

function namespaceOf({ platform, platformNamespace }: PlanInput): string | undefined {
  return platform?.secret.metadata.namespace ?? platformNamespace;
}

/** Stand-alone clusters keep it in `openshift-config`; HyperShift provides that of a hosted cluster. */
function isStandalone(input: PlanInput): boolean {
  return namespaceOf(input) === NAMES.configNamespace;
}

function missing(input: PlanInput): ReconcileError {
  const source = isStandalone(input)
    ? `Create it with type kubernetes.io/dockerconfigjson, or create "${NAMES.additional}", which works without it`
    : 'HyperShift copies it there from spec.pullSecret of the HostedCluster';
  return {
    retryPolicy: 'waiting',
    afterMs: 10_000,
    code: 'OriginalMissing',
    message: `Cannot read "${placeOf(input)}": failed to get original pull secret, it does not exist`,
    hint: `${source}; pull secrets on nodes stay unchanged until it exists`,
  };
}

function unusable(input: PlanInput, told: Pick<ReconcileError, 'code' | 'message'>): ReconcileError {
  const fix = isStandalone(input) ? `fix "${placeOf(input)}"` : 'fix spec.pullSecret of the HostedCluster';
  return {
    retryPolicy: 'terminal',
    ...told,
    hint: `Nodes keep the last good pull secret; ${fix}`,
  };
}

// Builds every pull Secret that is written at run time.

/** Input of {@link pullSecretObject}. */
interface PullSecretInput {
  readonly name: string;
  readonly written: Written;
  /** @default {'kubernetes.io/dockerconfigjson'} */
  readonly type?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Whether agents must hold every removal. @default {false} */
  readonly unjudged?: boolean;
}

/** Size of the mark beside a document: a SHA-256 in hexadecimal digits. */
const MARK_BYTES = 64;

/**
 * Builds a Secret with the value under `.dockerconfigjson` and the mark of checked removals. Always `data`, never `stringData`:
 * with client-side apply, tools that own the object do not remove a key dropped from `stringData`.
 */
export function pullSecretObject(input: PullSecretInput): SecretObject {
  const { name, annotations, written, type = NAMES.secretType, unjudged = false } = input;
  const mark = unjudged ? UNJUDGED : judgedMarkOf(written.registries);
  // Without the mark, agents check removals themselves.
  const hasRoom = Buffer.byteLength(reveal(written.value), 'base64') + MARK_BYTES <= MAX_SECRET_BYTES;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: NAMES.namespace, ...defined({ annotations }) },
    type,
    data: {
      [NAMES.dataKey]: written.value,
      ...(hasRoom ? { [NAMES.judgedKey]: toBase64(redact(mark)) } : {}),
    },
  };
}

/** The four Secrets of the system, as observed. */
export interface SystemSecrets {
  /** `pull-secret` of the control plane namespace. */
  readonly platform: PullSecret | undefined;
  readonly additional: PullSecret | undefined;
  /** The copy of the platform's. */
  readonly original?: PullSecret | undefined;
  readonly global: PullSecret | undefined;
}

/** Secrets, and the inputs of a removal decision. */
interface PlanInput extends SystemSecrets {
  /** Namespace of the platform's pull secret. */
  readonly platformNamespace?: string;
  /** @default {no confirmation and no earlier hold} */
  readonly removal?: RemovalContext;
}

/** Content of a Secret to write. */
export interface Written {
  /** Base64 of the docker config. */
  readonly value: Redacted<string>;
  /** Registry keys of the entries. */
  readonly registries: readonly string[];
}

/** Action for one Secret. */
type ValueDecision =
  | ({ readonly act: 'write' } & Written)
  | { readonly act: 'keep' }
  | { readonly act: 'remove' };

export interface PullSecretPlan {
  readonly original: ValueDecision;
  readonly global: ValueDecision;
  /** Value of {@link ADDED_ENTRIES_ANNOTATION}, when `global` is written. */
  readonly added: string;
  /** Number of entries from the additional secret. */
  readonly addedCount: number;
  /** One per entry of the additional secret, or one for the whole secret when it is unusable. */
  readonly verdicts: readonly EntryStatus[];
  /** Verdicts on faulty entries of the platform's secret. */
  readonly platformVerdicts: readonly EntryStatus[];
  /** A removal that waits for confirmation. */
  readonly held?: PendingRemoval;
  /** The cluster has no platform secret and never had one: nodes get only the tenant's. */
  readonly alone?: true;
  /** Problems of the platform's secret as a whole. */
  readonly problems: readonly ReconcileError[];
}

const KEEP: ValueDecision = { act: 'keep' };
const NO_REMOVALS: RemovalContext = { confirmed: [], options: {}, now: new Date(0), release: undefined };

/** Plans the pull secrets. Never throws. */
export function planPullSecrets(secrets: PlanInput): PullSecretPlan {
  const { original, global } = secrets;
  const added = global && addedKeys(global);
  // Deleting the copy must not release the held removal: the merge still contains the entries.
  const before =
    original?.entries ??
    (added === undefined ? undefined : global?.entries.filter(({ key }) => !added.includes(key.written)));
  const platform = planPlatform(
    secrets,
    before?.filter(({ readable }) => readable),
  );
  if (!('problem' in platform)) return withPlatform(secrets, platform, before, added);
  const nothing = { added: '', addedCount: 0, verdicts: [], platformVerdicts: [] };
  return { original: KEEP, global: KEEP, ...nothing, problems: [platform.problem] };
}

function withPlatform(
  { additional, global }: PlanInput,
  platform: PlatformPlan,
  before: readonly DockerConfigEntry[] | undefined,
  added: readonly string[] | undefined,
): PullSecretPlan {
  const wanted = hasAdditional(additional?.secret);
  const merge = mergePullSecrets({
    original: platform.text,
    heldOriginal: platform.heldEntries,
    ...(before === undefined ? {} : { lastOriginal: before }),
    ...(wanted && additional !== undefined ? { additional: additional.text } : {}),
    ...(global === undefined || added === undefined ? {} : { lastGood: { text: global.text, keys: added } }),
    maxBytes: MAX_SECRET_BYTES - MARK_BYTES,
  });
  const entries = merge.ok ? merge.entries : [];
  return {
    original: platform.absent === true ? KEEP : { act: 'write', ...platform.copy },
    global: wanted ? globalDecision(merge, added !== undefined) : { act: 'remove' },
    added: addedEntries(entries),
    addedCount: entries.filter(({ source }) => source === 'additional').length,
    verdicts: tenantVerdicts(additional, merge),
    platformVerdicts: merge.ok ? merge.originalVerdicts : [],
    ...(platform.held === undefined ? {} : { held: platform.held }),
    ...(platform.absent === true ? { alone: true as const } : {}),
    problems: [],
  };
}

/** Verdicts on the tenant's secret. A Secret without entries gets a verdict too, because it is probably a mistake. */
function tenantVerdicts(additional: PullSecret | undefined, merge: MergeResult): readonly EntryStatus[] {
  if (additional === undefined) return [];
  if (!hasAdditional(additional.secret)) return [nothingAdded('has no data')];
  const verdicts = keyVerdict(additional, merge);
  const empty = merge.ok && verdicts.length === 0 ? [nothingAdded('has no entry in "auths"')] : [];
  return [...typeVerdict(additional.secret), ...verdicts, ...empty];
}

function nothingAdded(state: string): EntryStatus {
  const message = `${state}, so nothing is added to the platform's pull secret: add an entry, or delete the Secret`;
  return { subject: NAMES.additional, verdict: 'Pending', reason: 'NothingAdded', message };
}

function globalDecision(merge: MergeResult, known: boolean): ValueDecision {
  // A merge with unknown origins (written by upstream) is better than none while the tenant's secret is unusable.
  if (!merge.ok || (merge.additionalProblem !== undefined && !known)) return KEEP;
  return { act: 'write', value: toBase64(merge.text), registries: merge.entries.map(({ key }) => key) };
}

function keyVerdict(additional: PullSecret, merge: MergeResult): readonly EntryStatus[] {
  if (additional.value !== undefined) return merge.ok ? merge.verdicts : [];
  const message = `failed to validate user provided pull secret: key "${NAMES.dataKey}" is missing, add it`;
  return [{ subject: NAMES.additional, verdict: 'Rejected', reason: 'KeyMissing', message }];
}

/** Whether an additional secret exists. Upstream treats a Secret without data as absent. */
export function hasAdditional(secret: KubeObject | undefined): boolean {
  return secret !== undefined && Object.keys((secret as SecretObject).data ?? {}).length > 0;
}

function typeVerdict(secret: SecretObject): readonly EntryStatus[] {
  const type = secret.type ?? 'Opaque';
  if (type === NAMES.secretType) return [];
  const message = `the Secret has type "${type}", expected "${NAMES.secretType}"; its content is used anyway`;
  return [{ subject: NAMES.additional, verdict: 'Warning', reason: 'WrongType', message }];
}

// Verdicts on the tenant's entries while HyperShift's operator owns the merge: whether its `global-pull-secret` contains them,
// why it rejects the additional secret, and the outcome of our own merge. Pure.
//
// Source of the rule: `globalps` of HyperShift: keys are compared as strings, the platform's entry replaces the tenant's, and
// one entry that the kubelet cannot parse rejects the whole additional secret.

/** Why HyperShift's operator rejects the additional secret, as a clause; undefined when it accepts the secret. */
export function upstreamRefusal(secret: PullSecret | undefined): string | undefined {
  if (secret?.value === undefined) return 'it has no ".dockerconfigjson"';
  if (secret.problem !== undefined) return `it ${secret.problem.message}`;
  const broken = secret.entries.find(({ kubelet }) => kubelet === undefined);
  if (broken !== undefined)
    return `its entry "${withoutUserInfo(broken.key.written)}" ${broken.fault?.message ?? 'cannot be read'}`;
  if (secret.kubeletFault !== undefined) return 'it has a field that the kubelet cannot read';
  return secret.entries.length === 0 ? 'it has no entry' : undefined;
}

/**
 * Turns the verdicts of our own merge into verdicts on HyperShift's merge.
 *
 * @param planned the verdicts of our own merge
 */
export function observedVerdicts(
  secrets: SystemSecrets,
  planned: readonly EntryStatus[],
): readonly EntryStatus[] {
  const refusal = upstreamRefusal(secrets.additional);
  const wanted = entryDigests(secrets.additional);
  const inForce = entryDigests(secrets.global);
  const platform = entryDigests(secrets.original);
  return planned.map((verdict) => {
    const value = wanted.get(verdict.subject);
    if (value === undefined) return verdict;
    const present = inForce.get(verdict.subject);
    const own = ownVerdict(verdict);
    const says = (kind: EntryStatus['verdict'], reason: string, message: string): EntryStatus => ({
      subject: verdict.subject,
      verdict: kind,
      reason,
      message: `${message}${own}`,
    });
    if (present === value)
      return says('Accepted', 'InGlobalPullSecret', 'is in the global-pull-secret of HyperShift');
    if (platform.has(verdict.subject))
      return says(
        'Shadowed',
        'OriginalWins',
        'is also in the original pull secret, which wins in global-pull-secret',
      );
    if (refusal !== undefined)
      return says(
        'Rejected',
        'UpstreamRejectsAll',
        `is not used: HyperShift rejects the whole additional pull secret, because ${refusal}`,
      );
    const what =
      present === undefined
        ? 'is not in global-pull-secret'
        : 'is in global-pull-secret with another credential';
    return says('Pending', 'NotTaken', `${what}, which HyperShift manages`);
  });
}

/** Outcome of the entry in our own merge. */
function ownVerdict({ verdict, reason }: EntryStatus): string {
  const would: Partial<Record<EntryStatus['verdict'], string>> = {
    Accepted: 'would be used',
    Shadowed: 'would be shadowed',
    Rejected: 'would be ignored',
  };
  const text = would[verdict];
  return text === undefined ? '' : `; in Pullwright's merge it ${text} (${reason})`;
}

/** Digest of each entry's meaning, by its key as written. */
export function entryDigests(secret: PullSecret | undefined): ReadonlyMap<string, string> {
  const entries = secret?.entries ?? [];
  return new Map(entries.map(({ key, value }) => [key.written, digestOfNode(meaningOf(reveal(value)))]));
}

// Sync state of nodes with HyperShift's own agents. They do not report, but their DaemonSet carries a hash of the content, and
// its status counts the nodes with pods of that template. Pure.
// Source of the rule: `globalps` of HyperShift, which replaces the pods when the content changes.

/** Returns one verdict; empty when there is nothing to sync or the DaemonSet is not HyperShift's. */
export function observedNodes(
  daemonSet: KubeObject | undefined,
  { global, original }: Pick<SystemSecrets, 'global' | 'original'>,
): readonly EntryStatus[] {
  const found = global ?? original;
  if (found?.value === undefined) return [];
  const { secret, text } = found;
  if (daemonSet === undefined)
    return [said('Warning', 'NoAgents', 'DaemonSet not found, so HyperShift syncs nothing to nodes')];
  const hash = recordOf(valueAt(daemonSet.spec, 'template.metadata.labels'))[HASH_LABEL];
  if (hash === undefined) return [];
  if (hash !== configHash(text))
    return [
      said('Pending', 'OlderContent', `HyperShift's agents sync an older version of ${secret.metadata.name}`),
    ];
  return [agentsVerdict(daemonSet, secret.metadata.name)];
}

function agentsVerdict({ metadata, status }: KubeObject, name: string): EntryStatus {
  const {
    observedGeneration = 0,
    desiredNumberScheduled: all = 0,
    updatedNumberScheduled: updated = 0,
    numberReady: ready = 0,
  } = (status ?? {}) as Readonly<Record<string, number>>;
  const seen = observedGeneration >= (metadata.generation ?? 0);
  const count = seen ? Math.min(updated, ready) : 0;
  const message = `HyperShift's agents run with the current ${name} on ${count} of ${counted(all, 'node')}; they do not report the content of files`;
  if (seen && all === 0) return said('Warning', 'NoNodes', message);
  return count === all && seen
    ? said('Accepted', 'AgentsHaveIt', message)
    : said('Pending', 'AgentsBehind', message);
}

function said(verdict: EntryStatus['verdict'], reason: string, message: string): EntryStatus {
  return { subject: 'nodes', verdict, reason, message };
}
