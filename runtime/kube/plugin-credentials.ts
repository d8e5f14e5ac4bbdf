/**
 * Credentials that an exec plugin gives, by way of @kubernetes/client-node, which runs it. What that lacks is here: it gives an
 * answer again although the API server refused it, tells the plugin nothing, and looks for it in the working folder.
 */
import type { RequestOptions } from 'node:https';
import { basename, dirname, resolve } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { PullwrightError } from '../rules/errors.ts';
import { redact } from '../rules/redacted.ts';
import type { Connection, Credentials } from './connection.ts';

/** Many requests are refused at once; the answer that the first of them gets is for all. */
const REFUSAL_MS = 1000;

/**
 * The credentials of the current user.
 *
 * @param load reads the kubeconfig; what a plugin answered is remembered in the result, until the time that it named
 * @param file path of the kubeconfig, from which a relative command of a plugin counts
 */
export function pluginCredentials(load: () => KubeConfig, file: string): Connection['credentials'] {
  let config = prepared(load(), file);
  let pending: Promise<Credentials> | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;
  return async (refused) => {
    // By a clock that nobody sets back.
    if (refused && performance.now() - renewedAt > REFUSAL_MS) {
      renewedAt = performance.now();
      config = prepared(load(), file);
      pending = undefined;
    }
    // One run of the plugin for all that ask meanwhile.
    const asked = (pending ??= ask(config));
    try {
      return await asked;
    } finally {
      if (pending === asked) pending = undefined;
    }
  };
}

/** Source of the rule: client-go's exec plugin: relative commands that are no mere name, and `KUBERNETES_EXEC_INFO`. */
function prepared(config: KubeConfig, file: string): KubeConfig {
  const exec = config.getCurrentUser()?.exec as ExecConfig | undefined;
  if (!exec) return config;
  if (exec.command && basename(exec.command) !== exec.command)
    exec.command = resolve(dirname(file), exec.command);
  const cluster = config.getCurrentCluster();
  const info = {
    apiVersion: exec.apiVersion,
    kind: 'ExecCredential',
    spec: {
      interactive: false,
      ...(exec.provideClusterInfo === true && cluster !== null
        ? { cluster: { server: cluster.server, 'certificate-authority-data': cluster.caData } }
        : {}),
    },
  };
  exec.env = [...(exec.env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }];
  return config;
}

/** What client-node calls `any`. */
interface ExecConfig {
  command?: string;
  readonly apiVersion?: string;
  readonly provideClusterInfo?: boolean;
  env?: readonly { readonly name: string; readonly value: string }[] | null;
}

async function ask(config: KubeConfig): Promise<Credentials> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch {
    throw failure(config);
  }
  const { Authorization: authorization = '' } = (options.headers ?? {}) as { Authorization?: string };
  const token = authorization.startsWith('Bearer ') ? redact(authorization.slice(7)) : undefined;
  if (token === undefined && options.cert === undefined) throw failure(config);
  return {
    ...(token === undefined ? {} : { token }),
    ...(options.cert === undefined ? {} : { certificate: pemText(options.cert) }),
    ...(options.key === undefined ? {} : { key: redact(pemText(options.key)) }),
  };
}

/** Without the cause: what the plugin printed may hold a credential. */
function failure(config: KubeConfig): PullwrightError {
  const { command = '' } = (config.getCurrentUser()?.exec ?? {}) as ExecConfig;
  return new PullwrightError(`Cannot get credentials: the plugin "${command}" of the kubeconfig gave none`, {
    code: 'CredentialPluginFailed',
    hint: 'Run kubectl with the same kubeconfig to see what it says',
  });
}

/** node:https takes PEM as text or bytes. */
function pemText(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString('utf8') : (value as string);
}
