/** Proxy settings of the environment, in the format of Go (kubectl, oc): NO_PROXY with names, suffixes, addresses and CIDRs. */

import { isIP } from 'node:net';
import { type Redacted, redact } from '../core/redacted.ts';
import { bareHost, isNetwork, networksOf } from './addresses.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy for `url` (https), or undefined for none. Loopback is never proxied. Source of the rule: Go's
 * `golang.org/x/net/http/httpproxy`, which every other Kubernetes client follows.
 */
export function proxyFor(url: string, env: Environment): Redacted<string> | undefined {
  const proxy = env['HTTPS_PROXY'] || env['https_proxy'];
  if (proxy === undefined || proxy === '') return undefined;
  const target = new URL(url);
  const { port } = target;
  const host = bareHost(target);
  if (isLoopback(host)) return undefined;
  const entries = (env['NO_PROXY'] || env['no_proxy'] || '')
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== '');
  if (entries.some((entry) => excludes(entry, host, port === '' ? '443' : port))) return undefined;
  return redact(proxy.includes('://') ? proxy : `http://${proxy}`);
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
  const family = isIP(host);
  if (!isNetwork(range) || family !== isIP(range.split('/')[0] ?? '')) return false;
  return networksOf([range]).check(host, family === 4 ? 'ipv4' : 'ipv6');
}
