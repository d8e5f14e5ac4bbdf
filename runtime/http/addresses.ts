/**
 * Which addresses may be contacted under a name that somebody else chose: a registry in an image's name, an API server in a
 * kubeconfig. Without a guard such a name could make us knock at the node's own ports or at the metadata service of a cloud.
 */
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';

/** Link-local addresses, where clouds have their metadata services, and those that lie elsewhere. */
const METADATA: BlockList = listOf((list) => {
  list.addSubnet('169.254.0.0', 16, 'ipv4');
  list.addSubnet('fe80::', 10, 'ipv6');
  // Alibaba; Azure's wire server; Equinix; Oracle.
  for (const address of ['100.100.100.200', '168.63.129.16', '192.80.8.124', '192.0.0.192'])
    list.addAddress(address, 'ipv4');
  // AWS (instances, pod identity, time and names), Google, Oracle, Scaleway.
  list.addSubnet('fd00:ec2::', 32, 'ipv6');
  list.addSubnet('fd20:ce::', 64, 'ipv6');
  list.addSubnet('fd00:c1::', 64, 'ipv6');
  list.addAddress('fd00:42::42', 'ipv6');
});

/** "This host", loopback, multicast and broadcast. */
const OWN: BlockList = listOf((list) => {
  list.addSubnet('0.0.0.0', 8, 'ipv4');
  list.addSubnet('127.0.0.0', 8, 'ipv4');
  list.addSubnet('224.0.0.0', 3, 'ipv4');
  list.addAddress('::', 'ipv6');
  list.addAddress('::1', 'ipv6');
  list.addSubnet('ff00::', 8, 'ipv6');
});

function listOf(fill: (list: BlockList) => void): BlockList {
  const list = new BlockList();
  fill(list);
  return list;
}

/**
 * Whether `address` is link-local or that of a cloud's metadata service, which nobody means who names a server. IPv4 in IPv6
 * (mapped, NAT64, 6to4) counts as the IPv4 address, and what is no address as one.
 *
 * @example
 * ```ts
 * import { isMetadataAddress } from './addresses.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(isMetadataAddress('168.63.129.16'), true);
 * assert.equal(isMetadataAddress('fd20:ce::254'), true);
 * assert.equal(isMetadataAddress('127.0.0.1'), false);
 * ```
 */
export function isMetadataAddress(address: string): boolean {
  return isIn(METADATA, address);
}

/**
 * As {@link isMetadataAddress}, and loopback, multicast and broadcast as well.
 *
 * @example
 * ```ts
 * import { isForbiddenAddress } from './addresses.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(isForbiddenAddress('169.254.169.254'), true);
 * assert.equal(isForbiddenAddress('::ffff:127.0.0.1'), true);
 * assert.equal(isForbiddenAddress('10.1.2.3'), false);
 * ```
 */
export function isForbiddenAddress(address: string): boolean {
  return isIn(METADATA, address) || isIn(OWN, address);
}

function isIn(list: BlockList, address: string): boolean {
  const family = isIP(address);
  if (family === 0) return true;
  if (family === 4) return list.check(address, 'ipv4');
  const embedded = embeddedIpv4(address);
  return list.check(address, 'ipv6') || (embedded !== undefined && list.check(embedded, 'ipv4'));
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
