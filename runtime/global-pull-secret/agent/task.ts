/**
 * The node task of the global pull secret: reads the mounted secrets, and says what should be in the kubelet's file.
 *
 * Source of the rule: requirement 1: global-pull-secret when it is present and not empty, else original-pull-secret; an
 * invalid global one is an error, because falling back would take the tenant's credentials away without a word. Where the
 * cluster has neither, there is nothing to sync; entries that this agent wrote are removed, foreign ones stay.
 */
import { PullwrightError } from '../../core/errors.ts';
import { decodeUtf8 } from '../../core/go/text.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import type { FileContent } from '../../node/atomic-file.ts';
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

// Problems that a pass reports instead of writing: held removals, invalid entries.

export interface GuardOptions {
  /** The share that a source without the mark may lose. @default {the writer of the source has checked its removals} */
  readonly removals?: RemovalOptions;
  /** Removals that may go on, beside those that the Secret names. */
  readonly confirmed?: readonly string[];
  /** Milliseconds since 1970. @default {the clock of the machine} */
  readonly now?: () => number;
}

/** Faults that a message names; who corrects the Secret sees all of them with `validate`. */
const MAX_FAULTS = 3;

/** With the mark, the writer of the source has checked its removals against the confirmations. */
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

export function lookProblem(
  from: string,
  source: AgentDocument,
  held: PendingRemoval | undefined,
): Pick<Observation, 'problem'> {
  const partly = leftOut(from, source);
  if (held === undefined) return partly;
  const byItself = held.until === undefined ? '' : `, or until ${held.until}`;
  const more = partly.problem === undefined ? '' : `. ${partly.problem.message}`;
  return {
    problem: new PullwrightError(
      `The ${from} pull secret ${removalText(held)} on the node until the annotation ${CONFIRM_REMOVAL}: "${held.hash}" on that Secret, or --confirm-removal=${held.hash}, confirms it${byItself}${more}`,
      { code: NODE_HOLDS_REMOVAL, hint: 'Put back what is missing, or confirm the removal' },
    ),
  };
}

function leftOut(from: string, { faults }: AgentDocument): Pick<Observation, 'problem'> {
  if (faults.length === 0) return {};
  const rest = faults.length > MAX_FAULTS ? `; and ${faults.length - MAX_FAULTS} more` : '';
  const what = faults.slice(0, MAX_FAULTS).join('; ');
  return {
    problem: new PullwrightError(`Ignored invalid parts of the ${from} pull secret: ${what}${rest}`, {
      code: 'SourcePartlyInvalid',
      hint: 'The last valid value of an ignored entry stays in use. Correct the Secret that is mounted here',
    }),
  };
}

/** Where things are. */
export interface AgentTaskOptions extends SecretPlaces, GuardOptions {
  readonly file: string;
  readonly unit: string;
  readonly foreign: Foreign;
  /** Milliseconds from any moment, never set back. */
  readonly monotonic: () => number;
}

/** A Secret that is recreated at once, as our reconciler does after a deletion, costs no pod its credentials. */
const ABSENCE_MS = 60_000;

interface Memory {
  /** When both secrets were first missed; undefined while one of them is there. */
  missedAt: number | undefined;
  readonly mounts: Mounts;
}

export function agentTask(options: AgentTaskOptions): NodeTask {
  const memory: Memory = { missedAt: undefined, mounts: new Map() };
  return {
    name: 'global-pull-secret',
    secret: true,
    file: options.file,
    unit: options.unit,
    look: (present, ledger) => look(options, memory, present, ledger),
  };
}

function look(
  options: AgentTaskOptions,
  memory: Memory,
  file: FileContent | undefined,
  ledger: OwnedEntries,
): Observation {
  const there = file === undefined ? undefined : readable(file.bytes);
  const present = file === undefined ? ABSENT : (there?.digest ?? 'unreadable');
  try {
    const chosen = chosenSource(options, memory.mounts);
    if (chosen !== undefined) memory.missedAt = undefined;
    else if (Object.keys(ledger).length === 0) return { present, wanted: undefined, idle: NOTHING };
    else if (!isKnownGone(options)) assertGone(options, memory);
    return lookFor(chosen, options, there, present, ledger);
  } catch (error) {
    return { present, wanted: undefined, problem: asProblem(error, 'SourceInvalid') };
  }
}

function lookFor(
  chosen: ChosenSource | undefined,
  options: AgentTaskOptions,
  there: AgentDocument | undefined,
  present: string,
  ledger: OwnedEntries,
): Observation {
  const { from, document: source } = chosen ?? { from: 'neither', document: EMPTY_DOCUMENT };
  const foreign = chosen === undefined ? 'keep' : options.foreign;
  const guard = chosen === undefined ? undefined : guardOf(chosen, options);
  const wanted = wantedDocument(source, there, { foreign, ledger, guard });
  const { digest, bytes, entries } = wanted.document;
  const { removes, ledgerDuring, ledgerAfter } = wanted;
  const version = chosen?.source.resourceVersion;
  return {
    present,
    ...lookProblem(from, source, wanted.held),
    from,
    entries,
    foreign: wanted.foreign.length,
    // What the reconciler holds against what it wrote: a restart of the kubelet, and entries of others, make no difference to it.
    facts: {
      digest: present,
      sourceDigest: source.digest,
      source: chosen?.from ?? 'none',
      ...(version === undefined ? {} : { resourceVersion: version }),
    },
    wanted: { digest, source: source.digest, removes, bytes, ledgerDuring, ledgerAfter },
  };
}

const NOTHING =
  'The cluster has neither a global nor an original pull secret, so there is nothing to bring: the file stays as it is';

/** The API server itself says that there is none, and has for a while: a mount is a minute behind it, and may only be late. */
function isKnownGone({ watched }: AgentTaskOptions): boolean {
  return (['global', 'original'] as const).every((name) => watched?.(name)?.live === true);
}

/** @throws PullwrightError as long as the secrets may be about to come back */
function assertGone({ monotonic }: AgentTaskOptions, memory: Memory): void {
  const now = monotonic();
  memory.missedAt ??= now;
  const left = memory.missedAt + ABSENCE_MS - now;
  if (left <= 0) return;
  throw new PullwrightError(
    `Cannot find a pull secret: both are gone; what came from them is removed when that is still so in ${Math.ceil(left / 1000 / 30) * 30} s`,
    { code: 'SourceMissing', hint: 'Nothing is to be done when they were deleted on purpose' },
  );
}

/** An unreadable file is replaced; its content does not matter. */
function readable(bytes: Redacted<Uint8Array>): AgentDocument | undefined {
  try {
    return parseDocument(bytes, 'the present file');
  } catch {
    return undefined;
  }
}
