/* oxlint-disable complexity -- one branch for each table of the case file */

import { backOffMs } from '../../../../runtime/core/back-off.ts';
import { redact } from '../../../../runtime/core/redacted.ts';
import { retry } from '../../../../runtime/http/client.ts';
import { readJobConfig } from '../../../../runtime/pull-secret-adapter/job/config.ts';
import {
  GcpError,
  JobError,
  retryableStatus,
} from '../../../../runtime/pull-secret-adapter/job/gcp-error.ts';
import { againAfter, JOB_BACK_OFF } from '../../../../runtime/pull-secret-adapter/job/job.ts';
import { gcpLabels } from '../../../../runtime/pull-secret-adapter/names.ts';
import { judgePullSecret } from '../../../../runtime/pull-secret-adapter/pull-secret.ts';
import type { ConformanceCase, ConformanceSuite } from '../../suite.ts';

interface RetryCase {
  readonly fails: number;
  readonly max: number;
  readonly code?: string;
  readonly ctx_cancelled?: boolean;
  readonly attempts?: number;
  readonly ok?: boolean;
  readonly error?: string;
}

interface File {
  readonly validate_pull_secret: readonly {
    name: string;
    input: string;
    ok: boolean;
    error_contains?: string;
    requirement_ok?: boolean;
  }[];
  readonly validate_config: readonly {
    name: string;
    task: Record<string, string>;
    ok: boolean;
    error?: string;
  }[];
  readonly get_tasks: readonly { env: Record<string, string>; secret_name?: string; error?: string }[];
  readonly retryable: Readonly<Record<string, boolean>>;
  readonly retry: { readonly base_backoff_ms: readonly number[]; readonly cases: readonly RetryCase[] };
  readonly labels: Readonly<Record<string, string>>;
  readonly labels_required_by_requirements_doc?: readonly string[];
}

type Input =
  | { kind: 'pull secret'; text: string; contains: string | undefined }
  | { kind: 'config'; task: Record<string, string> }
  | { kind: 'task'; env: Record<string, string> }
  | { kind: 'code'; code: string }
  | { kind: 'backoff'; attempt: number }
  | { kind: 'retry'; one: RetryCase }
  | { kind: 'labels'; id: string; name?: string };

export const suite: ConformanceSuite<Input> = {
  cases(document) {
    const file = document as File;
    const found: ConformanceCase<Input>[] = [];
    for (const one of file.validate_pull_secret) {
      const ok = one.requirement_ok ?? one.ok;
      found.push({
        name: one.name,
        input: { kind: 'pull secret', text: one.input, contains: one.error_contains },
        expected: { ok },
      });
    }
    for (const one of file.validate_config)
      found.push({ name: one.name, input: { kind: 'config', task: one.task }, expected: one.error ?? 'ok' });
    for (const one of file.get_tasks)
      found.push({
        name: `task ${one.error ?? one.secret_name}`,
        input: { kind: 'task', env: one.env },
        expected: one.error ?? one.secret_name,
      });
    for (const [code, expected] of Object.entries(file.retryable))
      found.push({ name: code, input: { kind: 'code', code }, expected });
    for (const [index, expected] of file.retry.base_backoff_ms.entries())
      found.push({
        name: `pause ${index + 1}`,
        input: { kind: 'backoff', attempt: index + 1 },
        expected: [expected * 0.8, expected, expected * 1.2],
      });
    for (const one of file.retry.cases) {
      const { attempts, ok, error } = one;
      found.push({
        name: `retry ${JSON.stringify(one)}`,
        input: { kind: 'retry', one },
        expected: error === undefined ? { attempts, ok } : { ok: false },
      });
    }
    const id = 'cls-123';
    const labels = Object.fromEntries(
      Object.entries(file.labels).map(([key, value]) => [key, value.replace('{CLUSTER_ID}', id)]),
    );
    found.push({ name: 'labels', input: { kind: 'labels', id }, expected: labels });
    const more = Object.fromEntries(
      (file.labels_required_by_requirements_doc ?? []).map((key) => [
        key,
        key === 'cluster-name' ? 'one' : '',
      ]),
    );
    found.push({
      name: 'labels with name',
      input: { kind: 'labels', id, name: 'one' },
      expected: { ...labels, ...more },
    });
    return found;
  },
  async answer(input) {
    switch (input.kind) {
      case 'pull secret': {
        const problems = judgePullSecret(redact(input.text));
        const said =
          input.contains === undefined || problems.some((problem) => problem.includes(input.contains ?? ''));
        return said ? { ok: problems.length === 0 } : { problems };
      }
      case 'config': {
        const env = Object.fromEntries(
          Object.entries(input.task).map(([name, value]) => [VARIABLES[name] ?? name, value]),
        );
        const said = taskOf(env);
        if (said === env['SECRET_NAME']) return 'ok';
        const [, variable] = /^(\w+) environment variable is required/.exec(said) ?? [];
        return variable === undefined ? said : `missing required environment variable: ${variable}`;
      }
      case 'task':
        return taskOf(input.env);
      case 'code':
        return retryableStatus(input.code);
      case 'backoff':
        return [0, 0.5, 1].map((random) => Math.round(backOffMs(JOB_BACK_OFF, input.attempt - 1, random)));
      case 'labels':
        return gcpLabels(input);
      default:
        return retried(input.one);
    }
  },
  mutation: {
    file: 'runtime/pull-secret-adapter/pull-secret.ts',
    replace: 'entry.fault !== undefined',
    by: 'entry.fault === undefined',
  },
};

/** Fields of the existing job's task, and the variables that they come from. */
const VARIABLES: Readonly<Record<string, string>> = {
  gcp_project_id: 'GCP_PROJECT_ID',
  cluster_id: 'CLUSTER_ID',
  secret_name: 'SECRET_NAME',
  pull_secret: 'PULL_SECRET_DATA',
};

function taskOf(env: Record<string, string>): string {
  try {
    return readJobConfig(env, undefined).secretName;
  } catch (error) {
    return error instanceof JobError ? (error.message.split('; ')[0] ?? '') : 'unexpected';
  }
}

async function retried(one: RetryCase): Promise<unknown> {
  let attempts = 0;
  try {
    await retry(
      async () => {
        attempts += 1;
        if (attempts <= one.fails) throw new GcpError('AddSecretVersion', one.code ?? 'Unavailable');
      },
      {
        tries: one.max,
        waitMs: () => 0,
        longestWaitMs: 0,
        again: (tried) => ('error' in tried ? againAfter(tried.error) : undefined),
        pause: () =>
          one.ctx_cancelled === true ? Promise.reject(new Error('cancelled')) : Promise.resolve(),
      },
    );
    return { attempts, ok: true };
  } catch {
    return one.ctx_cancelled === true ? { ok: false } : { attempts, ok: false };
  }
}
