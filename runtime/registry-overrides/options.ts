/** Options of the registry overrides reconciler, read from the configuration of `reconcile`. */
import { UsageError } from '../core/errors.ts';
import type { OwnershipMode } from '../core/kubernetes/hypershift.ts';
import { isRecord } from '../core/record.ts';

export interface RegistryOverridesOptions {
  /** `auto` observes the Deployments that HyperShift's operators are seen to write, else owns. @default {'auto'} */
  readonly mode: OwnershipMode;
  /** Whether catalogs are looked after. @default {true} */
  readonly catalogs: boolean;
  /** Whether mirrors for tags go into `OPENSHIFT_IMG_OVERRIDES` too; HyperShift leaves them out. @default {true} */
  readonly tagMirrors: boolean;
  /** Whether registries are asked for the catalogs with the hosted cluster's own pull secret. @default {false} */
  readonly askRegistries: boolean;
}

/** Options for a hosted cluster, by its scope `<namespace>/<name>`. */
export type OptionsByScope = (scope: string) => RegistryOverridesOptions;

/**
 * Checks a map of options. `clusters` holds maps of the same options by `<namespace>/<HostedCluster>`, which go before the
 * others.
 *
 * @throws UsageError that names every wrong field
 */
export function parseOverridesOptions(raw: Readonly<Record<string, unknown>>): OptionsByScope {
  const { clusters = {}, ...common } = raw;
  const problems: string[] = [];
  const fallback = readOptions(common, '', problems);
  const byScope = new Map<string, RegistryOverridesOptions>();
  if (!isRecord(clusters)) problems.push('clusters: must be a map by <namespace>/<name>');
  for (const [scope, own] of isRecord(clusters) ? Object.entries(clusters) : []) {
    if (isRecord(own))
      byScope.set(scope, readOptions({ ...common, ...own }, `clusters["${scope}"].`, problems));
    else problems.push(`clusters["${scope}"]: must be a map of options`);
  }
  if (problems.length > 0)
    throw new UsageError(`Cannot use the options of registry-overrides: ${problems.join('; ')}`);
  return (scope) => byScope.get(scope) ?? fallback;
}

function readOptions(
  raw: Readonly<Record<string, unknown>>,
  place: string,
  problems: string[],
): RegistryOverridesOptions {
  const { mode = 'auto', catalogs = true, tagMirrors = true, askRegistries = false, ...others } = raw;
  for (const field of Object.keys(others))
    problems.push(`${place}${field}: no such option, expected mode, catalogs, tagMirrors or askRegistries`);
  if (mode !== 'auto' && mode !== 'own' && mode !== 'observe')
    problems.push(`${place}mode: must be auto, own or observe`);
  if (typeof catalogs !== 'boolean') problems.push(`${place}catalogs: must be true or false`);
  if (typeof tagMirrors !== 'boolean') problems.push(`${place}tagMirrors: must be true or false`);
  if (typeof askRegistries !== 'boolean') problems.push(`${place}askRegistries: must be true or false`);
  return {
    mode: mode as OwnershipMode,
    catalogs: catalogs === true,
    tagMirrors: tagMirrors === true,
    askRegistries: askRegistries === true,
  };
}
