/**
 * What the pull secrets of one cluster should be, from what they are. Pure: Secrets in, decision out.
 *
 * Source of the rule: requirement 1, "Validation and merging", "Automatic cleanup", "Registry Precedence". Beyond it: a bad
 * additional secret never holds up the platform's own, and what was good before stays in use, entry by entry.
 */
import type { Problem } from '../../controller/contract.ts';
import { type LastGood, type MergeResult, mergePullSecrets } from '../../rules/docker-config/merge.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import { type Redacted, redact, reveal } from '../../rules/redacted.ts';

/** On `global-pull-secret`: the registry keys that came from the additional secret, as JSON. Tells the last good ones apart. */
export const ADDITIONAL_KEYS_ANNOTATION = 'pullwright.dev/additional-keys';

/** The four Secrets, as they are. */
export interface PullSecrets {
  /** `pull-secret` of the control plane namespace. */
  readonly platform: KubeObject | undefined;
  readonly additional: KubeObject | undefined;
  readonly global: KubeObject | undefined;
  /** Where the platform's pull secret is looked for. */
  readonly platformNamespace?: string;
}

/** A value to write (base64, as Secrets hold it), or what to do instead. */
export type ValueDecision =
  | { readonly act: 'write'; readonly value: Redacted<string> }
  | { readonly act: 'keep' }
  | { readonly act: 'remove' };

export interface PullSecretPlan {
  readonly original: ValueDecision;
  readonly global: ValueDecision;
  /** For the annotation {@link ADDITIONAL_KEYS_ANNOTATION} when `global` is written. */
  readonly additionalKeys: readonly string[];
  /** One per entry of the additional secret, and one for the secret as a whole when it cannot be used. */
  readonly verdicts: readonly Verdict[];
  readonly problems: readonly Problem[];
}

const KEEP: ValueDecision = { act: 'keep' };

/** Decides. Never throws. */
export function planPullSecrets(secrets: PullSecrets): PullSecretPlan {
  const platform = platformText(secrets);
  if ('problem' in platform)
    return { original: KEEP, global: KEEP, additionalKeys: [], verdicts: [], problems: [platform.problem] };
  const additional = hasAdditional(secrets.additional) ? secrets.additional : undefined;
  const text = additional === undefined ? undefined : (secretText(additional) ?? redact(''));
  const merge = mergePullSecrets({
    original: platform.text,
    ...(text === undefined ? {} : { additional: text }),
    ...lastGood(secrets.global),
  });
  return {
    // Always copied, as the requirement says: the agent judges again before it touches a node.
    original: { act: 'write', value: platform.value },
    global: globalDecision(secrets, merge, additional !== undefined),
    additionalKeys: merge.ok
      ? merge.entries.flatMap((entry) => (entry.source === 'original' ? [] : [entry.key]))
      : [],
    verdicts: [
      ...platformVerdicts(merge),
      ...(additional === undefined ? [] : [...typeVerdict(additional), ...keyVerdict(additional, merge)]),
    ],
    problems: merge.ok ? [] : [originalInvalid(secrets, merge.problem.message)],
  };
}

function globalDecision(secrets: PullSecrets, merge: MergeResult, wanted: boolean): ValueDecision {
  if (!wanted) return { act: 'remove' };
  if (!merge.ok) return KEEP;
  // A merge whose parts are not known (upstream made it) is better than none while the tenant's secret cannot be read.
  const unknown = secrets.global?.metadata.annotations?.[ADDITIONAL_KEYS_ANNOTATION] === undefined;
  if (merge.additionalProblem !== undefined && unknown) return KEEP;
  return { act: 'write', value: toBase64(merge.text) };
}

/** What is wrong with the platform's own document. Nodes keep what they have; the platform's owner must act. */
function platformVerdicts(merge: MergeResult): readonly Verdict[] {
  if (merge.ok) return merge.originalVerdicts;
  return [
    {
      subject: NAMES.original,
      verdict: 'Warning',
      reason: 'OriginalInvalid',
      message: `the platform's pull secret ${merge.problem.message}; mend spec.pullSecret of the HostedCluster`,
    },
  ];
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

/** A stand-alone cluster keeps it in `openshift-config`; that of a hosted cluster comes from HyperShift. */
function mendPlatform(namespace: string | undefined): string {
  return namespace === NAMES.configNamespace
    ? `mend "Secret/${namespace}/${NAMES.platform}"`
    : 'mend spec.pullSecret of the HostedCluster';
}

function originalInvalid({ platform, platformNamespace }: PullSecrets, fault: string): Problem {
  const namespace = platform?.metadata.namespace ?? platformNamespace;
  return {
    disposition: 'terminal',
    code: 'OriginalInvalid',
    message: `Cannot use "Secret/${namespace ?? 'control plane namespace'}/${NAMES.platform}": it ${fault}`,
    hint: `Nodes keep the last good pull secret; ${mendPlatform(namespace)}`,
  };
}

function platformText({
  platform: secret,
  platformNamespace,
}: PullSecrets): { text: Redacted<string>; value: Redacted<string> } | { problem: Problem } {
  const namespace = secret?.metadata.namespace ?? platformNamespace;
  const place = `Secret/${namespace ?? 'control plane namespace'}/${NAMES.platform}`;
  if (secret === undefined) {
    const remedy =
      namespace === NAMES.configNamespace
        ? 'Create it, of type kubernetes.io/dockerconfigjson'
        : 'HyperShift copies it there from spec.pullSecret of the HostedCluster';
    return {
      problem: {
        disposition: 'waiting',
        afterMs: 10_000,
        code: 'OriginalMissing',
        message: `Cannot read "${place}": failed to get original pull secret, it does not exist`,
        hint: `${remedy}; nothing is changed until it is there`,
      },
    };
  }
  const text = secretText(secret);
  if (text === undefined || reveal(text) === '') {
    return {
      problem: {
        disposition: 'terminal',
        code: 'OriginalKeyMissing',
        message: `Cannot use "${place}": original pull secret does not contain ${NAMES.dataKey} key`,
        hint: `Nodes keep the last good pull secret; ${mendPlatform(namespace)}`,
      },
    };
  }
  // The very bytes of the platform's secret, also where they are no UTF-8.
  return { text, value: dataValue(secret) ?? toBase64(text) };
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
      message: `the Secret has type "${type}", wanted "${NAMES.secretType}"; its content is used all the same`,
    },
  ];
}

/** The text under `.dockerconfigjson`, or undefined. */
export function secretText(secret: KubeObject): Redacted<string> | undefined {
  const value = dataValue(secret);
  return value === undefined ? undefined : redact(Buffer.from(reveal(value), 'base64').toString('utf8'));
}

function dataValue(secret: KubeObject): Redacted<string> | undefined {
  return (secret as SecretObject).data?.[NAMES.dataKey];
}

function toBase64(text: Redacted<string>): Redacted<string> {
  return redact(Buffer.from(reveal(text)).toString('base64'));
}

function lastGood(global: KubeObject | undefined): { lastGood?: LastGood } {
  const text = global === undefined ? undefined : secretText(global);
  const annotation = global?.metadata.annotations?.[ADDITIONAL_KEYS_ANNOTATION];
  if (text === undefined || typeof annotation !== 'string') return {};
  return { lastGood: { text, keys: parseKeys(annotation) } };
}

function parseKeys(annotation: string): readonly string[] {
  try {
    const keys: unknown = JSON.parse(annotation);
    return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [];
  } catch {
    return [];
  }
}
