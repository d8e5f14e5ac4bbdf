/** The items of a list, made into what is kept of them as they arrive. */
import { setImmediate } from 'node:timers/promises';
import { HttpError, tooLarge, torn } from '../http/http-error.ts';
import { JsonItems } from './json-items.ts';

/** So much of an answer is read before others have their turn: a fast server has megabytes there at once. */
const TURN_BYTES = 128 * 1024;

/** What becomes of the items of a list. */
export interface KeptItems<T> {
  /** Called with each as it arrives, and with how many bytes of its texts were left out. */
  readonly keep: (item: unknown, leftOut: number) => T;
  /** Longer texts are left out. */
  readonly mostText: number | undefined;
}

/** What is left of the answer to a list. */
export interface ItemsAnswer<T> {
  readonly items: readonly T[];
  /** What is around the items. */
  readonly body: unknown;
  readonly bytes: number;
}

/** How much of an answer is read, and who is told how much of it is held. */
export interface ReadingLimits {
  readonly most: number;
  readonly hold: (bytes: number) => void;
}

/**
 * Reads `body`, at most `most` bytes of it.
 *
 * @throws HttpError `AnswerTooLarge`, `AnswerUnreadable`, or how the connection ended
 */
export async function itemsOf<T>(
  body: AsyncIterable<Uint8Array>,
  { most, hold }: ReadingLimits,
  { keep, mostText }: KeptItems<T>,
): Promise<ItemsAnswer<T>> {
  const items: T[] = [];
  const take = (item: unknown, leftOut: number): void => {
    try {
      items.push(keep(item, leftOut));
    } catch {
      throw new HttpError('AnswerUnreadable', 'the answer is no list of objects');
    }
  };
  const reader = new JsonItems({ of: 'items', take, mostText });
  let [bytes, turns] = [0, 0];
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > most) throw tooLarge(most);
      reader.push(chunk);
      hold(reader.held);
      if (bytes < (turns + 1) * TURN_BYTES) continue;
      turns = Math.floor(bytes / TURN_BYTES);
      await setImmediate();
    }
    return { items, body: reader.end(), bytes };
  } catch (error) {
    if (error instanceof SyntaxError) throw new HttpError('AnswerUnreadable', 'the answer is no JSON');
    throw torn(error);
  }
}
