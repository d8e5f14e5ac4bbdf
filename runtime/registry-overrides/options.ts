/** Options of the registry overrides reconciler, read from the configuration of `reconcile`. */
import { z } from 'zod';
import type { OwnershipMode } from '../core/kubernetes/hypershift.ts';
import { readOptions } from '../core/kubernetes/read-spec.ts';

export interface RegistryOverridesOptions {
  /** `auto` observes the Deployments that HyperShift's operators are seen to write, else owns. @default {'auto'} */
  readonly mode: OwnershipMode;
  /** Whether catalogs are looked after. @default {true} */
  readonly catalogs: boolean;
  /** Whether mirrors for tags go into `OPENSHIFT_IMG_OVERRIDES` too; HyperShift leaves them out. @default {true} */
  readonly tagMirrors: boolean;
  /** Whether registries are queried for the catalogs with the hosted cluster's own pull secret. @default {false} */
  readonly askRegistries: boolean;
}

/** Options for a hosted cluster, by its scope `<namespace>/<name>`. */
export type OptionsByScope = (scope: string) => RegistryOverridesOptions;

const schema: z.ZodType<RegistryOverridesOptions> = z.strictObject({
  mode: z.enum(['auto', 'own', 'observe']).default('auto'),
  catalogs: z.boolean().default(true),
  tagMirrors: z.boolean().default(true),
  askRegistries: z.boolean().default(false),
});

/** Checks a map of options. @throws UsageError that names every wrong field */
export function parseOverridesOptions(raw: Readonly<Record<string, unknown>>): OptionsByScope {
  return readOptions('registry-overrides', raw, schema);
}
