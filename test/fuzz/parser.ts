/** What the fuzzer knows of a parser. */
import { UsageError } from '../../runtime/core/errors.ts';
import { findPlanted } from '../support/canary.ts';

export interface Parser {
  readonly name: string;
  /** Good inputs, from which bad ones are made. Those with credentials hold planted ones. */
  readonly corpus: readonly string[];
  /** A case takes milliseconds: the gate runs a tenth of the cases. */
  readonly slow?: boolean;
  /** A part that can be repeated to make a long input of the same kind. */
  readonly unit: string;
  /**
   * Parses, and throws `Error('round trip ...')` when what must hold of the answer does not. The answer must not show a value.
   * A promise where the parser reads from a stream or asks somebody.
   */
  run(text: string): unknown;
}

/** A value for a rule that takes values. A text that is no JSON is nothing to ask such a rule about. */
export function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError('Cannot ask: no JSON');
  }
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
