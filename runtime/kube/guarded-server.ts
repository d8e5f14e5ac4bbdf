/** The addresses of an API server that a kubeconfig out of a Secret names: whoever may write that Secret chose them. */
import { isIP } from 'node:net';
import { type AddressPolicy, type Resolve, refusedAddress, resolveHost } from '../http/addresses.ts';
import { PullwrightError } from '../rules/errors.ts';

/** What is wrong with an address that is refused. */
export const REFUSED_SERVER =
  'loopback, link-local or the metadata service of a cloud, where no API server is';

/**
 * Where `url` may be contacted. The caller connects to these addresses and not to the name, so that a name that changes its
 * mind in between does not matter.
 *
 * @throws PullwrightError `KubeconfigRefused` when one of them is loopback, link-local or a metadata service
 */
export async function serverAddresses(
  url: URL,
  policy: AddressPolicy,
  resolve: Resolve = resolveHost,
): Promise<readonly string[]> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const addresses = isIP(host) === 0 ? await resolve(host) : [host];
  const bad = refusedAddress(addresses, policy);
  if (bad === undefined) return addresses;
  throw new PullwrightError(`Cannot contact "${url.origin}": its address ${bad} is ${REFUSED_SERVER}`, {
    code: 'KubeconfigRefused',
    disposition: 'terminal',
    hint: 'Correct "server" in the kubeconfig, or allow the address by --allow-address',
  });
}
