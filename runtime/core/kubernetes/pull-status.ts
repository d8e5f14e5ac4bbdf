/**
 * `PullStatus` (pullwright.dev/v1alpha1): where what has no status of its own reports. Named after the object it speaks of,
 * in that object's namespace, one verdict per entry.
 */
import { withoutUserInfo } from '../text.ts';
import { type ConditionInput, conditionsIn, nextConditions } from './conditions.ts';
import type { KubeObject } from './object.ts';

export const PULL_STATUS = { apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullStatus' } as const;
export const PULL_STATUS_CRD_NAME = 'pullstatuses.pullwright.dev';

/** Verdict on one entry of the object. */
export interface EntryStatus {
  /** What is judged: a registry key, an image, a node, a namespace. */
  readonly subject: string;
  readonly verdict: 'Accepted' | 'Shadowed' | 'Rejected' | 'Warning' | 'Pending';
  /** CamelCase, stable. */
  readonly reason: string;
  /** What is the case and what to do; never a value. */
  readonly message: string;
  /** Of a credential: when it expires, RFC 3339. */
  readonly expiresAt?: string;
  /** Of a credential: when a registry last took it, RFC 3339. */
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
  /** Extra facts for people and programs: counts, hashes. */
  readonly summary?: Readonly<Record<string, string | number>>;
  /** The object as it is now, so that transition times survive. */
  readonly present: KubeObject | undefined;
  readonly now: Date;
}

/** At most this many verdicts are kept, those on what is not in order first; a last one says how many were dropped. */
export const MAX_VERDICTS = 200;

/** The object to apply (no status: that is a subresource) and its status. The name is `<kind>-<name>` in lower case. */
export function pullStatus(input: PullStatusInput): {
  readonly object: KubeObject;
  readonly status: Readonly<Record<string, unknown>>;
} {
  const { kind, name, namespace } = input.about;
  return {
    object: { ...PULL_STATUS, metadata: { name: pullStatusName(kind, name), namespace } },
    status: {
      about: { apiVersion: input.about.apiVersion, kind, name },
      reporter: input.reporter,
      conditions: nextConditions(conditionsIn(input.present), input.conditions, input.now),
      verdicts: limited(input.verdicts).map((one) => ({
        ...one,
        // What tenants write can have any length; the schema of the status is bounded.
        message: withoutUserInfo(one.message).slice(0, 4096),
        subject: withoutUserInfo(one.subject).slice(0, 1024),
      })),
      ...(input.summary === undefined
        ? {}
        : {
            summary: Object.fromEntries(
              Object.entries(input.summary).map(([key, value]) => [key, String(value)]),
            ),
          }),
    },
  };
}

/** `secret-additional-pull-secret`: unique per kind and name within the namespace. */
export function pullStatusName(kind: string, name: string): string {
  return `${kind.toLowerCase()}-${name}`.slice(0, 253);
}

/** Subject of a verdict on a node. */
export function nodeSubject(node: string): string {
  return `node ${node}`;
}

function limited(verdicts: readonly EntryStatus[]): readonly EntryStatus[] {
  if (verdicts.length <= MAX_VERDICTS) return verdicts;
  const rest = verdicts.length - MAX_VERDICTS + 1;
  const [good = [], bad = []] = [true, false].map((accepted) =>
    verdicts.filter(({ verdict }) => (verdict === 'Accepted') === accepted),
  );
  return [
    ...[...bad, ...good].slice(0, MAX_VERDICTS - 1),
    {
      subject: '(more)',
      verdict: 'Warning',
      reason: 'Truncated',
      message: `${rest} more verdicts are not shown`,
    },
  ];
}

/** Name of the CronJob, and of what belongs to it. */
export const VERIFY = 'pullwright-verify';
