/**
 * The in-cluster connection: two variables and the files of the ServiceAccount. Does not load the kubeconfig library, which would
 * use most of the agent's memory.
 */
import { readFileSync } from 'node:fs';
import { errnoOf, PullwrightError } from '../core/errors.ts';
import { redact } from '../core/redacted.ts';
import type { Connection } from './client.ts';

/** Where the kubelet mounts the ServiceAccount. */
export const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Returns the in-cluster connection. @throws PullwrightError outside a pod, or without CA and token files */
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
    // Read for every request, because the kubelet renews it.
    credentials: async () => ({ token: redact(readCredentialFile(`${folder}/token`).trim()) }),
  };
}

const FILE_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'not found',
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  EPERM: 'permission denied',
  ERR_ACCESS_DENIED: 'this process has no permission to read it',
};

/** Why a file cannot be read, without its content; `otherwise` if the error has no code of the operating system. */
export function fileFailure(error: unknown, otherwise: string): string {
  const code = errnoOf(error);
  return code === undefined ? otherwise : (FILE_FAILURES[code] ?? `the system returned ${code}`);
}

/** Reads a certificate, key or token. @throws PullwrightError `CredentialFileUnreadable` */
export function readCredentialFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new PullwrightError(`Cannot read "${path}": ${fileFailure(error, 'unknown error')}`, {
      code: 'CredentialFileUnreadable',
      hint: 'Check that the file exists and that the user of this process may read it',
    });
  }
}
