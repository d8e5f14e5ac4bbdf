/**
 * The API server as every pod finds it: two variables and the files of its ServiceAccount. The agent does without the library
 * that also reads kubeconfigs, which would be most of its memory.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PullwrightError } from '../core/errors.ts';
import { redact } from '../core/redacted.ts';
import type { Connection } from '../kube/client.ts';
import { fileError } from './atomic-file.ts';

/** @throws PullwrightError when this is no pod with a token */
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
    ca: read(join(folder, 'ca.crt')),
    // Read again each time: the kubelet renews it.
    credentials: () => Promise.resolve({ token: redact(read(join(folder, 'token')).trim()) }),
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw fileError('read', path, error);
  }
}
