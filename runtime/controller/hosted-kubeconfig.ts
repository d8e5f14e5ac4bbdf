/** The kubeconfig of a hosted cluster: one Secret of its control plane namespace, by name; never a list of Secrets. */
import { PullwrightError } from '../rules/errors.ts';
import type { SecretObject } from '../rules/kubernetes/object.ts';
import { type Redacted, redact, reveal } from '../rules/redacted.ts';
import type { Cluster } from './cluster.ts';
import type { Scope } from './contract.ts';

/** HyperShift's key in every kubeconfig Secret. */
const KEY = 'kubeconfig';
/** The one that HyperShift makes, of `system:admin`. */
const HYPERSHIFT_MAKES = 'admin-kubeconfig';

/**
 * Reads the Secret `name` of the scope's control plane namespace.
 *
 * @throws PullwrightError `KubeconfigMissing`
 */
export async function readHostedKubeconfig(
  management: Cluster,
  scope: Scope,
  name: string,
): Promise<Redacted<string>> {
  const namespace = scope.controlPlaneNamespace;
  const secret = (await management.client.get({ apiVersion: 'v1', kind: 'Secret', namespace, name })) as
    | SecretObject
    | undefined;
  const value = secret?.data?.[KEY];
  if (value !== undefined) return redact(Buffer.from(reveal(value), 'base64').toString('utf8'));
  const state = secret === undefined ? 'it does not exist' : `it has no key "${KEY}"`;
  throw new PullwrightError(`Cannot read kubeconfig "Secret/${namespace}/${name}": ${state}`, {
    code: 'KubeconfigMissing',
    hint:
      name === HYPERSHIFT_MAKES
        ? 'HyperShift makes it when the control plane is up'
        : `Put the kubeconfig of an account of the hosted cluster there, or name another Secret (reconciler.kubeconfigSecret of the fleet, --kubeconfig-secret), such as ${HYPERSHIFT_MAKES}; it is looked at again within a minute`,
  });
}
