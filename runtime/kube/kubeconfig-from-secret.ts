/**
 * Parses a kubeconfig from a Secret, which is untrusted. Only an https server and an inline CA, certificate, key or token are
 * allowed: nothing that reads files, runs programs, disables TLS verification or redirects traffic.
 */
import { isIP } from 'node:net';
import { YAMLParseError } from 'yaml';
import { PullwrightError } from '../core/errors.ts';
import { isRecord, scalarText, textOf } from '../core/record.ts';
import { type Redacted, redact, reveal } from '../core/redacted.ts';
import { type AddressPolicy, bareHost, type Networks, refusedAddress } from '../http/addresses.ts';
import type { Connection } from './client.ts';
import { REFUSED_SERVER } from './requester.ts';
import { parseShortYaml, yamlMistake } from './yaml.ts';

type Map = Readonly<Record<string, unknown>>;

const CLUSTER_FIELDS: readonly string[] = ['server', 'certificate-authority-data', 'tls-server-name'];
const USER_FIELDS: readonly string[] = ['client-certificate-data', 'client-key-data', 'token'];

/** Input of {@link connectionFromSecret}. */
export interface SecretKubeconfig {
  /** `Secret/ns/name`, for messages. */
  readonly subject: string;
  readonly text: Redacted<string>;
  /** Addresses that are allowed although they are loopback or link-local. @default none */
  readonly allow?: Networks;
}

/**
 * Returns the connection of the current context.
 *
 * @throws PullwrightError `KubeconfigRefused` with the name of every field that is not allowed, without values
 */
export function connectionFromSecret(input: SecretKubeconfig): Connection {
  const config = parsed(input);
  const context = named(config['contexts'], config['current-context'], 'context');
  const cluster = named(config['clusters'], context?.['cluster'], 'cluster');
  const user = named(config['users'], context?.['user'], 'user');
  if (cluster === undefined || user === undefined)
    throw refused(input, ['current-context: it has no context with a cluster and a user']);
  // The platform's operators write these Secrets, and most control planes have private addresses.
  const policy: AddressPolicy = { chosenBy: 'platform', allow: input.allow };
  const problems = [
    ...notAllowed('cluster', cluster, CLUSTER_FIELDS),
    ...notAllowed('user', user, USER_FIELDS),
    ...serverProblems(cluster['server'], policy),
  ];
  if (problems.length > 0) throw refused(input, problems);
  return { ...connectionOf(cluster, user), addresses: policy };
}

function connectionOf(cluster: Map, user: Map): Connection {
  const key = base64Text(user['client-key-data']);
  const token = textOf(user['token']);
  const credentials = {
    certificate: base64Text(user['client-certificate-data']),
    key: key === undefined ? undefined : redact(key),
    token: token === '' ? undefined : redact(token),
  };
  return {
    server: scalarText(cluster['server']),
    ca: base64Text(cluster['certificate-authority-data']),
    serverName: textOf(cluster['tls-server-name']) || undefined,
    credentials: () => Promise.resolve(credentials),
  };
}

function parsed(input: SecretKubeconfig): Map {
  let value: unknown;
  try {
    value = parseShortYaml(reveal(input.text));
  } catch (error) {
    // Only the message for an exceeded limit is our own. Others of the library may quote the text.
    const isTooMuch = error instanceof YAMLParseError && error.code === 'RESOURCE_EXHAUSTION';
    throw refused(input, [isTooMuch ? `it is too complex: ${yamlMistake(error)}` : 'it is not valid YAML']);
  }
  if (!isRecord(value)) throw refused(input, ['it must be an object']);
  return value;
}

function named(list: unknown, name: unknown, field: string): Map | undefined {
  if (!Array.isArray(list)) return undefined;
  const entry: unknown = list.find((one) => isRecord(one) && one['name'] === name);
  const value = isRecord(entry) ? entry[field] : undefined;
  return isRecord(value) ? value : undefined;
}

/** Other fields of kubeconfigs. Unknown names are not shown, because one may be a token without its "token:". */
const KNOWN_FIELDS: ReadonlySet<string> = new Set([
  'certificate-authority',
  'disable-compression',
  'extensions',
  'insecure-skip-tls-verify',
  'proxy-url',
  'as',
  'as-groups',
  'as-uid',
  'as-user-extra',
  'auth-provider',
  'client-certificate',
  'client-key',
  'exec',
  'password',
  'tokenFile',
  'username',
]);

function notAllowed(what: string, map: Map, allowed: readonly string[]): string[] {
  return Object.keys(map)
    .filter((field) => !allowed.includes(field) && map[field] !== false)
    .map((field) => `${what}.${KNOWN_FIELDS.has(field) ? field : '(unknown field)'} is not allowed`);
}

function serverProblems(server: unknown, policy: AddressPolicy): string[] {
  if (typeof server !== 'string' || !URL.canParse(server)) return ['cluster.server is not a URL'];
  const url = new URL(server);
  if (url.protocol !== 'https:') return ['cluster.server must be https'];
  if (url.username !== '' || url.password !== '') return ['cluster.server must not contain a user name'];
  const host = bareHost(url);
  return isIP(host) !== 0 && refusedAddress([host], policy) !== undefined
    ? [`cluster.server is ${REFUSED_SERVER}`]
    : [];
}

function refused(input: SecretKubeconfig, problems: readonly string[]): PullwrightError {
  return new PullwrightError(`Cannot use the kubeconfig in "${input.subject}": ${problems.join('; ')}`, {
    code: 'KubeconfigRefused',
    retryPolicy: 'terminal',
    hint: `Allowed are ${[...CLUSTER_FIELDS, ...USER_FIELDS].join(', ')}, all inline`,
  });
}

function base64Text(value: unknown): string | undefined {
  const encoded = textOf(value);
  return encoded === '' ? undefined : Buffer.from(encoded, 'base64').toString('utf8');
}
