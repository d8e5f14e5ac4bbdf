/**
 * The node task of the global pull secret: reads the mounted secrets and computes the desired kubelet file.
 *
 * Source of the rule: requirement 1: global-pull-secret when present and not empty, else original-pull-secret. An invalid
 * global one is an error, because a fallback would silently remove the tenant's credentials. When the cluster has neither,
 * the agent removes the entries that it wrote; foreign entries stay.
 */
import { PullwrightError } from '../../core/errors.ts';
import { decodeUtf8 } from '../../core/go/text.ts';
import { defined } from '../../core/record.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import { ABSENT } from '../../node/checkpoint.ts';
import { asProblem } from '../../node/restart.ts';
import { NODE_HOLDS_REMOVAL, type NodeTask, type Observation, type OwnedEntries } from '../../node/task.ts';
import {
  CONFIRM_REMOVAL,
  judgedMark,
  type PendingRemoval,
  type RemovalOptions,
  removalText,
  UNJUDGED,
} from '../removal-guard.ts';
import {
  type AgentDocument,
  EMPTY_DOCUMENT,
  type Foreign,
  parseDocument,
  type RemovalGuard,
  wantedDocument,
} from './document.ts';
import { type ChosenSource, chosenSource, type Mounts, type SecretPlaces } from './sources.ts';

// Problems that a pass reports: held removals, invalid entries.

export interface GuardOptions {
  /** Limits for a source without the mark. @default {the writer of the source has checked its removals} */
  readonly removals?: RemovalOptions;
  /** Confirmed removals, in addition to those in the Secret's annotation. */
  readonly confirmed?: readonly string[];
  /** Milliseconds since 1970. @default {the system clock} */
  readonly now?: () => number;
}

/** Faults in one message; `validate` prints all of them. */
const MAX_FAULTS = 3;

/** Returns undefined for a source with a valid mark: its writer has checked the removals against the confirmations. */
export function guardOf(
  { document, source }: ChosenSource,
  { removals, confirmed = [], now = Date.now }: GuardOptions,
): RemovalGuard | undefined {
  if (removals === undefined) return undefined;
  const text = redact(decodeUtf8(reveal(document.bytes)));
  if (source.judged === judgedMark(text)) return undefined;
  const all = [...confirmed, ...(source.confirmed ?? [])];
  const options = source.judged === UNJUDGED ? { ...removals, share: 0 } : removals;
  return { options, confirmed: all, now: new Date(now()) };
}

function lookProblem(from: string, source: AgentDocument, held: PendingRemoval | undefined) {
  const partly = leftOut(from, source);
  if (held === undefined) return partly;
  const byItself = held.until === undefined ? '' : `, or until ${held.until}`;
  const more = partly === undefined ? '' : `. ${partly.message}`;
  return new PullwrightError(
    `The ${from} pull secret ${removalText(held)} on the node until the annotation ${CONFIRM_REMOVAL}: "${held.hash}" on that Secret, or --confirm-removal=${held.hash}, confirms it${byItself}${more}`,
    { code: NODE_HOLDS_REMOVAL, hint: 'Restore the missing entries, or confirm the removal' },
  );
}

function leftOut(from: string, { faults }: AgentDocument): PullwrightError | undefined {
  if (faults.length === 0) return undefined;
  const rest = faults.length > MAX_FAULTS ? `; and ${faults.length - MAX_FAULTS} more` : '';
  const what = faults.slice(0, MAX_FAULTS).join('; ');
  return new PullwrightError(`Ignored invalid parts of the ${from} pull secret: ${what}${rest}`, {
    code: 'SourcePartlyInvalid',
    hint: 'The last valid value of an ignored entry stays in use. Fix the mounted Secret',
  });
}

/** Options of the node task. */
export interface AgentTaskOptions extends SecretPlaces, GuardOptions {
  readonly file: string;
  readonly unit: string;
  readonly foreign: Foreign;
  /** Monotonic clock in milliseconds. */
  readonly monotonic: () => number;
}

/** Grace period for a Secret that is deleted and recreated, as our reconciler does: pods keep their credentials. */
const ABSENCE_MS = 60_000;

export function agentTask(options: AgentTaskOptions): NodeTask {
  const mounts: Mounts = new Map();
  /** When both secrets were first found missing; undefined while one exists. */
  let missedAt: number | undefined;
  const look: NodeTask['look'] = (file, owned) => {
    const there = file === undefined ? undefined : readable(file.bytes);
    const present = file === undefined ? ABSENT : (there?.digest ?? 'unreadable');
    try {
      const chosen = chosenSource(options, mounts);
      if (chosen !== undefined) missedAt = undefined;
      else if (Object.keys(owned).length === 0) return { present, wanted: undefined, idle: NOTHING };
      else if (!isKnownGone(options)) {
        missedAt ??= options.monotonic();
        assertGone(missedAt, options);
      }
      return lookFor(chosen, options, there, present, owned);
    } catch (error) {
      return { present, wanted: undefined, problem: asProblem(error, 'SourceInvalid') };
    }
  };
  return { secret: true, file: options.file, unit: options.unit, look };
}

function lookFor(
  chosen: ChosenSource | undefined,
  options: AgentTaskOptions,
  there: AgentDocument | undefined,
  present: string,
  owned: OwnedEntries,
): Observation {
  const { from, document: source } = chosen ?? { from: 'neither', document: EMPTY_DOCUMENT };
  const foreign = chosen === undefined ? 'keep' : options.foreign;
  const guard = chosen === undefined ? undefined : guardOf(chosen, options);
  const wanted = wantedDocument(source, there, { foreign, owned, guard });
  const { digest, bytes, entries } = wanted.document;
  const { removes, ownedDuring, ownedAfter } = wanted;
  return {
    present,
    ...defined({ problem: lookProblem(from, source, wanted.held) }),
    from,
    entries,
    foreign: wanted.foreign.length,
    // The reconciler compares these with the Secret it wrote; kubelet restarts and foreign entries do not change them.
    facts: {
      digest: present,
      sourceDigest: source.digest,
      source: chosen?.from ?? 'none',
      ...defined({ resourceVersion: chosen?.source.resourceVersion }),
    },
    wanted: { digest, source: source.digest, removes, bytes, ownedDuring, ownedAfter },
  };
}

const NOTHING =
  'The cluster has neither a global nor an original pull secret, so there is nothing to sync: the file stays unchanged';

/** Both watches are open and report no Secret. A mount may lag by a minute, so it proves nothing. */
function isKnownGone({ watched }: AgentTaskOptions): boolean {
  return (['global', 'original'] as const).every((name) => watched?.(name)?.live === true);
}

/** @throws PullwrightError during the grace period, while the secrets may still be recreated */
function assertGone(missedAt: number, { monotonic }: AgentTaskOptions): void {
  const left = missedAt + ABSENCE_MS - monotonic();
  if (left <= 0) return;
  throw new PullwrightError(
    `Cannot find a pull secret: both were deleted; their entries are removed from the node in ${Math.ceil(left / 1000 / 30) * 30} s unless one is recreated`,
    { code: 'SourceMissing', hint: 'No action is required if they were deleted on purpose' },
  );
}

/** Returns undefined for an unreadable file, which is replaced. */
function readable(bytes: Redacted<Uint8Array>): AgentDocument | undefined {
  try {
    return parseDocument(bytes, 'the current file');
  } catch {
    return undefined;
  }
}
