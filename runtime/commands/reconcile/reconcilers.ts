/**
 * Every system's reconcilers. Their options are in the configuration file of `reconcile`:
 *
 * ```yaml
 * systems:
 *   global-pull-secret: { delivery: reconciler, image: registry.example.com/pullwright:1 }
 *   registry-overrides: false # switched off
 * ```
 *
 * Each system is one line of the table. A system is imported only if it is enabled.
 */

import { z } from 'zod';
import { UsageError } from '../../core/errors.ts';
import { readValue, SCOPE } from '../../core/kubernetes/read-spec.ts';
import type { Reconciler } from '../../engine/contract.ts';
import { parseYaml } from '../../kube/yaml.ts';

/** Creates reconcilers from a system's options (`{}` if it has none). Throws a UsageError naming the invalid field. */
export type ReconcilerFactory = (options: Readonly<Record<string, unknown>>) => readonly Reconciler[];

export const RECONCILERS: Readonly<
  Record<string, () => Promise<{ readonly reconcilers: ReconcilerFactory }>>
> = {
  'credential-provider': () => import('../../credential-provider/reconciler/reconcile.ts'),
  'global-pull-secret': () => import('../../global-pull-secret/reconciler/reconcile.ts'),
  'pull-secret-injection': () => import('../../pull-secret-injection/reconciler/reconcile.ts'),
  'registry-overrides': () => import('../../registry-overrides/reconciler/reconcile.ts'),
  verify: () => import('../../diagnose/commands/verify.ts'),
};

// Configuration file of `reconcile`: which systems run, and their options.

/**
 * Every system has the option `only`: the hosted clusters that it reconciles, for a process that serves several clusters with
 * different systems. `false` disables a system.
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

/** Options of the enabled systems, by name. */
export type SystemsConfig = NonNullable<z.infer<typeof CONFIG>['systems']>;

/**
 * Reads the text of a configuration file. Without `systems`, every system runs with its defaults. Otherwise only the listed
 * systems run, so that the process reads nothing that it has no permission for.
 *
 * @throws UsageError that lists every invalid field
 */
export function parseReconcileConfig(text: string): SystemsConfig {
  const { systems } = readSettings('configuration', text, CONFIG);
  return systems ?? Object.fromEntries(Object.keys(RECONCILERS).map((name) => [name, {}]));
}

/** Parses YAML by `schema`; an empty text is an empty object. @throws UsageError that lists every invalid field */
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

/** Imports and creates the reconcilers that `config` enables, in the order of the table. */
export async function loadReconcilers(config: SystemsConfig): Promise<readonly Reconciler[]> {
  const loaded: Reconciler[] = [];
  for (const [name, load] of Object.entries(RECONCILERS)) {
    const section = config[name];
    if (section === undefined) continue;
    const { only, ...options } = section;
    const scopes = only === undefined ? {} : { only: new Set(only) };
    loaded.push(...(await load()).reconcilers(options).map((one) => ({ ...one, ...scopes })));
  }
  return loaded;
}
