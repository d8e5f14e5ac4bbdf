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

import { UsageError } from '../../core/errors.ts';
import { isRecord } from '../../core/record.ts';
import type { Reconciler } from '../../engine/contract.ts';
import { parseYaml as parse } from '../../kube/yaml.ts';

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
 * Options by system; a system that is `false` does not run. `only` belongs to every system: the hosted clusters that it works
 * on, where one process serves several and not all of them have every system.
 */
export type SystemsConfig = Readonly<Record<string, Readonly<Record<string, unknown>> | false>>;

/**
 * Reads the text of a configuration file. Without `systems`, every system runs with its defaults; with it, those that it names
 * run and no other, so that a process never reads what it was given no right to.
 *
 * @throws UsageError that lists every invalid field
 */
export function parseReconcileConfig(text: string): SystemsConfig {
  const value: unknown = text.trim() === '' ? {} : parseYaml(text);
  if (!isRecord(value)) throw new UsageError('Cannot read the configuration: expected a map with "systems"');
  const wrong = Object.keys(value).filter((key) => !['apiVersion', 'kind', 'systems'].includes(key));
  const systems = value['systems'] ?? allSystems();
  if (!isRecord(systems)) throw new UsageError('Cannot read the configuration: "systems" is not a map');
  const problems = [
    ...wrong.map((key) => `unknown field "${key}"`),
    ...Object.entries(systems).flatMap(([name, options]) => {
      if (!Object.hasOwn(RECONCILERS, name))
        return [`systems.${name}: no such system, expected one of ${Object.keys(RECONCILERS).join(', ')}`];
      if (options === false) return [];
      if (!isRecord(options)) return [`systems.${name}: must be a map of options or false`];
      return isNames(options['only'])
        ? []
        : [`systems.${name}.only: must be a list of "<namespace>/<name>" of HostedClusters`];
    }),
  ];
  if (problems.length > 0) throw new UsageError(`Cannot read the configuration: ${problems.join('; ')}`);
  return systems as SystemsConfig;
}

/** Imports and makes the reconcilers that `config` switches on, in the order of the table. */
export async function loadReconcilers(config: SystemsConfig): Promise<readonly Reconciler[]> {
  const loaded: Reconciler[] = [];
  for (const [name, load] of Object.entries(RECONCILERS)) {
    const section = config[name] ?? false;
    if (section === false) continue;
    const { only, ...options } = section;
    const reconcilers = (await load())(options);
    const scopes = only === undefined ? undefined : new Set(only as readonly string[]);
    loaded.push(
      ...(scopes === undefined ? reconcilers : reconcilers.map((one) => ({ ...one, only: scopes }))),
    );
  }
  return loaded;
}

function allSystems(): SystemsConfig {
  return Object.fromEntries(Object.keys(RECONCILERS).map((name) => [name, {}]));
}

function parseYaml(text: string): unknown {
  try {
    return parse(text);
  } catch {
    throw new UsageError('Cannot read the configuration: it is not valid YAML');
  }
}

function isNames(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.every((one) => typeof one === 'string'));
}
