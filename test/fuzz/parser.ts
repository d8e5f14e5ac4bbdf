/** Description of a parser for the fuzzer. */
import { UsageError } from '../../runtime/core/errors.ts';
import { HttpClient } from '../../runtime/http/client.ts';
import { findPlanted } from '../support/canary.ts';

export interface Parser {
  readonly name: string;
  /** Good inputs, from which bad ones are made. Those with credentials hold planted ones. */
  readonly corpus: readonly string[];
  /** A case takes milliseconds: the gate runs a tenth of the cases. */
  readonly slow?: boolean;
  /** A part that can be repeated to make a long input of the same kind. @default {'['} */
  readonly unit?: string;
  /**
   * Parses, and throws `Error('round trip ...')` when what must hold of the answer does not. The answer must not show a value.
   * Returns a promise if the parser reads from a stream or sends requests.
   */
  run(text: string): unknown;
}

/** Parsers of one kind of text: what each is of, and what it does. */
export function readersOf(
  kind: Omit<Parser, 'name' | 'run'>,
  runs: Readonly<Record<string, Parser['run']>>,
): readonly Parser[] {
  return Object.entries(runs).map(([name, run]) => ({ ...kind, name, run }));
}

/** A value for a rule that takes values. A text that is no JSON is nothing to ask such a rule about. */
export function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError('Cannot ask: no JSON');
  }
}

/** Every request is answered with `text`. */
export function answering(text: string, status = 200): HttpClient {
  const isHeader = /^[\x20-\x7e]*$/.test(text);
  const answer = {
    status,
    header: (name: string) => (name === 'retry-after' ? (isHeader ? text.trim() : '1') : undefined),
    body: (async function* () {})(),
    bytes: () => Promise.resolve(Buffer.from(text)),
    discard: () => undefined,
  };
  return new HttpClient({ send: () => Promise.resolve(answer), close: () => undefined });
}

export function holds(what: boolean, name: string): void {
  if (!what) throw new Error(`round trip of ${name} does not hold`);
}

/**
 * `answer`, unless a mutation has carried a planted secret into one of `names`: what stands where a name is wanted is a name, and
 * is shown.
 */
export function unlessNamed(names: readonly (string | undefined)[], answer: unknown): unknown {
  return findPlanted(names.join('\n')) === undefined ? answer : undefined;
}
