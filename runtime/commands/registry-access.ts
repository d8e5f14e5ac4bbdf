/** Flags by which commands reach registries, and the client they make. */
import { readFile } from 'node:fs/promises';
import { networksOf } from '../http/addresses.ts';
import { proxyFor } from '../http/proxy.ts';
import { RegistryClient } from '../registry/client.ts';
import { credentialsOf, type RegistryCredentials } from '../registry/token.ts';
import { RegistryTransport } from '../registry/transport.ts';
import { lookupForContainers } from '../rules/auth-lookup/containers.ts';
import type { AuthSource } from '../rules/auth-lookup/kubelet.ts';
import { UsageError } from '../rules/errors.ts';
import { redact } from '../rules/redacted.ts';
import type { CommandIo } from './command.ts';
import { duration, type Flag, file, several, text } from './flags/flag.ts';
import { ALLOW_ADDRESS } from './flags/network.ts';
import { takeProxySettings } from './proxy-settings.ts';

/** How registries are reached. */
export const REACH_FLAGS: {
  readonly timeout: Flag<number>;
  readonly ca: Flag<string | undefined>;
  readonly 'allow-host': Flag<readonly string[] | undefined>;
  readonly 'allow-address': Flag<readonly string[] | undefined>;
  readonly 'plain-host': Flag<readonly string[] | undefined>;
} = {
  timeout: duration({
    default: '15s',
    least: 1,
    most: 3_600_000,
    help: 'how long one answer of a registry may take',
  }),
  ca: file({ help: "certificates (PEM) to trust in place of the system's" }),
  'allow-host': several(
    text({
      value: 'HOST[:PORT]',
      help: 'a host that may have any address: a private one although a tenant named it, a loopback, link-local or metadata one',
    }),
  ),
  'allow-address': ALLOW_ADDRESS,
  'plain-host': several(text({ value: 'HOST:PORT', help: 'a host to speak to without TLS' })),
};

/** The same, with credentials out of a file. */
export const ACCESS_FLAGS: typeof REACH_FLAGS & { readonly authfile: Flag<string | undefined> } = {
  authfile: file({
    help: 'docker config.json with credentials; the longest key that covers a repository is used, as CRI-O does',
  }),
  ...REACH_FLAGS,
};

export interface AccessValues {
  readonly authfile?: string | undefined;
  readonly 'allow-host'?: readonly string[] | undefined;
  readonly 'allow-address'?: readonly string[] | undefined;
  readonly 'plain-host'?: readonly string[] | undefined;
  readonly ca?: string | undefined;
  /** Milliseconds. */
  readonly timeout?: number;
}

/** Makes the client, which looks for credentials in `secrets` and then in the file of the flags. Of the environment, `HTTPS_PROXY` and `NO_PROXY` count, as Go reads them; what would weaken TLS does not. */
export async function registryClient(
  values: AccessValues,
  env: CommandIo['env'],
  secrets: readonly AuthSource[] = [],
): Promise<RegistryClient> {
  const { transport, timeoutMs } = await registryTransport(values, env);
  const given = values.authfile === undefined ? [] : [await readAuthFile(values.authfile)];
  const credentialFor = credentialsFrom([...secrets, ...given]);
  return new RegistryClient({ transport, credentialFor, timeoutMs });
}

/** The way to registries, and how long to wait for an answer. */
export async function registryTransport(
  values: AccessValues,
  env: CommandIo['env'] = process.env,
): Promise<{ readonly transport: RegistryTransport; readonly timeoutMs: number }> {
  const ca = values.ca === undefined ? undefined : [await readText(values.ca, 'certificates')];
  const settings = takeProxySettings(env);
  const transport = new RegistryTransport({
    proxyFor: (url) => {
      const proxy = proxyFor(url, settings);
      return proxy === undefined ? undefined : redact(proxy);
    },
    allowHosts: values['allow-host'] ?? [],
    ...(values['allow-address'] === undefined ? {} : { allowNetworks: networksOf(values['allow-address']) }),
    plainHosts: values['plain-host'] ?? [],
    ...(ca === undefined ? {} : { ca }),
  });
  return { transport, timeoutMs: values.timeout ?? 15_000 };
}

/** A docker config.json that can be read. @throws UsageError */
export async function readAuthFile(path: string): Promise<AuthSource> {
  const file = {
    name: path,
    format: 'config.json',
    text: redact(await readText(path, 'credentials')),
  } as const;
  const fault = authFault(file);
  if (fault === undefined) return file;
  throw new UsageError(`Cannot read "${path}": ${fault}`);
}

/** Why nothing can be looked up in a file; undefined when it can. */
export function authFault(file: AuthSource): string | undefined {
  const probe = lookupForContainers([file], 'localhost/any');
  return probe.found === 'error' ? probe.goText : undefined;
}

/** Credentials by repository, out of files that are asked in order. */
export function credentialsFrom(
  files: readonly AuthSource[],
): (repository: string) => RegistryCredentials | undefined {
  return (repository) => {
    const found = lookupForContainers(files, repository);
    if (found.found !== 'credential') return undefined;
    const { username, password, identityToken } = found.credential;
    return credentialsOf({ username, password, identityToken });
  };
}

async function readText(path: string, what: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => {
    throw new UsageError(`Cannot read "${path}": expected a readable file with ${what}`);
  });
}
