/**
 * What the pull secrets of one cluster should be, from what they are. Pure: Secrets in, decision out.
 *
 * Source of the rule: requirement 1, "Validation and merging", "Automatic cleanup", "Registry Precedence". Beyond it: a bad
 * additional secret never holds up the platform's own, and what was good before stays in use, entry by entry.
 */
import type { Problem } from '../../controller/contract.ts';
import {
  type LastGood,
  MAX_SECRET_BYTES,
  type MergeResult,
  mergePullSecrets,
} from '../../rules/docker-config/merge.ts';
import type { HeldEntryRemoval } from '../../rules/docker-config/removal-guard.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import { type Redacted, redact } from '../../rules/redacted.ts';
import { addedEntries, addedKeys } from './added-entries.ts';
import { MARK_BYTES } from './merged-object.ts';
import {
  type PlatformPlan,
  planPlatform,
  type RemovalContext,
  secretText,
  toBase64,
  withoutEntries,
} from './platform.ts';

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
  readonly verdicts: readonly Verdict[];
  /** On the platform's own entries: only what is wrong with them. */
  readonly platformVerdicts: readonly Verdict[];
  /** A removal that waits for a confirmation. */
  readonly held?: HeldEntryRemoval;
  /** There is no platform's secret, and never was: the tenant's is all that nodes get. */
  readonly alone?: true;
  /** Of the platform's secret as a whole. */
  readonly problems: readonly Problem[];
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

function nothingToWrite(problem: Problem): PullSecretPlan {
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
function tenantVerdicts(additional: KubeObject | undefined, merge: MergeResult): readonly Verdict[] {
  if (additional === undefined) return [];
  if (!hasAdditional(additional)) return [nothingAdded('has no data')];
  const verdicts = keyVerdict(additional, merge);
  const empty = merge.ok && verdicts.length === 0 ? [nothingAdded('has no entry in "auths"')] : [];
  return [...typeVerdict(additional), ...verdicts, ...empty];
}

function nothingAdded(state: string): Verdict {
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

function keyVerdict(additional: KubeObject, merge: MergeResult): readonly Verdict[] {
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

function typeVerdict(secret: KubeObject): readonly Verdict[] {
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
