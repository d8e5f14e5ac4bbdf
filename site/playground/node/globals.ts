/** What Node has for everybody. */
export { Buffer } from './buffer.ts';

/** The program asks how it was called, and with which environment: as somebody calls it who has it on the path. */
export const process: { readonly argv: readonly string[]; readonly env: Readonly<Record<string, string>> } = {
  argv: [],
  env: {},
};

/** Browsers have no such queue: what is put into it comes after what is under way. */
export function setImmediate(work: () => void): void {
  setTimeout(work, 0);
}
