/**
 * How the work of a parser grows with its text, counted: how often each block of the product's code is entered. The same on every machine,
 * however busy. What one call of the language does is not seen: patterns are judged in the syntax tree (test/hostile/patterns.test.ts),
 * and those inside libraries by neither.
 */
import { Session } from 'node:inspector/promises';
import { adversarial, type Search } from './adversarial.ts';
import type { Parser } from './parser.ts';

/** Where a run stands is tried at few places, and of few pieces: the whole search is `npm run fuzz`. */
export const BRIEF: Search = { mostPlaces: 3, pieces: ['/', ' ', 'a', ','] };
/** Characters of a run. Four times fewer come before it. */
const LONG = 2000;
/** Blocks that a run of so many characters enters in quadratic time, and to spare. */
const HARMLESS = (LONG * LONG) / 16;
/** Four times the run may take so many times the work. Linear is 4, quadratic 16. */
export const MOST_WORK = 9;

export interface Work {
  readonly ratio: number;
  readonly blocks: number;
  readonly piece: string;
  readonly at: number;
  readonly text: number;
}

/** Counts what the code below `folders` does. */
export class WorkCounter {
  readonly #session = new Session();
  readonly #folders: readonly string[];

  constructor(folders: readonly string[]) {
    this.#folders = folders;
  }

  async start(): Promise<void> {
    this.#session.connect();
    await this.#session.post('Profiler.enable');
    await this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  async stop(): Promise<void> {
    await this.#session.post('Profiler.stopPreciseCoverage');
    this.#session.disconnect();
  }

  /** The worst that pieces at places of the corpus lead to. */
  async worst(parser: Parser, search: Search): Promise<Work> {
    let worst: Work = { ratio: 0, blocks: 0, piece: '', at: 0, text: 0 };
    const bases: number[] = [];
    for (const text of parser.corpus) {
      await this.#of(parser, text);
      bases.push(await this.#of(parser, text));
    }
    for (const { piece, at, text, withRun } of adversarial(parser, search)) {
      const base = bases[text] ?? 0;
      const blocks = (await this.#of(parser, withRun(LONG))) - base;
      if (blocks < HARMLESS) continue;
      const short = (await this.#of(parser, withRun(LONG / 4))) - base;
      const ratio = blocks / Math.max(short, 1);
      if (ratio > worst.ratio) worst = { ratio, blocks, piece, at, text };
    }
    return worst;
  }

  /** Four times as many of something take so many times the work. What both take alike does not count. */
  async growth(run: (many: number) => unknown, many: number): Promise<number> {
    const parser = { run: (text: string) => run(text.length) };
    // The first look at some code does more.
    await this.#of(parser, '');
    const works: number[] = [];
    for (const size of [0, many, 4 * many]) works.push(await this.#of(parser, ' '.repeat(size)));
    const [none = 0, few = 0, all = 0] = works;
    return (all - none) / Math.max(few - none, 1);
  }

  async #of(parser: Pick<Parser, 'run'>, text: string): Promise<number> {
    await this.#session.post('Profiler.takePreciseCoverage');
    try {
      await parser.run(text);
    } catch {
      // Only the work counts.
    }
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    return result
      .filter(({ url }) => this.#folders.some((folder) => url.startsWith(folder)))
      .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
      .reduce((sum, { count }) => sum + count, 0);
  }
}
