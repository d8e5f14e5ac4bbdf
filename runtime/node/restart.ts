/** One attempt to restart a unit, which succeeds when the unit stays up; and recovery of a unit that is down. */
import { request } from 'node:http';
import { describeError, PullwrightError } from '../core/errors.ts';
import type { FailureKind } from './checkpoint.ts';
import type { Clock } from './clock.ts';
import { BusRefused, type Systemd, stopped, type UnitState } from './systemd.ts';

/** The unit, and when it counts as up. */
export interface RestartOptions {
  readonly unit: string;
  /** Whether to reload systemd's units first. @default {false} */
  readonly reload?: boolean | undefined;
  /** How long the unit must stay up. Milliseconds. */
  readonly settleMs: number;
  readonly health?: UnitHealth | undefined;
  readonly clock: Clock;
}

/** Health check of the unit. */
export type UnitHealth = Readonly<ReturnType<typeof unitHealth>>;

/** `restarted`: false when another program restarted the unit since the write. */
export type RestartEnd = Readonly<Awaited<ReturnType<typeof ended>>>;

/** Hints by the result of a systemd job. */
const HINTS: Readonly<Record<string, string>> = {
  timeout: 'The unit did not become ready within its own start timeout',
  canceled: 'Another job replaced this one: check for another program that restarts the unit',
  dependency: 'A unit that it needs failed',
};

/**
 * Restarts the unit, unless its invocation differs from `before`: then it was started after the write and has read the file.
 */
export function attemptRestart(
  systemd: Systemd,
  options: RestartOptions & { readonly before: string },
  signal: AbortSignal,
): Promise<RestartEnd> {
  return ended(async () => {
    if (options.reload === true) await systemd.reload();
    await options.health?.before();
    const present = await systemd.state(options.unit);
    const done =
      options.before !== '' && present.active === 'active' && present.invocation !== options.before;
    if (!done) await restart(systemd, options, present, signal);
    await staysUp(systemd, options, signal);
    return !done;
  });
}

/** Ensures that the unit runs with the restored file: restarts it when it was started after the bad write. */
export function recoverUnit(
  systemd: Systemd,
  options: RestartOptions & { readonly before: string; readonly touched: boolean },
  signal: AbortSignal,
): Promise<RestartEnd> {
  return ended(async () => {
    if (options.reload === true) await systemd.reload();
    const present = await systemd.state(options.unit);
    const asBefore = options.before === '' ? !options.touched : present.invocation === options.before;
    if (present.active === 'active' && asBefore) return false;
    await restart(systemd, options, present, signal);
    await staysUp(systemd, options, signal);
    return true;
  });
}

/** @param work whether it restarted the unit */
async function ended(work: () => Promise<boolean>) {
  try {
    return { ok: true as const, restarted: await work() };
  } catch (error) {
    const problem = asProblem(error);
    const { code } = problem;
    if (code === 'Stopped') return { ok: false as const, kind: 'stopped' as const, error: problem };
    const bus =
      BUS_CODES.includes(code) || (problem instanceof BusRefused && BUS_ERRORS.test(problem.busError));
    const kind: FailureKind = bus ? 'bus' : 'unit';
    return { ok: false as const, kind, error: problem };
  }
}

async function restart(systemd: Systemd, options: RestartOptions, present: UnitState, signal: AbortSignal) {
  if (present.active === 'failed') await systemd.resetFailed(options.unit);
  const result = await systemd.restart(options.unit, signal);
  if (result === 'done') return;
  throw new PullwrightError(
    `Cannot restart "${options.unit}": its job ended with "${result}", expected "done"`,
    { code: 'JobFailed', hint: HINTS[result] ?? `Run "journalctl -u ${options.unit}" on the node` },
  );
}

/** A unit can die right after its job is done. Checks a few times that the same invocation is up. */
async function staysUp(systemd: Systemd, options: RestartOptions, signal: AbortSignal): Promise<void> {
  const first = up(await systemd.state(options.unit), options.unit);
  for (const share of [0.1, 0.4, 0.5]) {
    if (!(await options.clock.sleep(options.settleMs * share, signal))) throw stopped('the unit');
    const later = up(await systemd.state(options.unit), options.unit);
    if (later.invocation !== first.invocation) throw downAgain(options.unit, later);
  }
  await options.health?.after(signal);
}

function up(state: UnitState, unit: string): UnitState {
  if (state.active === 'active' || state.active === 'reloading') return state;
  throw downAgain(unit, state);
}

function downAgain(unit: string, state: UnitState): PullwrightError {
  return new PullwrightError(
    `Cannot restart "${unit}": it is ${state.active} (${state.sub}) after the job, expected active`,
    { code: 'UnitDown', hint: `Run "journalctl -u ${unit}" on the node` },
  );
}

/** Codes of errors after which nothing was restarted, because systemd was unreachable. */
const BUS_CODES: readonly string[] = ['BusUnreachable', 'BusLost', 'BusTimeout'];
const BUS_ERRORS =
  /^org\.freedesktop\.DBus\.Error\.(?:AccessDenied|ServiceUnknown|NameHasNoOwner|LimitsExceeded|NoReply)$/;

/** A thrown value as a PullwrightError. */
export function asProblem(error: unknown, code?: 'SourceInvalid'): PullwrightError {
  return error instanceof PullwrightError
    ? error
    : new PullwrightError(describeError(error), { code: code ?? 'Unknown' });
}

// Health endpoint of the unit, such as the kubelet's on loopback.

const ASK_MS = 1000;
const AGAIN_MS = 250;

/** Whether `url` responds with 200. */
function answersWell(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(url, { timeout: ASK_MS, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(false));
    asked.on('close', () => resolve(false));
    asked.end();
  });
}

/** Default health endpoint of the kubelet. */
export const KUBELET_HEALTHZ = 'http://127.0.0.1:10248/healthz';

/** Options of {@link unitHealth}. */
export interface UnitHealthOptions {
  readonly url: string;
  /** False: required only where the endpoint was healthy before the restart. */
  readonly required: boolean;
  readonly withinMs: number;
  readonly clock: Clock;
}

/** Health check by HTTP. Not every pod can reach the endpoint; see `required`. */
export function unitHealth({ url, required, withinMs, clock }: UnitHealthOptions) {
  let expected = required;
  return {
    /** Called before each attempt. */
    before: async () => {
      expected ||= await answersWell(url);
    },
    /** Called when the unit has stayed up. Rejects when it is not healthy in time. */
    after: async (signal: AbortSignal) => {
      const until = clock.monotonic() + withinMs;
      if (!expected) return;
      while (!(await answersWell(url))) {
        if (signal.aborted) throw stopped('the unit');
        if (clock.monotonic() >= until)
          throw new PullwrightError(
            `Cannot use the restarted unit: "${url}" did not return 200 within ${withinMs} ms`,
            { code: 'UnitUnhealthy' },
          );
        await clock.sleep(AGAIN_MS, signal);
      }
    },
  };
}
