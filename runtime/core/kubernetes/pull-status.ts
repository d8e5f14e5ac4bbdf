/**
 * `PullStatus` (pullwright.dev/v1alpha1): the status of an object that has none itself. It is named after that object, in the
 * same namespace, with one verdict per entry.
 */
import { mapValues } from '../record.ts';
import { someOf, withoutUserInfo } from '../text.ts';
import { type ConditionInput, conditionsIn, nextConditions } from './conditions.ts';
import type { KubeObject } from './object.ts';

export const PULL_STATUS = { apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullStatus' } as const;
export const PULL_STATUS_CRD_NAME = 'pullstatuses.pullwright.dev';

/** Verdict on one entry of the object. */
export interface EntryStatus {
  /** Subject of the verdict: a registry key, an image, a node, a namespace. */
  readonly subject: string;
  readonly verdict: 'Accepted' | 'Shadowed' | 'Rejected' | 'Warning' | 'Pending';
  /** CamelCase, stable. */
  readonly reason: string;
  /** The state and the fix; never a value of a Secret. */
  readonly message: string;
  /** When the credential expires, RFC 3339. */
  readonly expiresAt?: string;
  /** When a registry last accepted the credential, RFC 3339. */
  readonly lastOk?: string;
}

/** The object that a PullStatus describes. */
export interface PullStatusTarget {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** Input of {@link pullStatus}. */
export interface PullStatusInput {
  /** Reconciler that reports. */
  readonly reporter: string;
  readonly about: PullStatusTarget;
  readonly conditions: readonly ConditionInput[];
  readonly verdicts: readonly EntryStatus[];
  /** Additional facts: counts, hashes. */
  readonly summary?: Readonly<Record<string, string | number>>;
  /** The current object, whose transition times are kept. */
  readonly present: KubeObject | undefined;
  readonly now: Date;
}

/** Maximum number of verdicts. Accepted ones are dropped first; a last verdict counts the dropped ones. */
export const MAX_VERDICTS = 200;

/** The object to apply (without status, which is a subresource) and its status. The name is `<kind>-<name>` in lower case. */
export function pullStatus(input: PullStatusInput): {
  readonly object: KubeObject;
  readonly status: Readonly<Record<string, unknown>>;
} {
  const { kind, name, namespace } = input.about;
  const { summary } = input;
  return {
    object: { ...PULL_STATUS, metadata: { name: pullStatusName(kind, name), namespace } },
    status: {
      about: { apiVersion: input.about.apiVersion, kind, name },
      reporter: input.reporter,
      conditions: nextConditions(conditionsIn(input.present), input.conditions, input.now),
      verdicts: limited(input.verdicts).map((one) => ({
        ...one,
        // Text from tenants can have any length; the schema of the status is bounded.
        message: withoutUserInfo(one.message).slice(0, 4096),
        subject: withoutUserInfo(one.subject).slice(0, 1024),
      })),
      ...(summary && { summary: mapValues(summary, String) }),
    },
  };
}

/** `secret-additional-pull-secret`: unique per kind and name within the namespace. */
export function pullStatusName(kind: string, name: string): string {
  return `${kind.toLowerCase()}-${name}`.slice(0, 253);
}

/** The subjects of verdicts in a sentence: quoted, at most ten. */
export function subjectsOf(verdicts: readonly EntryStatus[]): string {
  return someOf(
    verdicts.map(({ subject }) => `"${subject}"`),
    10,
  );
}

/** Verdicts in the status of an object; empty without a status. */
export function verdictsOf(object: KubeObject | undefined): readonly EntryStatus[] {
  return (object?.status as { readonly verdicts?: readonly EntryStatus[] } | undefined)?.verdicts ?? [];
}

/** Subject of a verdict on a node. */
export function nodeSubject(node: string): string {
  return `node ${node}`;
}

function limited(verdicts: readonly EntryStatus[]): readonly EntryStatus[] {
  if (verdicts.length <= MAX_VERDICTS) return verdicts;
  const rest = verdicts.length - MAX_VERDICTS + 1;
  const rank = ({ verdict }: EntryStatus): number => (verdict === 'Accepted' ? 1 : 0);
  return [
    ...verdicts.toSorted((a, b) => rank(a) - rank(b)).slice(0, MAX_VERDICTS - 1),
    {
      subject: '(more)',
      verdict: 'Warning',
      reason: 'Truncated',
      message: `${rest} more verdicts are not shown`,
    },
  ];
}

/** Name of the verify CronJob and of its objects. */
export const VERIFY = 'pullwright-verify';
