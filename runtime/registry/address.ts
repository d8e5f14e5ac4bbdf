/** Which addresses a registry may have: its name comes from an image, and so from a tenant. */
import { isIP } from 'node:net';
import { isForbiddenAddress, type Resolve, resolveHost } from '../http/addresses.ts';
import { RegistryError } from './registry-error.ts';

/**
 * The addresses to connect to for `host` (without brackets). The caller connects to these and not to the name, so that a name
 * that changes its mind in between does not matter. `configured` switches the guard off for a host that a person named.
 *
 * @throws RegistryError `Refused` when one of them is forbidden, `Unreachable` when the name has none
 */
export async function guardedAddresses(
  host: string,
  configured: boolean,
  resolve: Resolve = resolveHost,
): Promise<readonly string[]> {
  const addresses = isIP(host) === 0 ? await resolved(host, resolve) : [host];
  const bad = addresses.find(isForbiddenAddress);
  if (bad !== undefined && !configured) {
    throw new RegistryError(
      'Refused',
      `"${host}" has the address ${bad}, which is loopback, link-local or a metadata service: allow the host if it is meant`,
    );
  }
  return addresses;
}

/**
 * As {@link guardedAddresses}, for a host that a proxy looks up: an address that is written, or that the name has here, must
 * not be a forbidden one. A name that is not known here is the proxy's affair.
 *
 * @throws RegistryError `Refused`
 */
export async function guardProxied(
  host: string,
  configured: boolean,
  resolve: Resolve = resolveHost,
): Promise<void> {
  await guardedAddresses(host, configured, async (name) => {
    const found = await resolve(name).catch(() => []);
    return found.length > 0 ? found : [UNKNOWN];
  });
}

/** Of the documentation's range, which is never forbidden and never used. */
const UNKNOWN = '192.0.2.1';

async function resolved(host: string, resolve: Resolve): Promise<readonly string[]> {
  const addresses = await resolve(host).catch(() => []);
  if (addresses.length > 0) return addresses;
  throw new RegistryError('Unreachable', `"${host}" has no address`, undefined, true);
}
