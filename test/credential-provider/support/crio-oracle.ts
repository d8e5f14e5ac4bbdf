/**
 * Independent, simple implementation of CRI-O's use of an auth file, as an oracle for the provider: pull sources of an image, and
 * the credential for each.
 */
import { parse } from 'smol-toml';
import type { SecretLike } from './api-double.ts';

interface ConfMirror {
  readonly location: string;
}

interface ConfRegistry {
  readonly prefix?: string;
  readonly location?: string;
  readonly blocked?: boolean;
  readonly mirror?: readonly ConfMirror[];
}

type Entries = Readonly<Record<string, { readonly auth?: string; readonly identitytoken?: string }>>;

const trim = (place: string | undefined): string => (place ?? '').replace(/\/+$/, '');

/** Pull sources of CRI-O, by the texts of main file and drop-ins in order. */
export function oracleSources(confs: readonly string[], image: string): readonly string[] {
  const byPrefix = registriesByPrefix(confs);
  const name = image.replace(/@.*$/, '').replace(/:[^/]*$/, (tag) => (image.includes('/') ? '' : tag));
  const best = longest(byPrefix, name);
  if (best === undefined) return [];
  const [prefix, registry, rest] = best;
  const mirrors = (registry.mirror ?? []).map((mirror) => trim(mirror.location) + rest);
  const location = trim(registry.location) || (prefix.startsWith('*.') ? '' : prefix);
  const primary = location === '' ? name : location + rest;
  if (mirrors.length === 0 && primary === name) return [];
  return [...mirrors, primary].filter((place) => longest(byPrefix, place)?.[1].blocked !== true);
}

function registriesByPrefix(confs: readonly string[]): ReadonlyMap<string, ConfRegistry> {
  const byPrefix = new Map<string, ConfRegistry>();
  for (const text of confs) {
    const { registry = [] } = parse(text) as { registry?: ConfRegistry[] };
    // From last to first, so that the first of equal prefixes wins.
    for (const one of registry.toReversed()) byPrefix.set(trim(one.prefix) || trim(one.location), one);
  }
  return byPrefix;
}

function longest(
  byPrefix: ReadonlyMap<string, ConfRegistry>,
  name: string,
): [string, ConfRegistry, string] | undefined {
  const found = [...byPrefix].flatMap(([prefix, registry]): [string, ConfRegistry, string][] => {
    const pattern = prefix.startsWith('*.')
      ? new RegExp(`^[^/]*?${RegExp.escape(prefix.slice(1))}(?=$|[:/@])`)
      : new RegExp(`^${RegExp.escape(prefix)}(?=$|[:/@])`);
    const match = pattern.exec(name);
    return match === null ? [] : [[prefix, registry, name.slice(match[0].length)]];
  });
  return found.sort(([a], [b]) => b.length - a.length || (a < b ? -1 : 1))[0];
}

/** `user:password` that CRI-O sends for the repository with this auth file; undefined for none. */
export function oracleLookup(auths: Entries, repository: string): string | undefined {
  const parts = repository.split('/');
  for (let count = parts.length; count > 0; count -= 1) {
    const key = parts.slice(0, count).join('/');
    if (Object.hasOwn(auths, key)) return pairOf(auths[key]);
  }
  const host = hostOf(parts[0] ?? '');
  const alias = Object.keys(auths).find(
    (key) => hostOf(key.replace(/^https?:\/\/([^/]*).*$/, '$1')) === host,
  );
  return alias === undefined ? undefined : pairOf(auths[alias]);
}

function hostOf(host: string): string {
  return ['index.docker.io', 'registry-1.docker.io'].includes(host) ? 'docker.io' : host;
}

function pairOf(entry: Entries[string] | undefined): string | undefined {
  const pair = Buffer.from(entry?.auth ?? '', 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  const token = entry?.identitytoken === undefined ? '' : ` token ${entry.identitytoken}`;
  return colon === -1
    ? undefined
    : `${pair.slice(0, colon)}:${pair.slice(colon + 1).replace(/^\0+|\0+$/g, '')}${token}`;
}

/** Keys and credentials that a namespace offers, the first valid one of each key in the order of the secrets' names. */
export function oracleOffers(secrets: readonly SecretLike[]): Entries {
  const offers: Record<string, { auth: string; identitytoken?: string }> = {};
  for (const secret of [...secrets].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    for (const [key, entry] of Object.entries(bodyOf(secret))) {
      const canonical = canonicalOf(key);
      const valid = validOf(entry);
      if (valid !== undefined && !Object.hasOwn(offers, canonical)) offers[canonical] = valid;
    }
  }
  return offers;
}

function bodyOf({ type, data = {} }: SecretLike): Readonly<Record<string, Record<string, unknown>>> {
  const names: Record<string, string> = {
    'kubernetes.io/dockerconfigjson': '.dockerconfigjson',
    'kubernetes.io/dockercfg': '.dockercfg',
    'kubernetes.io/podmanconfigjson': '.podmanconfigjson',
  };
  try {
    const body = JSON.parse(Buffer.from(data[names[type ?? ''] ?? ''] ?? '', 'base64').toString('utf8'));
    return (type === 'kubernetes.io/dockercfg' ? body : body.auths) ?? {};
  } catch {
    return {};
  }
}

function canonicalOf(key: string): string {
  const [host = '', ...path] = key
    .replace(/^https?:\/\//i, '')
    .split('/')
    .filter((part, index) => part !== '' || index === 0);
  const rest = ['v1', 'v2'].includes(path[0] ?? '') ? path.slice(1) : path;
  return [hostOf(host.toLowerCase()), ...rest].join('/');
}

function validOf(
  entry: Record<string, unknown> | null,
): { auth: string; identitytoken?: string } | undefined {
  const fields = entry ?? {};
  const text = (name: string): string => (typeof fields[name] === 'string' ? fields[name] : '');
  const given =
    text('username') !== '' && text('password') !== '' ? `${text('username')}:${text('password')}` : '';
  const pair = pairIn(text('auth')) || Buffer.from(given).toString('base64');
  const identitytoken = text('identitytoken');
  if (identitytoken === '') return pair === '' ? undefined : { auth: pair };
  return { auth: pair || Buffer.from(`${text('username') || '<token>'}:`).toString('base64'), identitytoken };
}

function pairIn(auth: string): string {
  if (!/^[\w+/\s-]+=*\s*$/.test(auth)) return '';
  const [, user = '', secret = ''] =
    /^([^:]+):([\s\S]+)$/.exec(Buffer.from(auth, 'base64').toString('latin1')) ?? [];
  const isEmpty = secret.replace(/^\0+|\0+$/g, '') === '';
  return isEmpty ? '' : Buffer.from(`${user}:${secret}`, 'latin1').toString('base64');
}
