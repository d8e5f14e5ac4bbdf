/** The addresses of an API server that a kubeconfig out of a Secret names: whoever may write that Secret chose them. */
import { isIP } from 'node:net';
import { isMetadataAddress, type Resolve, resolveHost } from '../http/addresses.ts';
import { PullwrightError } from '../rules/errors.ts';

/**
 * Where `url` may be contacted. The caller connects to these addresses and not to the name, so that a name that changes its
 * mind in between does not matter.
 *
 * @throws PullwrightError `KubeconfigRefused` when one of them is link-local or a metadata service
 */
export async function serverAddresses(url: URL, resolve: Resolve = resolveHost): Promise<readonly string[]> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const addresses = isIP(host) === 0 ? await resolve(host) : [host];
  const bad = addresses.find(isMetadataAddress);
  if (bad === undefined) return addresses;
  throw new PullwrightError(
    `Cannot contact "${url.origin}": its address ${bad} is link-local or the metadata service of a cloud, and no API server has one`,
    { code: 'KubeconfigRefused', disposition: 'terminal', hint: 'Correct "server" in the kubeconfig' },
  );
}
