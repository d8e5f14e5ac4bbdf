/**
 * Feeds a parser texts that are almost right, and says what it did wrong.
 *
 * The time that is measured is that of the processor: on a machine with other work, waiting looks like a case that hangs.
 */
import { inspect } from 'node:util';
import { describeError, PullwrightError, UsageError } from '../../runtime/core/errors.ts';
import { RegistryError } from '../../runtime/registry/transport.ts';
import { findPlanted } from '../support/canary.ts';
import { randomFrom } from '../support/random.ts';
import { mutated } from './mutate.ts';
import type { Parser } from './parser.ts';

export interface Finding {
  readonly parser: string;
  /** Makes the very same text again: `SEED=<seed> npm run fuzz -- --only "<parser>"`. */
  readonly seed: number;
  readonly what: string;
  readonly text: string;
}

/** A case that takes longer has hung. Of the processor's time, so that it does not count what the machine does beside it. */
const HANG_MS = 10_000;

/** Milliseconds of the processor that this process has used. */
function used(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Findings, and the number of accepted texts: a parser that rejects every text was not tested. */
export interface Fuzzed {
  readonly findings: readonly Finding[];
  readonly taken: number;
}

/** Runs `cases` texts. Every text has a seed of its own, so that one case can be made again. */
export async function fuzz(
  parser: Parser,
  { seed, cases }: { readonly seed: number; readonly cases: number },
): Promise<Fuzzed> {
  const findings: Finding[] = [];
  let taken = 0;
  for (let index = 0; index < cases && findings.length < 5; index += 1) {
    const own = (seed + index) >>> 0;
    const text = mutated(parser.corpus, randomFrom(own));
    const { what, isTaken } = await judged(parser, text);
    taken += Number(isTaken);
    if (what !== undefined) findings.push({ parser: parser.name, seed: own, what, text });
  }
  return { findings, taken };
}

/** Fault of `parser` for `text`; undefined when there is none. */
export async function wrongWith(parser: Parser, text: string): Promise<string | undefined> {
  return (await judged(parser, text)).what;
}

async function judged(
  parser: Parser,
  text: string,
): Promise<{ readonly what: string | undefined; readonly isTaken: boolean }> {
  const from = used();
  let shown: string;
  let isTaken = true;
  try {
    shown = shownBy(await parser.run(text));
  } catch (error) {
    if (!isTyped(error)) return { what: `threw ${inspect(error)}`, isTaken: false };
    isTaken = false;
    shown = `${error.message}\n${describeError(error)}`;
  }
  if (findPlanted(shown) !== undefined) return { what: 'showed a planted secret', isTaken };
  const ms = used() - from;
  return { what: ms > HANG_MS ? `took ${Math.round(ms)} ms` : undefined, isTaken };
}

function isTyped(error: unknown): error is Error {
  return [PullwrightError, UsageError, RegistryError].some((type) => error instanceof type);
}

/** All that a log, a JSON answer or a debugger would show. */
function shownBy(value: unknown): string {
  return `${JSON.stringify(value)}\n${inspect(value, { depth: 8 })}`;
}
