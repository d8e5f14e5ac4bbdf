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

import { z } from 'zod';
import { UsageError } from '../../core/errors.ts';
import { readValue, SCOPE } from '../../core/kubernetes/read-spec.ts';
import type { Reconciler } from '../../engine/contract.ts';
import { parseYaml } from '../../kube/yaml.ts';

/** Makes reconcilers from a system's part of the configuration (`{}` when it says nothing). Throws a UsageError that names the wrong field. */
export type ReconcilerFactory = (options: Readonly<Record<string, unknown>>) => readonly Reconciler[];

export const RECONCILERS: Readonly<Record<string, () => Promise<ReconcilerFactory>>> = {
  'credential-provider': async () =>
    (await import('../../credential-provider/reconciler/reconcile.ts')).reconcilers,
  'global-pull-secret': async () =>
    (await import('../../global-pull-secret/reconciler/reconcile.ts')).reconcilers,
  'pull-secret-injection': async () =>
    (await import('../../pull-secret-injection/reconciler/reconcile.ts')).reconcilers,
  'registry-overrides': async () =>
    (await import('../../registry-overrides/reconciler/reconcile.ts')).reconcilers,
  verify: async () => (await import('../../diagnose/commands/verify.ts')).reconcilers,
};

// Configuration file of `reconcile`: which systems run, and with which options.

/**
 * `only` belongs to every system: the hosted clusters that it works on, where one process serves several and not all of them have
 * every system. A system that is `false` does not run.
 */
const SYSTEM = z.preprocess(
  (options) => (options === false ? undefined : options),
  z.looseObject({ only: z.array(SCOPE).optional() }).optional(),
);

const CONFIG = z
  .strictObject({
    apiVersion: z.string(),
    kind: z.string(),
    systems: z
      .strictObject(Object.fromEntries(Object.keys(RECONCILERS).map((name) => [name, SYSTEM])))
      .nullable(),
  })
  .partial();

/** Options by system, of those that run. */
export type SystemsConfig = NonNullable<z.infer<typeof CONFIG>['systems']>;

/**
 * Reads the text of a configuration file. Without `systems`, every system runs with its defaults; with it, those that it names
 * run and no other, so that a process never reads what it was given no right to.
 *
 * @throws UsageError that lists every invalid field
 */
export function parseReconcileConfig(text: string): SystemsConfig {
  const { systems } = readSettings('configuration', text, CONFIG);
  return systems ?? Object.fromEntries(Object.keys(RECONCILERS).map((name) => [name, {}]));
}

/** A YAML text by its schema; an empty one is an empty object. @throws UsageError that lists every invalid field */
export function readSettings<T>(what: string, text: string, schema: z.ZodType<T>): T {
  let settings: unknown;
  try {
    settings = text.trim() === '' ? {} : parseYaml(text);
  } catch {
    throw new UsageError(`Cannot read the ${what}: it is not valid YAML`);
  }
  const { value, problems } = readValue(settings, schema, '');
  if (value === undefined)
    throw new UsageError(`Cannot read the ${what}: ${problems.join('; ').replace(/^: /, '')}`);
  return value;
}

/** Imports and makes the reconcilers that `config` switches on, in the order of the table. */
export async function loadReconcilers(config: SystemsConfig): Promise<readonly Reconciler[]> {
  const loaded: Reconciler[] = [];
  for (const [name, load] of Object.entries(RECONCILERS)) {
    const section = config[name];
    if (section === undefined) continue;
    const { only, ...options } = section;
    const scopes = only === undefined ? {} : { only: new Set(only) };
    loaded.push(...(await load())(options).map((one) => ({ ...one, ...scopes })));
  }
  return loaded;
}
