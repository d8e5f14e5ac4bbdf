/** Which proxy the environment asks for, as Go programs (kubectl, oc) understand it: NO_PROXY with names, suffixes, addresses and CIDR ranges. */
import { BlockList, isIP } from 'node:net';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy for `url` (https), or undefined for none. Loopback is never proxied. Source of the rule: Go's
 * `golang.org/x/net/http/httpproxy`, which every other Kubernetes client follows.
 *
 * @example
 * ```ts
 * import { proxyFor } from './proxy.ts';
 * import assert from 'node:assert/strict';
 *
 * const env = { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: '.svc,10.0.0.0/8' };
 * assert.equal(proxyFor('https://api.example.com:6443', env), 'http://proxy:3128');
 * assert.equal(proxyFor('https://10.1.2.3:6443', env), undefined);
 * assert.equal(proxyFor('https://kubernetes.default.svc', env), undefined);
 * ```
 */
export function proxyFor(url: string, env: Environment): string | undefined {
  const proxy = env['HTTPS_PROXY'] || env['https_proxy'];
  if (proxy === undefined || proxy === '') return undefined;
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (isLoopback(host)) return undefined;
  const entries = (env['NO_PROXY'] || env['no_proxy'] || '')
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== '');
  if (entries.some((entry) => excludes(entry, host, port === '' ? '443' : port))) return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function excludes(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  if (entry.includes('/')) return inRange(entry, host);
  const [, name = entry, wantedPort] = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(entry) ?? [];
  if (wantedPort !== undefined && wantedPort !== port) return false;
  const plain = name.replace(/^\[|\]$/g, '').replace(/^\*/, '');
  if (isIP(plain) !== 0) return plain === host;
  return plain.startsWith('.') ? host.endsWith(plain) : host === plain || host.endsWith(`.${plain}`);
}

function inRange(range: string, host: string): boolean {
  const [network = '', bits = ''] = range.split('/');
  const family = isIP(network);
  if (family === 0 || isIP(host) !== family || !/^\d+$/.test(bits)) return false;
  if (Number(bits) > (family === 4 ? 32 : 128)) return false;
  const list = new BlockList();
  const kind = family === 4 ? 'ipv4' : 'ipv6';
  list.addSubnet(network, Number(bits), kind);
  return list.check(host, kind);
}
