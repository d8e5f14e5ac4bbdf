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
  const host = hostOf(url);
  const addresses = isIP(host) === 0 ? await resolve(host) : [host];
  judge(url, addresses, policy);
  return addresses;
}

/**
 * As {@link serverAddresses}, for a server that a proxy looks up: the addresses that the name has here are judged, and a name that is not
 * known here is the proxy's affair.
 *
 * @throws PullwrightError `KubeconfigRefused`
 */
export async function guardProxiedServer(
  url: URL,
  policy: AddressPolicy,
  resolve: Resolve = resolveHost,
): Promise<void> {
  const host = hostOf(url);
  judge(url, isIP(host) === 0 ? await resolve(host).catch(() => []) : [host], policy);
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

function judge(url: URL, addresses: readonly string[], policy: AddressPolicy): void {
  const bad = refusedAddress(addresses, policy);
  if (bad === undefined) return;
  throw new PullwrightError(`Cannot contact "${url.origin}": its address ${bad} is ${REFUSED_SERVER}`, {
    code: 'KubeconfigRefused',
    disposition: 'terminal',
    hint: 'Correct "server" in the kubeconfig, or allow the address by --allow-address',
  });
}
