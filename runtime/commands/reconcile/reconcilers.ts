/**
 * Every system's reconcilers, and how their options are read from the configuration file of `reconcile`:
 *
 * ```yaml
 * systems:
 *   global-pull-secret: { delivery: reconciler, image: registry.example.com/pullwright:1 }
 *   registry-overrides: false # switched off
 * ```
 *
 * A system adds itself with one line. Nothing is imported before it is chosen.
 */
import type { Reconciler } from '../../controller/contract.ts';

/** Makes reconcilers from a system's part of the configuration (`{}` when it says nothing). Throws a UsageError that names the wrong field. */
export type ReconcilerFactory = (options: Readonly<Record<string, unknown>>) => readonly Reconciler[];

export const RECONCILERS: Readonly<Record<string, () => Promise<ReconcilerFactory>>> = {
  'credential-provider': async () =>
    (await import('../../credential-provider/reconciler/reconciler.ts')).reconcilers,
  'global-pull-secret': async () =>
    (await import('../../global-pull-secret/reconciler/reconciler.ts')).reconcilers,
  'pull-secret-injection': async () =>
    (await import('../../pull-secret-injection/reconciler/reconciler.ts')).reconcilers,
  'registry-overrides': async () => (await import('../../registry-overrides/reconciler.ts')).reconcilers,
  verify: async () => (await import('../../verify/reconciler.ts')).reconcilers,
};
