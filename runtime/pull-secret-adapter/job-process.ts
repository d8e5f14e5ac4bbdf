/** The Job as a process: environment and files in, log lines, result file, termination message and exit code out. */
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient } from '../kube/client.ts';
import { type Redacted, redact } from '../rules/redacted.ts';
import { dryRun } from './dry-run.ts';
import { JobError } from './gcp-error.ts';
import { gcpIdentity } from './gcp-identity.ts';
import { failedEnd, type JobEnd, type JobLog, runJob } from './job.ts';
import { type Env, type JobConfig, readJobConfig, secretNameOf } from './job-config.ts';
import { SecretManager } from './secret-manager.ts';

export interface JobProcess {
  readonly env: Env;
  readonly signal: AbortSignal;
  readonly dryRun: boolean;
  /** Takes one line. */
  readonly write: (line: string) => unknown;
  /** Opens the cluster that the pod runs in. */
  readonly openCluster: () => Promise<KubeClient>;
}

/** Runs once. @returns the exit code: see `outcome.ts` */
export async function runJobProcess(options: JobProcess): Promise<number> {
  const { env } = options;
  const log = jobLog(env, options.write);
  let end: JobEnd;
  let config: JobConfig | undefined;
  try {
    config = readJobConfig(env, await pullSecretFile(env));
    end = options.dryRun ? await runDry(config, options, log) : await runWet(config, options, log);
  } catch (error) {
    end = failedEnd(
      config ?? { gcpProjectId: env['GCP_PROJECT_ID'] ?? '', secretName: secretNameOf(env) },
      log,
      error,
    );
  }
  await handOver(env, end);
  return end.exitCode;
}

async function runDry(config: JobConfig, options: JobProcess, log: JobLog): Promise<JobEnd> {
  return dryRun(config, await openManager(config, options), log);
}

async function runWet(config: JobConfig, options: JobProcess, log: JobLog): Promise<JobEnd> {
  const manager = await openManager(config, options);
  const client = config.managementNamespace === '' ? undefined : await options.openCluster();
  try {
    return await runJob(config, {
      manager,
      management:
        client === undefined
          ? undefined
          : {
              client,
              namespace: config.managementNamespace,
              name: config.managementSecretName,
              clusterId: config.clusterId,
              clusterName: config.clusterName,
              adopt: config.adopt,
            },
      runner: randomUUID(),
      now: () => Date.now(),
      pause: (ms) => sleep(ms, undefined, { signal: options.signal }),
      log,
    });
  } finally {
    client?.close();
  }
}

async function openManager(config: JobConfig, options: JobProcess): Promise<SecretManager> {
  const token = await gcpIdentity(config);
  return new SecretManager({
    endpoint: config.secretManagerEndpoint,
    project: config.gcpProjectId,
    token,
    timeoutMs: config.timeoutMs,
    signal: options.signal,
  });
}

async function pullSecretFile(env: Env): Promise<Redacted<string> | undefined> {
  const file = env['PULL_SECRET_FILE'] ?? '';
  if (file === '' || env['JOB_MODE'] === 'delete') return undefined;
  try {
    return redact(await readFile(file, 'utf8'));
  } catch (error) {
    throw new JobError(
      'InvalidConfiguration',
      `Cannot read the pull secret from "${file}" (PULL_SECRET_FILE)`,
      error,
    );
  }
}

/** The lines of the existing job: same names, one JSON object a line. */
function jobLog(env: Env, write: (line: string) => unknown): JobLog {
  return (level, operation, message, version) => {
    const line = {
      timestamp: `${new Date().toISOString().slice(0, 19)}Z`,
      level,
      cluster_id: env['CLUSTER_ID'] ?? '',
      gcp_project: env['GCP_PROJECT_ID'] ?? '',
      operation,
      message,
      ...(version === undefined ? {} : { version }),
    };
    write(`${JSON.stringify(line)}\n`);
  };
}

/** For the side-car of the sibling adapters, and for the adapter by way of the kubelet. Neither must fail the run. */
async function handOver(env: Env, end: JobEnd): Promise<void> {
  const text = JSON.stringify(end.result);
  const files = [env['RESULT_FILE'] ?? '', env['TERMINATION_LOG'] ?? '/dev/termination-log'];
  for (const file of files.filter((name) => name !== '')) {
    await writeFile(file, text, { mode: 0o644 }).catch(() => undefined);
  }
}
