/** Options of the registry overrides reconciler, read from the configuration of `reconcile`. */
import { z } from 'zod';
import type { Frozen } from '../core/kubernetes/fields.ts';
import { readOptions } from '../core/kubernetes/read-spec.ts';

const schema = z.strictObject({
  /** `auto`: observe Deployments that HyperShift's operators write, else own. */
  mode: z.enum(['auto', 'own', 'observe']).default('auto'),
  /** Whether catalogs are reconciled. */
  catalogs: z.boolean().default(true),
  /** Whether mirrors for tags go into `OPENSHIFT_IMG_OVERRIDES` too; HyperShift omits them. */
  tagMirrors: z.boolean().default(true),
  /** Whether registries are queried for the catalogs with the hosted cluster's own pull secret. */
  askRegistries: z.boolean().default(false),
});

export type RegistryOverridesOptions = Frozen<z.output<typeof schema>>;

/** Parses the options of hosted clusters, by scope `<namespace>/<name>`. @throws UsageError that names every wrong field */
export function parseOverridesOptions(
  raw: Readonly<Record<string, unknown>>,
): (scope: string) => RegistryOverridesOptions {
  return readOptions('registry-overrides', raw, schema);
}
