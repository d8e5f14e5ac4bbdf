/**
 * How the time of a parser grows with its text. Time is measured, so this is for `npm run fuzz` alone; the gate counts work
 * (work.ts) and judges patterns in the syntax tree (test/hostile/patterns.test.ts).
 */
import { adversarial } from './adversarial.ts';
import type { Parser } from './parser.ts';

const MOST_PLACES = 12;
/** Characters of a run. Four times fewer come before it. */
const LONG = 16_000;
/** A run that costs less than this is not handled in quadratic time: that would be more than a hundred million steps. */
const HARMLESS_MS = 20;
/** Four times the run may take so many times as long. Linear is 4, quadratic 16. */
export const MOST_GROWTH = 9;

/** The worst that was found. */
export interface Growth {
  /** Four times the run takes so many times as long; 0 when no run took long. */
  readonly ratio: number;
  /** What the longer run adds. */
  readonly ms: number;
  readonly piece: string;
  /** Where the run stands, and in which text of the corpus. */
  readonly at: number;
  readonly text: number;
}

/** Tries every piece at every place of every text of the corpus. */
export async function worstGrowth(parser: Parser): Promise<Growth> {
  let worst: Growth = { ratio: 0, ms: 0, piece: '', at: 0, text: 0 };
  const bases = await Promise.all(parser.corpus.map((text) => timeOf(parser, text, 3)));
  for (const { piece, at, text, withRun } of adversarial(parser, MOST_PLACES)) {
    const base = bases[text] ?? 0;
    if ((await timeOf(parser, withRun(LONG), 1)) - base < HARMLESS_MS) continue;
    // It may have been the first look at some code, or what else the machine does: the least of three counts.
    let { ms, ratio } = await growthOf(parser, withRun, base, 3);
    if (ms < HARMLESS_MS) continue;
    // What is linear and was disturbed does not stay above: of many runs the least is undisturbed.
    if (ratio > MOST_GROWTH) ({ ms, ratio } = await growthOf(parser, withRun, base, 12));
    if (ratio > worst.ratio) worst = { ratio, ms, piece, at, text };
    // It is found: more of it would only take longer.
    if (ratio > MOST_GROWTH) return worst;
  }
  return worst;
}

async function growthOf(
  parser: Parser,
  withRun: (characters: number) => string,
  base: number,
  rounds: number,
): Promise<{ readonly ms: number; readonly ratio: number }> {
  const ms = (await timeOf(parser, withRun(LONG), rounds)) - base;
  const short = (await timeOf(parser, withRun(LONG / 4), rounds)) - base;
  return { ms, ratio: ms / Math.max(short, 0.5) };
}

/** Milliseconds of the processor, the least of some runs. */
async function timeOf(parser: Parser, text: string, rounds: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) {
    const from = process.cpuUsage();
    try {
      await parser.run(text);
    } catch {
      // Only the time counts.
    }
    const { user, system } = process.cpuUsage(from);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}
