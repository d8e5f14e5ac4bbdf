/** Which addresses a registry may have: its name comes from an image, and so often from a tenant. */
import { isIP } from 'node:net';
import { type AddressPolicy, type Resolve, refusedAddress, resolveHost } from '../http/addresses.ts';
import { RegistryError } from './registry-error.ts';

/**
 * The addresses to connect to for `host` (without brackets). The caller connects to these and not to the name, so that a name
 * that changes its mind in between does not matter. No policy: the host is one that a person allowed. The address that a tenant's name
 * has is not said: the text reaches the tenant, who could ask the cluster's DNS by it.
 *
 * @throws RegistryError `Refused` (`NotAsked` where a tenant chose the name) when the policy refuses one of them, `Unreachable` when the name has none
 */
export async function guardedAddresses(
  host: string,
  policy: AddressPolicy | undefined,
  resolve: Resolve = resolveHost,
): Promise<readonly string[]> {
  const addresses = isIP(host) === 0 ? await resolved(host, resolve) : [host];
  judge(host, addresses, policy);
  return addresses;
}

/**
 * As {@link guardedAddresses}, for a host that a proxy looks up: an address that is written, or that the name has here, must
 * not be a refused one. A name that is not known here is the proxy's affair.
 *
 * @throws RegistryError `Refused`, `NotAsked`
 */
export async function guardProxied(
  host: string,
  policy: AddressPolicy | undefined,
  resolve: Resolve = resolveHost,
): Promise<void> {
  judge(host, isIP(host) === 0 ? await resolve(host).catch(() => []) : [host], policy);
}

function judge(host: string, addresses: readonly string[], policy: AddressPolicy | undefined): void {
  const bad = policy === undefined ? undefined : refusedAddress(addresses, policy);
  if (policy === undefined || bad === undefined) return;
  if (policy.chosenBy === 'tenant')
    throw new RegistryError(
      'NotAsked',
      `"${host}" has an address that is private, loopback, link-local or a metadata service, which names of tenants may not lead to: allow the host or the network if it is meant`,
    );
  throw new RegistryError(
    'Refused',
    `"${host}" has the address ${bad}, which is loopback, link-local or a metadata service: allow the host if it is meant`,
  );
}

async function resolved(host: string, resolve: Resolve): Promise<readonly string[]> {
  const addresses = await resolve(host).catch(() => []);
  if (addresses.length > 0) return addresses;
  throw new RegistryError('Unreachable', `"${host}" has no address`, undefined, true);
}
