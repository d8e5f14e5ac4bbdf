/** Gives memory back that is garbage. */

interface Collector {
  readonly gc?: (wait: boolean) => void;
}

/**
 * Collects now, where the runtime lets a program ask for it (the compiled one does). A program that
 * allocates a little every half a minute would else be left alone for days, and grow by a megabyte in each.
 */
export function collectGarbage(): void {
  const { Bun } = globalThis as { readonly Bun?: Collector };
  Bun?.gc?.(true);
}
