/**
 * The API server as every pod finds it: two variables and the files of its ServiceAccount. Programs in a pod do without the
 * library that reads kubeconfigs, which would be most of the agent's memory.
 */
import { readFileSync } from 'node:fs';
import { errnoOf, PullwrightError } from '../core/errors.ts';
import { redact } from '../core/redacted.ts';
import type { Connection } from './client.ts';

/** Where the kubelet mounts the ServiceAccount. */
export const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount';

/** @throws PullwrightError when this is not a pod with a token */
export function podConnection(env: Readonly<Record<string, string | undefined>>, folder: string): Connection {
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443';
  if (host === undefined) {
    throw new PullwrightError('Cannot find the API server: KUBERNETES_SERVICE_HOST is not set', {
      code: 'NoApiServer',
      hint: 'It is set in every pod; the token needs automountServiceAccountToken',
    });
  }
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: readCredentialFile(`${folder}/ca.crt`),
    // Read again each time: the kubelet renews it.
    credentials: async () => ({ token: redact(readCredentialFile(`${folder}/token`).trim()) }),
  };
}

const FILE_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'not found',
  EACCES: 'no right to read it',
  EISDIR: 'it is a folder',
};

/** Why a file cannot be read, in words that hold nothing of it; `otherwise` for what the operating system did not refuse. */
export function fileFailure(error: unknown, otherwise: string): string {
  const code = errnoOf(error);
  return code === undefined ? otherwise : (FILE_FAILURES[code] ?? code);
}

/** The text of a certificate, key or token. @throws PullwrightError `CredentialFileUnreadable` */
export function readCredentialFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new PullwrightError(`Cannot read "${path}": ${fileFailure(error, 'unknown error')}`, {
      code: 'CredentialFileUnreadable',
    });
  }
}
