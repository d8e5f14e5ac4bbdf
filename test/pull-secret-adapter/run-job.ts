/** Runs the Job inside this process against the doubles. */

import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runJobProcess } from '../../runtime/pull-secret-adapter/job-process.ts';
import type { JobResult } from '../../runtime/pull-secret-adapter/outcome.ts';
import { plantedAuth } from '../support/canary.ts';
import type { SecretManagerDouble } from './doubles/secret-manager.ts';

export const PATH = 'projects/cust-proj/secrets/hyperfleet-cls-123-pull-secret';

export function pullSecret(label = 'job'): string {
  return JSON.stringify({ auths: { 'quay.io': { auth: plantedAuth(label) } } });
}

export interface JobRun {
  readonly code: number;
  readonly result: JobResult;
  readonly lines: readonly Record<string, unknown>[];
  readonly text: string;
}

/** google-auth-library looks for the metadata server in the environment of the process. */
export function useMetadata(double: SecretManagerDouble): void {
  process.env['GCE_METADATA_HOST'] = double.host;
  process.env['METADATA_SERVER_DETECTION'] = 'assume-present';
  delete process.env['GOOGLE_APPLICATION_CREDENTIALS'];
}

export async function runJobHere(
  double: SecretManagerDouble,
  env: Readonly<Record<string, string>> = {},
  options: { readonly dryRun?: boolean } = {},
): Promise<JobRun> {
  useMetadata(double);
  const file = join(tmpdir(), `pullwright-result-${randomUUID()}.json`);
  let text = '';
  const code = await runJobProcess({
    env: {
      ...double.jobEnv,
      GCP_PROJECT_ID: 'cust-proj',
      CLUSTER_ID: 'cls-123',
      PULL_SECRET_DATA: pullSecret(),
      RESULT_FILE: '',
      TERMINATION_LOG: file,
      ...env,
    },
    signal: new AbortController().signal,
    dryRun: options.dryRun ?? false,
    write: (line) => {
      text += line;
    },
    openCluster: () => Promise.reject(new Error('no cluster in this test')),
  });
  const written = readFileSync(file, 'utf8');
  rmSync(file);
  const lines = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { code, result: JSON.parse(written) as JobResult, lines, text: text + written };
}
