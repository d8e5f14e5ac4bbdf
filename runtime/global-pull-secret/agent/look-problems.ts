/** What a look at a node may not do by itself, and what it says of it: removals that are held, entries that cannot be used. */
import type { Look } from '../../node/task.ts';
import {
  CONFIRM_REMOVAL,
  type HeldEntryRemoval,
  judgedMark,
  NODE_HOLDS_REMOVAL,
  type RemovalOptions,
  removalText,
  UNJUDGED,
} from '../../rules/docker-config/removal-guard.ts';
import { PullwrightError } from '../../rules/errors.ts';
import { decodeUtf8 } from '../../rules/go/bytes.ts';
import { redact, reveal } from '../../rules/redacted.ts';
import type { AgentDocument, RemovalGuard } from './document.ts';
import type { MountedSecret } from './mounted-secret.ts';

export interface GuardOptions {
  /** How much a source may lose whose writer has not judged it. @default {whoever writes the source has judged it} */
  readonly removals?: RemovalOptions;
  /** Removals that may go on, beside those that the Secret names. */
  readonly confirmed?: readonly string[];
  /** Milliseconds since 1970. @default {the clock of the machine} */
  readonly now?: () => number;
}

/** Faults that a message names; who corrects the Secret sees all of them with `validate`. */
const MAX_FAULTS = 3;

/** A mark says that who wrote the source has judged what it no longer has, with the confirmations of people at hand. */
export function guardOf(
  source: MountedSecret,
  { removals, confirmed = [], now = Date.now }: GuardOptions,
): RemovalGuard | undefined {
  if (removals === undefined) return undefined;
  const text = redact(decodeUtf8(reveal(source.bytes)));
  if (source.judged === judgedMark(text)) return undefined;
  const all = [...confirmed, ...(source.confirmed ?? [])];
  const options = source.judged === UNJUDGED ? { ...removals, share: 0 } : removals;
  return { options, confirmed: all, now: new Date(now()) };
}

export function lookProblem(
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
      `The ${from} pull secret ${removalText(held)} on the node until the annotation ${CONFIRM_REMOVAL}: "${held.hash}" on that Secret, or --confirm-removal=${held.hash}, confirms it${byItself}${more}`,
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
