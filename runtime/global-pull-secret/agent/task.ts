/**
 * The node task of the global pull secret: reads the mounted secrets, and says what should be in the kubelet's file.
 *
 * Source of the rule: requirement 1: global-pull-secret when it is present and not empty, else original-pull-secret; an
 * invalid global one is an error, because falling back would take the tenant's credentials away without a word. Where the
 * cluster has neither, there is nothing to bring; what this agent had brought goes, and what others wrote stays.
 */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { FileContent } from '../../host/atomic-file.ts';
import type { Ledger, Look, NodeTask } from '../../node/task.ts';
import {
  CONFIRM_REMOVAL,
  type HeldEntryRemoval,
  judgedMark,
  NODE_HOLDS_REMOVAL,
  type RemovalOptions,
  removalText,
  UNJUDGED,
} from '../../rules/docker-config/removal-guard.ts';
import { describeError, PullwrightError } from '../../rules/errors.ts';
import { decodeUtf8 } from '../../rules/go/bytes.ts';
import { type Redacted, redact, reveal } from '../../rules/redacted.ts';
import { readCanary, waitsForFirst } from '../../rules/rollout/canary.ts';
import { ABSENT } from '../../rules/rollout/journal.ts';
import { choosePullSecret } from '../reconciler/source.ts';
import {
  type AgentDocument,
  EMPTY_DOCUMENT,
  type Foreign,
  parseDocument,
  type RemovalGuard,
  wantedDocument,
} from './document.ts';
import { type MountedSecret, readSource, sha256Of } from './mounted-secret.ts';
import type { SourceName, WatchedSecret } from './secret-watch.ts';

/** Where things are. */
export interface AgentTaskOptions {
  readonly globalFile: string;
  readonly originalFile: string;
  readonly file: string;
  readonly unit: string;
  readonly foreign: Foreign;
  /** How much a source may lose whose writer has not judged it. @default {whoever writes the source has judged it} */
  readonly removals?: RemovalOptions;
  /** Removals that may go on, beside those that the Secret names. */
  readonly confirmed?: readonly string[];
  /** Milliseconds since 1970. @default {the clock of the machine} */
  readonly now?: () => number;
  /** @default {nobody is waited for} */
  readonly nodeName?: string;
  /** Value of a label of the node; undefined while it is not known. @default it is never known */
  readonly poolOf?: (label: string) => string | undefined;
  /** Milliseconds from any moment, never set back. */
  readonly monotonic: () => number;
  /** The secrets as the API server has them; undefined while nobody knows. @default nobody asks it */
  readonly watched?: (name: SourceName) => WatchedSecret | undefined;
}

/** A Secret that is made again at once, as our reconciler does with what somebody deleted, costs no pod its credentials. */
const ABSENCE_MS = 60_000;

interface Memory {
  /** When both secrets were first missed; undefined while one of them is there. */
  missedAt: number | undefined;
  /** What the mounts held when the watch last brought the newest. */
  readonly mounts: Map<SourceName, string>;
}

export function agentTask(options: AgentTaskOptions): NodeTask {
  const memory: Memory = { missedAt: undefined, mounts: new Map() };
  return {
    name: 'global-pull-secret',
    file: options.file,
    unit: options.unit,
    look: (present, ledger) => look({ options, memory }, present, ledger),
  };
}

interface Chosen {
  readonly from: SourceName;
  readonly document: AgentDocument;
  readonly source: MountedSecret;
}

interface Place {
  readonly options: AgentTaskOptions;
  readonly memory: Memory;
}

function look({ options, memory }: Place, file: FileContent | undefined, ledger: Ledger): Look {
  const there = file === undefined ? undefined : readable(file.bytes);
  const present = file === undefined ? ABSENT : (there?.digest ?? 'unreadable');
  try {
    const chosen = chosenSource(options, memory);
    if (chosen !== undefined) memory.missedAt = undefined;
    else if (Object.keys(ledger).length === 0) return { present, wanted: undefined, idle: NOTHING };
    else assertGone(options, memory);
    return lookFor(chosen, options, { there, present, ledger });
  } catch (error) {
    const problem =
      error instanceof PullwrightError
        ? error
        : new PullwrightError(describeError(error), { code: 'SourceInvalid' });
    return { present, wanted: undefined, problem };
  }
}

interface There {
  readonly there: AgentDocument | undefined;
  readonly present: string;
  readonly ledger: Ledger;
}

function lookFor(
  chosen: Chosen | undefined,
  options: AgentTaskOptions,
  { there, present, ledger }: There,
): Look {
  const { from, document: source } = chosen ?? { from: 'neither', document: EMPTY_DOCUMENT };
  const foreign = chosen === undefined ? 'keep' : options.foreign;
  const guard = chosen === undefined ? undefined : guardOf(chosen.source, options);
  const wanted = wantedDocument(source, there, { foreign, ledger, guard });
  const { digest } = wanted.document;
  const facts = factsOf(present, source.digest, chosen);
  const changes = there !== undefined && digest !== present;
  const waits = changes ? waitsFor(chosen?.source, source.digest, options) : undefined;
  if (waits !== undefined) return { present, wanted: undefined, problem: waits, facts };
  const { removes, ledgerDuring, ledgerAfter } = wanted;
  const { bytes, entries } = wanted.document;
  return {
    present,
    ...problemOf(from, source, wanted.held),
    from,
    entries,
    foreign: wanted.foreign.length,
    facts,
    wanted: { digest, source: source.digest, removes, bytes, ledgerDuring, ledgerAfter },
  };
}

/** A node that has nothing to lose waits for nobody. */
function waitsFor(
  source: MountedSecret | undefined,
  digest: string,
  { nodeName, poolOf }: AgentTaskOptions,
): PullwrightError | undefined {
  const told = readCanary(source?.canary);
  if (told === undefined || nodeName === undefined) return undefined;
  const pool = told.by === undefined ? '' : poolOf?.(told.by);
  const first = waitsForFirst(told, { of: digest, node: nodeName, pool });
  if (first === undefined) return undefined;
  return new PullwrightError(`The file stays as it is: this node waits for ${first}`, {
    code: 'CanaryFirst',
    disposition: 'waiting',
  });
}

/** What the reconciler holds against what it wrote: a restart of the kubelet, and entries of others, make no difference to it. */
function factsOf(
  digest: string,
  sourceDigest: string,
  chosen: { readonly from: string; readonly source: MountedSecret } | undefined,
): NonNullable<Look['facts']> {
  const version = chosen?.source.resourceVersion;
  return {
    digest,
    sourceDigest,
    source: chosen?.from ?? 'none',
    ...(version === undefined ? {} : { resourceVersion: version }),
  };
}

/** Faults that a message names; who corrects the Secret sees all of them with `validate`. */
const MAX_FAULTS = 3;

/** A mark says that who wrote the source has judged what it no longer has, with the confirmations of people at hand. */
function guardOf(
  source: MountedSecret,
  { removals, confirmed = [], now = Date.now }: AgentTaskOptions,
): RemovalGuard | undefined {
  if (removals === undefined) return undefined;
  const text = redact(decodeUtf8(reveal(source.bytes)));
  if (source.judged === judgedMark(text)) return undefined;
  const all = [...confirmed, ...(source.confirmed ?? [])];
  const options = source.judged === UNJUDGED ? { ...removals, share: 0 } : removals;
  return { options, confirmed: all, now: new Date(now()) };
}

function problemOf(
  from: string,
  source: AgentDocument,
  held: HeldEntryRemoval | undefined,
): Pick<Look, 'problem'> {
  const partly = leftOut(from, source);
  if (held === undefined) return partly;
  const byItself = held.until === undefined ? '' : `, or until ${held.until}`;
  const more = partly.problem === undefined ? '' : `. ${partly.problem.message}`;
  return {
    problem: new PullwrightError(
      `The ${from} pull secret ${removalText(held)} stay on the node until the annotation ${CONFIRM_REMOVAL}: "${held.hash}" on that Secret, or --confirm-removal=${held.hash}, confirms it${byItself}${more}`,
      { code: NODE_HOLDS_REMOVAL, hint: 'Put back what is missing, or confirm the removal' },
    ),
  };
}

function leftOut(from: string, { faults }: AgentDocument): Pick<Look, 'problem'> {
  if (faults.length === 0) return {};
  const rest = faults.length > MAX_FAULTS ? `; and ${faults.length - MAX_FAULTS} more` : '';
  const what = faults.slice(0, MAX_FAULTS).join('; ');
  return {
    problem: new PullwrightError(`Left out what cannot be used of the ${from} pull secret: ${what}${rest}`, {
      code: 'SourcePartlyInvalid',
      hint: 'An entry that is left out stays as it was last good. Correct the Secret that is mounted here',
    }),
  };
}

const NOTHING =
  'The cluster has neither a global nor an original pull secret, so there is nothing to bring: the file stays as it is';

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

/** Which source counts, and what it says; undefined where both are mounted and neither exists. */
function chosenSource(options: AgentTaskOptions, memory: Memory): Chosen | undefined {
  const read = (name: SourceName): MountedSecret =>
    newest(name, readSource(options[`${name}File`]), options, memory);
  const sources = { global: read('global'), original: read('original') };
  const choice = choosePullSecret(sources.global.file, sources.original.file);
  const subject = (name: 'global' | 'original'): string => `${name} pull secret "${sources[name].path}"`;
  if (choice.ok) {
    const source = sources[choice.used];
    return { from: choice.used, document: parseDocument(source.bytes, subject(choice.used)), source };
  }
  for (const name of ['global', 'original'] as const) {
    const { error, bytes, file } = sources[name];
    if (error !== undefined) throw error;
    // Says in our words what is wrong with it, without a character of the text.
    if (file.state === 'present' && reveal(bytes).length > 0) parseDocument(bytes, subject(name));
  }
  if (sources.original.file.state === 'present') parseDocument(sources.original.bytes, subject('original'));
  if (existsSync(dirname(options.originalFile)) && existsSync(dirname(options.globalFile))) return undefined;
  throw new PullwrightError(`Cannot read ${subject('original')}: it does not exist`, {
    code: 'SourceMissing',
    hint: 'Mount Secret kube-system/original-pull-secret there, optional where the cluster has none',
  });
}

/**
 * The watch is ahead of the mount as long as it is open. When it is not, the mount is newer as soon as it holds something else
 * than it held while the watch was open.
 */
function newest(
  name: SourceName,
  mount: MountedSecret,
  { watched }: AgentTaskOptions,
  { mounts }: Memory,
): MountedSecret {
  const seen = watched?.(name);
  if (seen === undefined) return mount;
  const held = sha256Of(mount);
  if (seen.live) mounts.set(name, held);
  else if (mounts.get(name) !== held) return mount;
  if (seen.bytes === undefined)
    return { path: mount.path, file: { state: 'absent' }, bytes: redact(new Uint8Array()) };
  const content = redact(Buffer.from(reveal(seen.bytes)).toString('utf8'));
  const { bytes, judged, canary, confirmed, resourceVersion } = seen;
  return {
    path: mount.path,
    file: { state: 'present', content },
    bytes,
    judged,
    canary,
    confirmed,
    resourceVersion,
  };
}

/** A file that nobody could read is replaced; what it says is of no interest. */
function readable(bytes: Redacted<Uint8Array>): AgentDocument | undefined {
  try {
    return parseDocument(bytes, 'the present file');
  } catch {
    return undefined;
  }
}
