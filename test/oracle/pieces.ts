/** Parts of random questions. */
import fc from 'fast-check';

/** One of the words of a text. */
export const words = (text: string): fc.Arbitrary<string> => fc.constantFrom(...text.split(' '));
export const one = <T extends string>(...texts: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...texts);
export const join = (...parts: readonly fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
  fc.tuple(...parts).map((texts) => texts.join(''));
