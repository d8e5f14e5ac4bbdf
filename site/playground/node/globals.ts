/** Globals of Node. */
export { Buffer } from './buffer.ts';

/** Arguments and environment of the program, as if it was run from the PATH. */
export const process: { readonly argv: readonly string[]; readonly env: Readonly<Record<string, string>> } = {
  argv: [],
  env: {},
};

/** Browsers have no such queue: what is put into it comes after what is under way. */
export function setImmediate(work: () => void): void {
  setTimeout(work, 0);
}
