/**
 * Planted secrets. Use these wherever a test needs a password, token or pull secret: `test/run.ts` searches everything that
 * every test file prints for them, in clear and in base64, and fails the file that shows one.
 */

/** Marks every planted secret. Long enough that it cannot occur by chance. */
export const CANARY_MARK = 'cAnArY7';

/** A password that must never be printed; different for each `label`. */
export function plantedPassword(label: string): string {
  return `${CANARY_MARK}-${label}`;
}

/** `auth` field of a docker config entry for `user` and a planted password. */
export function plantedAuth(label: string, user = 'robot'): string {
  return Buffer.from(`${user}:${plantedPassword(label)}`).toString('base64');
}

const MARKS: readonly string[] = [CANARY_MARK, ...[0, 1, 2].map(base64Core)];

/** The first planted secret in `text` (with some text before it), or undefined. */
export function findPlanted(text: string): string | undefined {
  for (const mark of MARKS) {
    const at = text.indexOf(mark);
    if (at >= 0) return text.slice(Math.max(0, at - 80), at);
  }
  return undefined;
}

/** The part of the mark's base64 form that does not depend on the bytes around it, for a byte offset of 0, 1 or 2. */
function base64Core(offset: number): string {
  const text = Buffer.from('x'.repeat(offset) + CANARY_MARK)
    .toString('base64')
    .replace(/=+$/, '');
  return text.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + CANARY_MARK.length) * 8) / 6));
}
