/**
 * Which addresses a registry may have. Names of registries come from tenants: without a guard, an image name could make us
 * knock at the node's own ports or at the metadata service of a cloud.
 */
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { RegistryError } from './registry-error.ts';

const FORBIDDEN: BlockList = forbidden();

function forbidden(): BlockList {
  const list = new BlockList();
  // "This host", loopback, link-local (with the metadata services of the clouds), multicast and broadcast.
  list.addSubnet('0.0.0.0', 8, 'ipv4');
  list.addSubnet('127.0.0.0', 8, 'ipv4');
  list.addSubnet('169.254.0.0', 16, 'ipv4');
  list.addSubnet('224.0.0.0', 3, 'ipv4');
  // Metadata services outside the link-local range: Alibaba, Oracle, and AWS over IPv6.
  list.addAddress('100.100.100.200', 'ipv4');
  list.addSubnet('192.0.0.192', 32, 'ipv4');
  list.addAddress('fd00:ec2::254', 'ipv6');
  list.addAddress('::', 'ipv6');
  list.addAddress('::1', 'ipv6');
  list.addSubnet('fe80::', 10, 'ipv6');
  list.addSubnet('ff00::', 8, 'ipv6');
  return list;
}

/**
 * Whether `address` must not be contacted. IPv4 in IPv6 (mapped, NAT64, 6to4) counts as the IPv4 address.
 *
 * @example
 * ```ts
 * import { isForbiddenAddress } from './address.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(isForbiddenAddress('169.254.169.254'), true);
 * assert.equal(isForbiddenAddress('::ffff:127.0.0.1'), true);
 * assert.equal(isForbiddenAddress('10.1.2.3'), false);
 * ```
 */
export function isForbiddenAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 0) return true;
  if (family === 4) return FORBIDDEN.check(address, 'ipv4');
  const embedded = embeddedIpv4(address);
  return FORBIDDEN.check(address, 'ipv6') || (embedded !== undefined && FORBIDDEN.check(embedded, 'ipv4'));
}

/** The IPv4 address within `::ffff:0:0/96`, `64:ff9b::/96` and `2002::/16`. */
function embeddedIpv4(address: string): string | undefined {
  const groups = expand(address);
  const quad = (high = 0, low = 0): string => [high >> 8, high & 255, low >> 8, low & 255].join('.');
  const head = groups.slice(0, 6).join(':');
  if (head === '0:0:0:0:0:65535' || head === '100:65435:0:0:0:0' || head === '0:0:0:0:0:0')
    return quad(groups[6], groups[7]);
  return groups[0] === 0x2002 ? quad(groups[1], groups[2]) : undefined;
}

/** The eight groups of an IPv6 address as numbers. */
function expand(address: string): readonly number[] {
  const [bare = ''] = address.split('%');
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(bare);
  const whole =
    dotted === null ? bare : `${dotted[1]}${pair(dotted[2], dotted[3])}:${pair(dotted[4], dotted[5])}`;
  const [left = '', right] = whole.split('::');
  const numbers = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const before = numbers(left);
  const after = right === undefined ? [] : numbers(right);
  return [...before, ...Array<number>(Math.max(0, 8 - before.length - after.length)).fill(0), ...after];
}

function pair(high: string | undefined, low: string | undefined): string {
  return ((Number(high) << 8) | Number(low)).toString(16);
}

/** Gives the addresses of a host name, or rejects. */
export type Resolve = (host: string) => Promise<readonly string[]>;

export async function resolveHost(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true });
  return found.map((entry) => entry.address);
}

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
