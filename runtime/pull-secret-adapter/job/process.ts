/** The Job as a process: reads environment and files; writes log lines, result file, termination message and exit code. */
import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Redacted, redact } from '../../core/redacted.ts';
import type { HttpClient } from '../../http/client.ts';
import { openHttpClient } from '../../http/open.ts';
import type { KubeClient } from '../../kube/client.ts';
import { accountDomain, readTraceparent } from '../names.ts';
import { OUTCOMES } from '../outcome.ts';
import type { GooglePlace, KubernetesPlace } from '../places.ts';
import { type JobConfig, type JobEnvironment, readJobConfig, secretNameOf } from './config.ts';
import { JobError } from './gcp-error.ts';
import { gcpIdentity } from './identity.ts';
import { dryRunJob, failedEnd, type JobEnd, type JobLog, type JobShell, runJob } from './job.ts';
import { SecretManager } from './secret-manager.ts';

export interface JobProcess {
  readonly env: JobEnvironment;
  readonly signal: AbortSignal;
  readonly dryRun: boolean;
  /** Writes one line of the log. */
  readonly write: (line: string) => unknown;
  /** Connects to the cluster that the pod runs in. */
  readonly openCluster: () => Promise<KubeClient>;
  /** Waits between retries; rejects when the signal is aborted. @default {a timer} */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Runs once. @returns the exit code, see `runtime/pull-secret-adapter/outcome.ts` */
export async function runJobProcess(options: JobProcess): Promise<number> {
  const { env } = options;
  const log = jobLog(env, options.write);
  let end: JobEnd;
  let config: JobConfig | undefined;
  try {
    config = readJobConfig(env, await pullSecretFile(env));
    end = await runOpened(config, options, log);
  } catch (error) {
    end = failedEnd(
      config ?? { gcpProjectId: env['GCP_PROJECT_ID'] ?? '', secretName: secretNameOf(env) },
      log,
      error,
    );
  }
  await handOver(env, end);
  return OUTCOMES[end.reason].exitCode;
}

/** Opens the connections and runs. */
async function runOpened(config: JobConfig, options: JobProcess, log: JobLog): Promise<JobEnd> {
  const limit = runLimit(config, options.signal);
  const { signal } = limit;
  const { places, kubernetes, clusterId, clusterName, adopt } = config;
  const http = openHttpClient(options.env, [
    config.secretManagerEndpoint,
    ...places.map((place) => endpointOf(config, place.kind === 'google' ? place.location : undefined)),
    config.resourceManagerEndpoint,
    config.iamCredentialsEndpoint,
  ]);
  const client = kubernetes === undefined ? undefined : await openCluster(kubernetes, options);
  const shell: JobShell = {
    managerOf: (place) => openManager(config, place, { signal, http }),
    managementOf: (place) => {
      if (client === undefined) throw new TypeError('No cluster was opened');
      return { ...place, client, clusterId, clusterName, adopt };
    },
    runner: randomUUID(),
    now: () => Date.now(),
    pause: (ms) => options.pause?.(ms, signal) ?? sleep(ms, undefined, { signal }),
    log,
  };
  try {
    return options.dryRun ? await dryRunJob(config, shell) : await runJob(config, shell);
  } finally {
    limit.clear();
    client?.close();
    http.close();
  }
}

/** A signal that aborts on interruption or timeout, with the JobError of the run as its reason. */
function runLimit(config: JobConfig, interrupted: AbortSignal): { signal: AbortSignal; clear: () => void } {
  const limit = new AbortController();
  const interrupt = (): void =>
    limit.abort(new JobError('Interrupted', 'The run was interrupted and will be retried'));
  if (interrupted.aborted) interrupt();
  interrupted.addEventListener('abort', interrupt);
  const seconds = config.runTimeoutMs / 1000;
  const tooLong = new JobError(
    'SecretManagerUnavailable',
    `The run did not finish within ${seconds} s: the last line of its log shows where it waited`,
  );
  const timer = setTimeout(() => limit.abort(tooLong), config.runTimeoutMs);
  return { signal: limit.signal, clear: () => clearTimeout(timer) };
}

async function openCluster({ namespace, secret }: KubernetesPlace, options: JobProcess): Promise<KubeClient> {
  try {
    return await options.openCluster();
  } catch (error) {
    throw new JobError(
      'ManagementClusterUnavailable',
      `Cannot write Secret/${namespace}/${secret}: no access to the cluster; the pod needs the token of its ServiceAccount`,
      error,
    );
  }
}

function endpointOf({ secretManagerEndpoint, regionalEndpoint }: JobConfig, location: string | undefined) {
  return location === undefined
    ? secretManagerEndpoint
    : new URL(regionalEndpoint.replaceAll('{location}', location)).origin;
}

function openManager(
  config: JobConfig,
  { project, location }: GooglePlace,
  { signal, http }: { readonly signal: AbortSignal; readonly http: HttpClient },
): SecretManager {
  // Service account addresses contain a domain-scoped project in another form.
  const impersonate = config.impersonate.replaceAll('{project}', () => accountDomain(project));
  return new SecretManager({
    ...config,
    endpoint: endpointOf(config, location),
    project,
    location,
    token: gcpIdentity({ ...config, impersonate, signal, http }),
    http,
    signal,
  });
}

async function pullSecretFile(env: JobEnvironment): Promise<Redacted<string> | undefined> {
  const file = env['PULL_SECRET_FILE'] ?? '';
  if (file === '' || env['JOB_MODE'] === 'delete') return undefined;
  const bytes = await readFile(file).catch((error: unknown) => {
    const text = `Cannot read the pull secret from "${file}" (PULL_SECRET_FILE)`;
    throw new JobError('InvalidConfiguration', text, error);
  });
  // Decoding would silently replace invalid bytes.
  if (!isUtf8(bytes))
    throw new JobError('InvalidPullSecret', 'Invalid pull secret format: the file is not UTF-8');
  return redact(bytes.toString('utf8'));
}

/** Logs like the existing job: one JSON object per line, with the same field names. */
function jobLog(env: JobEnvironment, write: (line: string) => unknown): JobLog {
  const traceparent = readTraceparent(env['TRACEPARENT']);
  return (level, operation, message, version) => {
    const line = {
      timestamp: `${new Date().toISOString().slice(0, 19)}Z`,
      level,
      cluster_id: env['CLUSTER_ID'] ?? '',
      gcp_project: env['GCP_PROJECT_ID'] ?? '',
      operation,
      message,
      version,
      traceparent,
    };
    write(`${JSON.stringify(line)}\n`);
  };
}

/**
 * Writes the result for the sibling adapters' sidecar, and as termination message for the adapter. Ignores write errors. The report
 * contains the trace context of the result, so that a trace can be followed to its report.
 */
async function handOver(env: JobEnvironment, end: JobEnd): Promise<void> {
  const traceparent = readTraceparent(env['TRACEPARENT']);
  const text = JSON.stringify({ ...end, details: { ...end.details, traceparent } });
  const files = [env['RESULT_FILE'] ?? '', env['TERMINATION_LOG'] ?? '/dev/termination-log'];
  for (const file of files.filter((name) => name !== '')) {
    await writeFile(file, text, { mode: 0o644 }).catch(() => undefined);
  }
}
