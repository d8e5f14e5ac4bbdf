/** Options of the registry overrides reconciler, read from the configuration of `reconcile`. */
import { UsageError } from '../rules/errors.ts';
import type { OwnershipMode } from '../rules/hypershift-operators.ts';

export interface RegistryOverridesOptions {
  /** `auto` observes the Deployments that HyperShift's operators are seen to write, else owns. @default {'auto'} */
  readonly mode: OwnershipMode;
  /** Whether catalogs are looked after. @default {true} */
  readonly catalogs: boolean;
  /** Whether mirrors for tags go into `OPENSHIFT_IMG_OVERRIDES` too; HyperShift leaves them out. @default {true} */
  readonly tagMirrors: boolean;
}

/**
 * Checks a map of options.
 *
 * @throws UsageError that names every wrong field
 */
export function parseOptions(raw: Readonly<Record<string, unknown>>): RegistryOverridesOptions {
  const { mode = 'auto', catalogs = true, tagMirrors = true, ...others } = raw;
  const problems = Object.keys(others).map(
    (field) => `${field}: no such option, wanted mode, catalogs or tagMirrors`,
  );
  if (mode !== 'auto' && mode !== 'own' && mode !== 'observe')
    problems.push('mode: wanted auto, own or observe');
  if (typeof catalogs !== 'boolean') problems.push('catalogs: wanted true or false');
  if (typeof tagMirrors !== 'boolean') problems.push('tagMirrors: wanted true or false');
  if (problems.length > 0)
    throw new UsageError(`Cannot use the options of registry-overrides: ${problems.join('; ')}`);
  return { mode: mode as OwnershipMode, catalogs: catalogs as boolean, tagMirrors: tagMirrors as boolean };
}
