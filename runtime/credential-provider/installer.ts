/** The installer put together: what is wanted goes through the node engine, which restarts the kubelet. */
import { mkdirSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { systemClock } from '../host/clock.ts';
import { systemdOverBus } from '../host/systemd.ts';
import { NodeEngine } from '../node/engine.ts';
import type { NodeEvent, NodeState } from '../node/events.ts';
import { runLoop } from '../node/loop.ts';
import { serveProbes } from '../node/probes.ts';
import { StateFolder } from '../node/state-folder.ts';
import type { NodeTask } from '../node/task.ts';
import { KUBELET_HEALTHZ, unitHealth } from '../node/unit-health.ts';
import { Wake } from '../node/wake.ts';
import { CREDENTIAL_PROVIDER } from '../rules/credential-provider-platform.ts';
import { describeError } from '../rules/errors.ts';
import { spreadDelay } from '../rules/spread.ts';
import { createLogger, type Logger } from '../telemetry/logger.ts';
import { read } from './installer-host.ts';
import { type InstallerOptions, Source } from './installer-source.ts';
import { FreshUnits } from './installer-units.ts';

export interface InstallerIo {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

const clock = systemClock;
const JOB_MS = 200_000;
const HEALTHY_WITHIN_MS = 60_000;
const STARTING: NodeState = { ready: false, reason: 'Starting', message: 'The first look has not ended yet' };

/** Runs until the signal; with `once` until there is nothing to do. 0: in sync, or told to stop. */
export async function runInstaller(options: InstallerOptions, io: InstallerIo): Promise<number> {
  const log = createLogger({ write: (line) => io.stderr.write(line), format: 'json', level: () => 'info' });
  const source = new Source(options, io.env, log);
  let state = STARTING;
  const publish = (next: NodeState): void => {
    if (next.reason !== state.reason || next.message !== state.message)
      log[next.ready || next.busy === true ? 'info' : 'warn']('State of the node', {
        reason: next.reason,
        detail: next.message,
      });
    state = next;
    if (next.ready) source.removeOld();
  };
  const closeProbes = await probes(options, () => state);
  await source.refresh();
  const over = new AbortController();
  const signal = AbortSignal.any([io.signal, over.signal]);
  const refreshing = keepFresh(source, options.pollMs, signal);
  const wake = new Wake([], clock);
  try {
    const folder = new StateFolder(options.root + options.stateDir);
    const engine = (): NodeEngine => newEngine(options, { source, folder, log, publish });
    await runLoop(
      { folder, engine, wake, clock, pollMs: options.pollMs, publish, once: options.once },
      signal,
    );
  } finally {
    over.abort();
    wake.close();
    closeProbes();
    await refreshing;
  }
  if (!options.once) return 0;
  io.stdout.write(`${state.reason}: ${state.message}\n`);
  return state.ready ? 0 : 1;
}

interface Parts {
  readonly source: Source;
  readonly folder: StateFolder;
  readonly log: Logger;
  readonly publish: (state: NodeState) => void;
}

function newEngine(options: InstallerOptions, { source, folder, log, publish }: Parts): NodeEngine {
  const systemd = new FreshUnits(systemdOverBus({ socket: options.busSocket, jobMs: JOB_MS }));
  const required = options.healthz !== 'auto';
  const url = required ? options.healthz : KUBELET_HEALTHZ;
  const file = `${options.root}${options.dropInDir}/${basename(CREDENTIAL_PROVIDER.dropIn)}`;
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
  const task: NodeTask = {
    name: 'credential-provider',
    file,
    unit: options.unit,
    look: (present) => source.look(present === undefined ? undefined : read('', file)?.text),
  };
  return new NodeEngine({
    task,
    folder,
    systemd,
    policy: {
      restart: 'on-change',
      delayMs: (digest) => spreadDelay(options.nodeName, digest, options.windowMs),
      limit: { count: 6, perMs: 600_000 },
    },
    clock,
    settleMs: options.settleMs,
    ...(options.healthz === 'off'
      ? {}
      : { health: unitHealth({ url, required, withinMs: HEALTHY_WITHIN_MS, clock }) }),
    publish,
    report: (event) => {
      if (event.event === 'written' || event.event === 'rolled-back') systemd.changed();
      logEvent(log, event);
    },
  });
}

async function keepFresh(source: Source, pollMs: number, signal: AbortSignal): Promise<void> {
  while (await clock.sleep(pollMs, signal)) await source.refresh();
}

async function probes(options: InstallerOptions, state: () => NodeState): Promise<() => void> {
  if (options.healthPort === undefined || options.once) return () => undefined;
  const server = await serveProbes({
    host: '127.0.0.1',
    port: options.healthPort,
    state,
    alive: () => true,
    metrics: () => '',
  });
  return () => {
    server.close();
    server.closeAllConnections();
  };
}

const LEVELS: Readonly<Partial<Record<NodeEvent['event'], 'warn' | 'error'>>> = {
  'write-failed': 'error',
  'rolled-back': 'error',
  'recover-failed': 'error',
  'state-failed': 'error',
  'restart-failed': 'warn',
  recovered: 'warn',
  'journal-damaged': 'warn',
};

function logEvent(log: Logger, event: NodeEvent): void {
  const fields = Object.entries(event).map(([name, value]): [string, unknown] => [
    name,
    value instanceof Error ? describeError(value) : value,
  ]);
  log[LEVELS[event.event] ?? 'info']('Change of the kubelet', Object.fromEntries(fields));
}
