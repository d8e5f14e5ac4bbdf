/**
 * The executable is compiled with a slow tier-up of the just-in-time compiler, which suits a credential provider that lives
 * for 15 milliseconds. Commands that run for hours get the normal policy back before they start, so that one file serves both.
 */

/** What the compiled runtime offers and Node does not have. */
interface BunGlobal {
  readonly unsafe?: { readonly setJITPolicy?: (scale: number) => void };
}

/** Tier-up threshold scale that the executable starts with; see `--compile-jit-policy`. */
export const SHORT_LIVED_JIT_POLICY = 100;

const SHORT_LIVED: readonly (string | undefined)[] = ['provider', undefined];

/** Puts the normal policy back for every command but the short-lived ones. Does nothing on Node. */
export function tuneFor(command: string | undefined): void {
  if (SHORT_LIVED.includes(command)) return;
  const bun = (globalThis as { Bun?: BunGlobal }).Bun;
  bun?.unsafe?.setJITPolicy?.(1);
}
