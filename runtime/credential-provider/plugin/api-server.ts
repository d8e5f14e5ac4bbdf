/** Where the API server is and which CA its certificate must come from, as files on the node say. */
import { readFileSync } from 'node:fs';
import { PullwrightError } from '../../rules/errors.ts';
import type { ProviderOptions } from './options.ts';

export interface ApiServer {
  /** `https://host:port`, IPv6 in brackets. */
  readonly url: string;
  /** PEM. */
  readonly ca: string;
}

/**
 * Host and port from the text of `apiserver-url.env`; `localhost:6443` unless both are there.
 *
 * @example
 * ```ts
 * import { serverUrl } from './api-server.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(serverUrl("export KUBERNETES_SERVICE_HOST='fd00::1'\nKUBERNETES_SERVICE_PORT=6443 # api\n"), 'https://[fd00::1]:6443');
 * assert.equal(serverUrl('KUBERNETES_SERVICE_HOST=10.0.0.1'), 'https://localhost:6443');
 * ```
 */
export function serverUrl(envFile: string | undefined): string {
  const host = variable(envFile ?? '', 'KUBERNETES_SERVICE_HOST');
  const port = variable(envFile ?? '', 'KUBERNETES_SERVICE_PORT');
  if (host === undefined || port === undefined) return 'https://localhost:6443';
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
  const value = quoted === null ? raw.replace(/\s+#.*$/, '').trim() : quoted[2];
  return value === '' ? undefined : value;
}

/** Address and CA. Without a CA no request may be sent, so that is an error. */
export function findApiServer(options: ProviderOptions): ApiServer {
  const url = serverUrl(textOf(options.apiServerEnv));
  const ca = options.caFile === undefined ? discoveredCa(options) : textOf(options.caFile);
  if (ca !== undefined && ca.includes('-----BEGIN')) return { url, ca };
  const places =
    options.caFile === undefined ? [...options.kubeconfigs, ...options.caFiles] : [options.caFile];
  throw new PullwrightError(
    `unable to get secrets: no CA to verify the API server with in ${places.join(', ')}, and nothing is sent to a server that is not verified`,
    {
      code: 'NoApiServerCa',
      disposition: 'terminal',
      hint: "Point --ca-file at the PEM file of the API server's CA",
    },
  );
}

function discoveredCa(options: ProviderOptions): string | undefined {
  for (const path of options.kubeconfigs) {
    const ca = caOfKubeconfig(textOf(path), path);
    if (ca !== undefined) return ca;
  }
  return options.caFiles.map(textOf).find((text) => text !== undefined);
}

/**
 * The CA that a kubeconfig names, by a search for its keys: block YAML on nodes, JSON elsewhere, and no parser for either.
 */
function caOfKubeconfig(text: string | undefined, path: string): string | undefined {
  if (text === undefined) return undefined;
  const data = /["']?certificate-authority-data["']?[ \t]*:[ \t]*["']?([A-Za-z0-9+/=]+)/.exec(text)?.[1];
  if (data !== undefined) return Buffer.from(data, 'base64').toString('latin1');
  const file = /["']?certificate-authority["']?[ \t]*:[ \t]*(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"',}]+))/.exec(
    text,
  );
  const named = file?.[1] ?? file?.[2] ?? file?.[3];
  if (named === undefined) return undefined;
  return textOf(named.startsWith('/') ? named : `${path.slice(0, path.lastIndexOf('/'))}/${named}`);
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
