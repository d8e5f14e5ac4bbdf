/** Runs the Job against the doubles: inside this process, or as a program. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runJobProcess } from '../../runtime/pull-secret-adapter/job/process.ts';
import type { JobResult } from '../../runtime/pull-secret-adapter/outcome.ts';
import { findPlanted, plantedAuth } from '../support/canary.ts';
import { tempFolder } from '../support/temp-folder.ts';
import type { SecretManagerDouble } from './doubles/secret-manager.ts';

export const PATH = 'projects/cust-proj/secrets/hyperfleet-cls-123-pull-secret';

export function pullSecret(label = 'job'): string {
  return JSON.stringify({ auths: { 'quay.io': { auth: plantedAuth(label) } } });
}

export interface JobRun {
  readonly code: number;
  readonly result: JobResult;
  readonly lines: readonly Record<string, unknown>[];
  /** Everything that the run gave out: log, result file, termination message. */
  readonly text: string;
  /** Pauses between attempts, in milliseconds; empty for a program. */
  readonly pauses: readonly number[];
}

interface Raw {
  readonly code: number;
  readonly text: string;
  readonly pauses?: readonly number[];
}

export interface JobRunOptions {
  readonly dryRun?: boolean;
  /** The run gets SIGTERM as soon as this holds. */
  readonly interruptWhen?: () => boolean;
}

export type JobRunner = (
  double: SecretManagerDouble,
  env?: Readonly<Record<string, string | undefined>>,
  options?: JobRunOptions,
) => Promise<JobRun>;

/** A run that never ends is a failure of the test. */
const DEADLINE_MS = 90_000;

/** Calls the Job's function. Not for what is decided when a process starts, such as its certificates. */
export const runJobHere: JobRunner = async (double, env = {}, options = {}) =>
  inFolder(double, env, async (whole) => {
    // google-auth-library looks for the metadata server in the environment of the process.
    for (const name of ['GCE_METADATA_HOST', 'METADATA_SERVER_DETECTION', 'GOOGLE_APPLICATION_CREDENTIALS']) {
      if (whole[name] === undefined) delete process.env[name];
      else process.env[name] = whole[name];
    }
    const stop = new AbortController();
    const done = interrupting(options, () => stop.abort('SIGTERM'));
    const pauses: number[] = [];
    let text = '';
    const ending = runJobProcess({
      env: whole,
      signal: stop.signal,
      dryRun: options.dryRun ?? false,
      write: (line) => {
        text += line;
      },
      openCluster: () => Promise.reject(new Error('no cluster in this test')),
      // Records the pause without waiting.
      pause: (ms, signal) => {
        pauses.push(ms);
        return sleep(20, undefined, { signal });
      },
    });
    const code = await ending.finally(done);
    return { code, text, pauses };
  });

/** Starts `pullwright job`. @param program command in place of `pullwright`, such as `['node', 'main.ts']` */
export function jobProgram(program: readonly string[]): JobRunner {
  return (double, env = {}, options = {}) =>
    inFolder(double, env, async (whole) => {
      const [file = '', ...args] = [...program, 'job', ...(options.dryRun === true ? ['--dry-run'] : [])];
      const child = spawn(file, args, {
        env: { PATH: process.env['PATH'], ...whole },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let text = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
      const done = interrupting(options, () => child.kill('SIGTERM'));
      const timer = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS);
      try {
        const [code] = (await once(child, 'close')) as [number | null];
        return { code: code ?? -1, text };
      } finally {
        // Clears the timer even if the program did not start, or the test would never end.
        clearTimeout(timer);
        done();
      }
    });
}

function interrupting({ interruptWhen }: JobRunOptions, interrupt: () => void): () => void {
  if (interruptWhen === undefined) return () => undefined;
  const timer = setInterval(() => {
    if (!interruptWhen()) return;
    // Sends the signal once, as a kubelet does: a second one would kill the program at once.
    clearInterval(timer);
    interrupt();
  }, 20);
  return () => clearInterval(timer);
}

async function inFolder(
  double: SecretManagerDouble,
  env: Readonly<Record<string, string | undefined>>,
  run: (whole: Readonly<Record<string, string | undefined>>) => Promise<Raw>,
): Promise<JobRun> {
  const folder = tempFolder();
  const [message, file] = [join(folder, 'termination-log'), join(folder, 'result.json')];
  try {
    const raw = await run({
      ...double.jobEnv,
      HOME: folder,
      GCP_PROJECT_ID: 'cust-proj',
      CLUSTER_ID: 'cls-123',
      PULL_SECRET_DATA: pullSecret(),
      RESULT_FILE: file,
      TERMINATION_LOG: message,
      ...env,
    });
    return ended(raw, [readFileSync(message, 'utf8'), readFileSync(file, 'utf8')]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whatever a run is about, it shows no secret and no token, and says the same in both places. */
function ended({ code, text, pauses = [] }: Raw, [message = '', file = '']: readonly string[]): JobRun {
  const shown = text + message + file;
  const planted = findPlanted(shown);
  if (planted !== undefined) throw new Error(`The run shows a planted secret after: ${planted}`);
  if (message !== file) throw new Error('The result file and the termination message differ');
  const lines = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { code, result: JSON.parse(message) as JobResult, lines, text: shown, pauses };
}
