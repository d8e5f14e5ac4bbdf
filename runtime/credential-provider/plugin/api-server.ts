/** Where the API server is and which CA its certificate must come from, as files on the node say. */

import { readFileSync } from 'node:fs';
import {
  currentCluster,
  type KubeconfigCluster,
  plainKubeconfig,
} from '../../rules/credential-provider/kubeconfig.ts';
import { PullwrightError } from '../../rules/errors.ts';
import { trimEndOf } from '../../rules/text/trim.ts';
import type { ProviderOptions } from './options.ts';

export interface ApiServer {
  /** `https://host:port` with the path that a kubeconfig may give, IPv6 in brackets. */
  readonly url: string;
  /** PEM. */
  readonly ca: string;
  /** Name that the certificate must be for, where it is not the host of {@link url}. */
  readonly serverName?: string;
}

/** An API server, and the file that its CA is from. */
export interface FoundServer extends ApiServer {
  readonly caFrom: string;
}

const LOCAL = 'https://localhost:6443';

/** The address in `apiserver-url.env`; undefined unless host and port are there. */
function urlOfEnv(envFile: string | undefined): string | undefined {
  const host = variable(envFile ?? '', 'KUBERNETES_SERVICE_HOST');
  const port = variable(envFile ?? '', 'KUBERNETES_SERVICE_PORT');
  if (host === undefined || port === undefined) return undefined;
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const url = `https://${bare.includes(':') ? `[${bare}]` : bare}:${port}`;
  if (/^[0-9]+$/.test(port) && URL.canParse(url)) return url;
  throw new PullwrightError(`unable to get secrets: "${host}:${port}" is no address of an API server`, {
    code: 'ApiServerAddress',
    disposition: 'terminal',
    hint: 'Correct KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in apiserver-url.env',
  });
}

/** The last assignment of `name` in dotenv text; quotes, `export` and comments are allowed. Empty counts as absent. */
function variable(text: string, name: string): string | undefined {
  const lines = text.matchAll(new RegExp(`^[ \\t]*(?:export[ \\t]+)?${name}[ \\t]*[=:][ \\t]*(.*)$`, 'gm'));
  const raw = [...lines].at(-1)?.[1]?.trim() ?? '';
  const quoted = /^(['"])(.*?)\1/.exec(raw);
  const value = quoted === null ? raw.split(/[ \t]#/, 1)[0]?.trim() : quoted[2];
  return value === '' ? undefined : value;
}

/**
 * Address and CA: the address of `apiserver-url.env`, else of the first kubeconfig with one, else this host; the CA of the same
 * kubeconfigs, then the CA files. Without a CA no request may be sent, so that is an error.
 */
export async function findApiServer(options: ProviderOptions): Promise<FoundServer> {
  const url = urlOfEnv(textOf(options.apiServerEnv));
  const given = options.caFile === undefined ? undefined : firstOf([options.caFile]);
  if (options.caFile !== undefined && given === undefined) throw noAuthority(options);
  const known: Known = {
    ...(url === undefined ? {} : { address: { url } }),
    ...(given === undefined ? {} : { authority: given }),
  };
  // With both there is nothing to ask a kubeconfig.
  const { address, authority } =
    url !== undefined && given !== undefined ? known : await askKubeconfigs(options.kubeconfigs, known);
  const trusted = authority ?? firstOf(options.caFiles);
  if (trusted === undefined) throw noAuthority(options);
  return { ...(address ?? { url: LOCAL }), ...trusted };
}

type Address = Pick<ApiServer, 'url' | 'serverName'>;

interface Known {
  readonly address?: Address;
  readonly authority?: Authority;
}

/** Fills in what is not known yet, from as few kubeconfigs as it takes. */
async function askKubeconfigs(paths: readonly string[], { address, authority }: Known): Promise<Known> {
  for (const path of paths) {
    const cluster = await clusterIn(path);
    if (cluster === undefined) continue;
    address = withAddress(address, cluster, path);
    authority ??= authorityOf(path, caOf(cluster, path));
    if (authority !== undefined && address !== undefined) break;
  }
  return { ...(address === undefined ? {} : { address }), ...(authority === undefined ? {} : { authority }) };
}

/** The same server with each other CA of the node, for when its certificate is not from the first. */
export async function otherAuthorities(
  options: ProviderOptions,
  server: FoundServer,
): Promise<readonly FoundServer[]> {
  if (options.caFile !== undefined) return [];
  const found: Authority[] = [];
  for (const path of options.kubeconfigs) {
    const cluster = await clusterIn(path);
    const authority = cluster && authorityOf(path, caOf(cluster, path));
    if (authority !== undefined) found.push(authority);
  }
  for (const path of options.caFiles) {
    const authority = authorityOf(path, pemOf(path));
    if (authority !== undefined) found.push(authority);
  }
  const seen = new Set([server.ca]);
  return found.flatMap((authority) => {
    if (seen.has(authority.ca)) return [];
    seen.add(authority.ca);
    return [{ ...server, ...authority }];
  });
}

type Authority = Pick<FoundServer, 'ca' | 'caFrom'>;

function authorityOf(caFrom: string, ca: string | undefined): Authority | undefined {
  return ca === undefined ? undefined : { ca, caFrom };
}

function firstOf(paths: readonly string[]): Authority | undefined {
  for (const path of paths) {
    const authority = authorityOf(path, pemOf(path));
    if (authority !== undefined) return authority;
  }
  return undefined;
}

function noAuthority({ caFile, kubeconfigs, caFiles }: ProviderOptions): PullwrightError {
  const places = caFile === undefined ? [...kubeconfigs, ...caFiles] : [caFile];
  return new PullwrightError(
    `unable to get secrets: no CA to verify the API server with in ${places.join(', ')}, and nothing is sent to a server that is not verified`,
    {
      code: 'NoApiServerCa',
      disposition: 'terminal',
      hint: "Point --kubeconfig at the kubelet's kubeconfig, or --ca-file at the PEM file of the API server's CA (provider.kubeconfigs and provider.caFile of the section)",
    },
  );
}

/** What is known of the address already wins; the name in the certificate belongs to the kubeconfig's own address. */
function withAddress(
  known: Address | undefined,
  { server, serverName }: KubeconfigCluster,
  path: string,
): Address | undefined {
  if (server === undefined) return known;
  const url = urlOf(server, path);
  if (known !== undefined && known.url !== url) return known;
  const name = known?.serverName ?? serverName;
  return { url, ...(name === undefined ? {} : { serverName: name }) };
}

/** The address of a kubeconfig in the form that requests are made with. */
function urlOf(server: string, path: string): string {
  const parsed = URL.canParse(server) ? new URL(server) : undefined;
  if (parsed?.protocol === 'https:')
    return `https://${parsed.hostname}:${parsed.port === '' ? '443' : parsed.port}${trimEndOf(parsed.pathname, '/')}`;
  throw new PullwrightError(
    `unable to get secrets: server "${server.slice(0, 200)}" of "${path}" is no address of an API server`,
    {
      code: 'ApiServerAddress',
      disposition: 'terminal',
      hint: `Correct clusters[].cluster.server of "${path}" to https://host:port, or set KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in apiserver-url.env`,
    },
  );
}

/** The YAML library is loaded only for a kubeconfig that is not of the usual form. */
async function clusterIn(path: string): Promise<KubeconfigCluster | undefined> {
  const text = textOf(path);
  if (text === undefined) return undefined;
  const plain = plainKubeconfig(text);
  if (plain !== undefined) return currentCluster(plain);
  try {
    return currentCluster((await import('../../kube/yaml.ts')).parseYaml(text));
  } catch {
    return undefined;
  }
}

function caOf({ caData, caFile }: KubeconfigCluster, path: string): string | undefined {
  if (caData !== undefined) return pem(Buffer.from(caData, 'base64').toString('latin1'));
  if (caFile === undefined) return undefined;
  return pemOf(caFile.startsWith('/') ? caFile : `${path.slice(0, path.lastIndexOf('/'))}/${caFile}`);
}

function pemOf(path: string): string | undefined {
  return pem(textOf(path));
}

function pem(text: string | undefined): string | undefined {
  return text?.includes('-----BEGIN') === true ? text : undefined;
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
