/**
 * Which addresses may be contacted under an untrusted host name: a registry in an image's name, an API server in a
 * kubeconfig. Without a guard such a name could make us contact the node's own ports, the services of a cluster or the metadata
 * service of a cloud, and reveal the response.
 */
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { httpErrorOf } from './http-error.ts';

/**
 * `metadata`: link-local, and where clouds have their metadata services; `own`: this host, loopback, multicast and broadcast;
 * `private`: networks that are not on the internet, where clusters have their services, nodes and control planes.
 */
export type AddressKind = 'metadata' | 'own' | 'private' | 'public';

/** A set of networks. */
export type Networks = Pick<BlockList, 'check'>;

/** Which addresses a name may lead to. */
export interface AddressPolicy {
  /** A tenant's names lead to public addresses, those of the platform to private ones too. Neither leads to the others. */
  readonly chosenBy: 'tenant' | 'platform';
  /** @default none */
  readonly allow?: Networks | undefined;
}

const REFUSED: Readonly<Record<AddressPolicy['chosenBy'], readonly AddressKind[]>> = {
  tenant: ['metadata', 'own', 'private'],
  platform: ['metadata', 'own'],
};

const KINDS: readonly (readonly [AddressKind, Networks])[] = [
  [
    'metadata',
    networksOf([
      '169.254.0.0/16',
      'fe80::/10',
      // Alibaba; Azure's wire server; Equinix; Oracle.
      '100.100.100.200',
      '168.63.129.16',
      '192.80.8.124',
      '192.0.0.192',
      // AWS (instances, pod identity, time and names), Google, Oracle, Scaleway.
      'fd00:ec2::/32',
      'fd20:ce::/64',
      'fd00:c1::/64',
      'fd00:42::42',
    ]),
  ],
  ['own', networksOf(['0.0.0.0/8', '127.0.0.0/8', '224.0.0.0/3', '::', '::1', 'ff00::/8'])],
  [
    'private',
    networksOf([
      '10.0.0.0/8',
      '172.16.0.0/12',
      '192.168.0.0/16',
      // Carrier-grade NAT, IETF protocol assignments, benchmarking.
      '100.64.0.0/10',
      '192.0.0.0/24',
      '198.18.0.0/15',
      'fc00::/7',
      'fec0::/10',
      // Local-use NAT64 and Teredo, which lead to IPv4 addresses.
      '64:ff9b:1::/48',
      '2001::/32',
    ]),
  ],
];

/** Whether `text` is an address, or one with the length of its network: `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = '', length, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || address.includes('%') || rest.length > 0) return false;
  return length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= (family === 4 ? 32 : 128));
}

/**
 * Parses networks, each in a form that {@link isNetwork} accepts.
 *
 * @example
 * ```ts
 * import { networksOf } from './addresses.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(networksOf(['10.0.0.0/8']).check('10.1.2.3', 'ipv4'), true);
 * ```
 */
export function networksOf(texts: readonly string[]): Networks {
  const list = new BlockList();
  for (const text of texts) {
    const [address = '', length] = text.split('/');
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
    if (length === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(length), family);
  }
  return list;
}

/**
 * What kind of address this is. IPv4 in IPv6 (mapped, translated, compatible, NAT64, 6to4, ISATAP) counts as the worse of the
 * two, and what is not an address as `own`.
 *
 * @example
 * ```ts
 * import { addressKind } from './addresses.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(addressKind('168.63.129.16'), 'metadata');
 * assert.equal(addressKind('::ffff:127.0.0.1'), 'own');
 * assert.equal(addressKind('10.1.2.3'), 'private');
 * assert.equal(addressKind('8.8.8.8'), 'public');
 * ```
 */
export function addressKind(address: string): AddressKind {
  if (isIP(address) === 0) return 'own';
  return KINDS.find(([, networks]) => isIn(networks, address))?.[0] ?? 'public';
}

/**
 * The first of `addresses` that the policy refuses. A name is contacted only if the policy allows all of them: the next lookup
 * may return another one.
 *
 * @example
 * ```ts
 * import { networksOf, refusedAddress } from './addresses.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(refusedAddress(['8.8.8.8', '10.0.0.1'], { chosenBy: 'tenant' }), '10.0.0.1');
 * assert.equal(refusedAddress(['10.0.0.1'], { chosenBy: 'platform' }), undefined);
 * assert.equal(refusedAddress(['10.0.0.1'], { chosenBy: 'tenant', allow: networksOf(['10.0.0.0/24']) }), undefined);
 * ```
 */
export function refusedAddress(addresses: readonly string[], policy: AddressPolicy): string | undefined {
  const { chosenBy, allow } = policy;
  return addresses.find(
    (address) =>
      REFUSED[chosenBy].includes(addressKind(address)) && (allow === undefined || !isIn(allow, address)),
  );
}

function isIn(networks: Networks, address: string): boolean {
  if (isIP(address) === 4) return networks.check(address, 'ipv4');
  const embedded = embeddedIpv4(address);
  const [bare = ''] = address.split('%');
  return networks.check(bare, 'ipv6') || (embedded !== undefined && networks.check(embedded, 'ipv4'));
}

/** First six groups of addresses that end with an IPv4 one: compatible, mapped, translated, NAT64. */
const EMBEDDING = ['0:0:0:0:0:0', '0:0:0:0:0:65535', '0:0:0:0:65535:0', '100:65435:0:0:0:0'];

/** The IPv4 part of `::/96`, `::ffff:0:0/96`, `::ffff:0:0:0/96`, `64:ff9b::/96`, `2002::/16`, and `::5efe:0:0` in any network. */
function embeddedIpv4(address: string): string | undefined {
  const groups = expand(address);
  const quad = (high = 0, low = 0): string => [high >> 8, high & 255, low >> 8, low & 255].join('.');
  const head = groups.slice(0, 6).join(':');
  if (EMBEDDING.includes(head)) return quad(groups[6], groups[7]);
  if (groups[5] === 0x5efe && (groups[4] === 0 || groups[4] === 0x200)) return quad(groups[6], groups[7]);
  return groups[0] === 0x2002 ? quad(groups[1], groups[2]) : undefined;
}

/** The eight groups of an IPv6 address as numbers. A URL writes a dotted end in hexadecimal. */
function expand(address: string): readonly number[] {
  const [bare = ''] = address.split('%');
  const [left = '', right] = new URL(`http://[${bare}]`).hostname.slice(1, -1).split('::');
  const numbers = (text = ''): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const [before, after] = [numbers(left), numbers(right)];
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}

/** Resolves the addresses of a host name, or rejects. */
export type Resolve = (host: string) => Promise<readonly string[]>;

async function resolveHost(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true });
  return found.map((entry) => entry.address);
}

/** The host of a URL, an IPv6 address without its brackets. */
export function bareHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** Rules of {@link guardedAddresses}. */
export interface AddressGuard {
  /** Undefined if a user configured the host: every address is allowed. */
  readonly policy: AddressPolicy | undefined;
  /** The error for the first address that the policy refuses. */
  readonly refused: (url: URL, address: string) => Error;
  /** A proxy looks the name up. @default {false} */
  readonly isProxied?: boolean;
  readonly resolve?: Resolve | undefined;
}

/**
 * The addresses to connect to for the host of `url`; undefined where a proxy connects. The caller connects to these and not to
 * the name, so that a second lookup cannot return another address. A name that only the proxy can resolve is not checked.
 *
 * @throws the error of `refused`, or HttpError `HostNotFound`
 */
export async function guardedAddresses(
  url: URL,
  { policy, refused, isProxied = false, resolve = resolveHost }: AddressGuard,
): Promise<readonly string[] | undefined> {
  const host = bareHost(url);
  const addresses =
    isIP(host) === 0
      ? await resolve(host).catch((error: unknown) => {
          if (isProxied) return [];
          throw httpErrorOf(error, url.host);
        })
      : [host];
  const bad = policy === undefined ? undefined : refusedAddress(addresses, policy);
  if (bad !== undefined) throw refused(url, bad);
  return isProxied ? undefined : addresses;
}
