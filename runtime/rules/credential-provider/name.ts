/**
 * The name of a `CRIOCredentialProviderConfig`: there is one, and every other name is refused by the definition's CEL rule
 * (`self.metadata.name == 'cluster'`), which nobody asks before a folder is applied.
 */

import type { KubeObject } from '../kubernetes/object.ts';
import { CREDENTIAL_PROVIDER } from './platform.ts';

/**
 * Why the API server would refuse the name; undefined when it would not.
 *
 * @example
 * ```ts
 * import { nameFault } from './name.ts';
 * import assert from 'node:assert/strict';
 *
 * const object = (name: string) => ({ apiVersion: 'config.openshift.io/v1alpha1', kind: 'CRIOCredentialProviderConfig', metadata: { name } });
 * assert.equal(nameFault(object('cluster')), undefined);
 * assert.deepEqual(nameFault(object('default')), { path: 'metadata.name', message: 'is "default", expected "cluster": the API server refuses every other name' });
 * ```
 */
export function nameFault({
  metadata,
}: Pick<KubeObject, 'metadata'>): { readonly path: string; readonly message: string } | undefined {
  const wanted = CREDENTIAL_PROVIDER.objectName;
  if (metadata.name === wanted) return undefined;
  return {
    path: 'metadata.name',
    message: `is "${metadata.name}", expected "${wanted}": the API server refuses every other name`,
  };
}
