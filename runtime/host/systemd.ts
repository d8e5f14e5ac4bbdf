/**
 * Restarts units over D-Bus, and believes nothing before it has seen it.
 *
 * Source of the rule: org.freedesktop.systemd1(5). Signals are subscribed before the call, results that arrive before the
 * reply are kept, only the job result `done` is success, and when the bus goes away or the job is overdue, the unit itself is
 * asked what became of it: a unit that runs under a new invocation id was restarted.
 */
import { PullwrightError } from '../rules/errors.ts';
import { type Bus, type BusCall, BusRefused, type BusSignal, connectBus } from './bus.ts';
import { type Clock, systemClock } from './clock.ts';

/** A unit as systemd sees it. */
export interface UnitState {
  /** `active`, `activating`, `failed`, `inactive` and so on. */
  readonly active: string;
  /** `running`, `auto-restart`, `dead` and so on. */
  readonly sub: string;
  /** `loaded`, `not-found`, `masked` and so on. */
  readonly load: string;
  /** A new value each time the unit is started, in hex; empty when it never was. */
  readonly invocation: string;
  /** Whether a job of the unit is waiting or running. */
  readonly busy: boolean;
}

/** What became of a job: its result in systemd's words (`done`, `failed`, `timeout`, `canceled`, `dependency`, `skipped`). */
export interface JobEnd {
  readonly result: string;
}

/** Times are milliseconds. */
export interface SystemdOptions {
  /** @default {'/run/dbus/system_bus_socket'} */
  readonly socket?: string;
  /** How long a call may take until it is answered. @default {5000} */
  readonly callMs?: number;
  /** How long a job may run. systemd's own limit for a start is 90 s, and as long again for the stop. @default {200000} */
  readonly jobMs?: number;
  readonly clock?: Clock;
  /** Makes a connection; for tests. */
  readonly connect?: () => Promise<Bus>;
}

/** The part of systemd that is needed. Each call makes a connection of its own, so that none is held at rest. */
export interface Systemd {
  state(unit: string): Promise<UnitState>;
  /** Restarts the unit, or starts it when it is down; the job's end. Rejects with `JobOverdue`, `Stopped`, `BusUnreachable`, `BusLost`, or what the bus refused. */
  restart(unit: string, signal: AbortSignal): Promise<JobEnd>;
  /** Forgets failures, so that the limit on starts does not refuse the next one. */
  resetFailed(unit: string): Promise<void>;
}

/** For tasks whose file is part of a unit. */
export interface ReloadingSystemd extends Systemd {
  /** Reads all unit files again, as `systemctl daemon-reload` does. */
  reload(): Promise<void>;
}

const SYSTEMD = 'org.freedesktop.systemd1';
const MANAGER_PATH = '/org/freedesktop/systemd1';
const MANAGER = 'org.freedesktop.systemd1.Manager';
const LOOK_AGAIN_MS = 250;
/** How long a bus that went away during a job may stay away before the attempt counts as failed. */
const LOOK_UP_MS = 30_000;

/** systemd over the system bus. */
export function systemdOverBus(options: SystemdOptions = {}): ReloadingSystemd {
  return new SystemdOverBus(options);
}

class SystemdOverBus implements ReloadingSystemd {
  readonly #callMs: number;
  readonly #jobMs: number;
  readonly #clock: Clock;
  readonly #connect: () => Promise<Bus>;

  constructor(options: SystemdOptions) {
    this.#callMs = options.callMs ?? 5000;
    this.#jobMs = options.jobMs ?? 200_000;
    this.#clock = options.clock ?? systemClock;
    const socket = options.socket ?? '/run/dbus/system_bus_socket';
    this.#connect = options.connect ?? (() => connectBus(socket, this.#callMs));
  }

  async state(unit: string): Promise<UnitState> {
    return this.#with((bus) => this.#stateOn(bus, unit));
  }

  async resetFailed(unit: string): Promise<void> {
    await this.#with((bus) => this.#manager(bus, 'ResetFailedUnit', [unit]));
  }

  async reload(): Promise<void> {
    await this.#with((bus) => this.#manager(bus, 'Reload', []));
  }

  async restart(unit: string, signal: AbortSignal): Promise<JobEnd> {
    const until = this.#clock.monotonic() + this.#jobMs;
    const before = { invocation: '', called: false };
    try {
      return await this.#with(async (bus) => {
        const ends = await this.#listen(bus);
        before.invocation = (await this.#stateOn(bus, unit)).invocation;
        before.called = true;
        const [path] = await this.#manager(bus, 'RestartUnit', [unit, 'replace']);
        return { result: await this.#end(bus, ends.of(String(path)), until, signal) };
      });
    } catch (error) {
      if (!before.called || !isUncertain(error)) throw error;
      return this.#lookUp({ unit, before: before.invocation, until, signal, cause: error });
    }
  }

  async #with<T>(work: (bus: Bus) => Promise<T>): Promise<T> {
    const bus = await this.#connect();
    try {
      return await work(bus);
    } finally {
      bus.close();
    }
  }

  async #manager(bus: Bus, member: string, body: readonly string[]): Promise<readonly unknown[]> {
    const call: BusCall = { destination: SYSTEMD, path: MANAGER_PATH, interface: MANAGER, member };
    return bus.call(
      body.length === 0 ? call : { ...call, signature: 's'.repeat(body.length), body },
      this.#callMs,
    );
  }

  async #listen(bus: Bus): Promise<JobEnds> {
    const ends = new JobEnds();
    bus.onSignal((signal) => ends.see(signal));
    const rule = `type='signal',sender='${SYSTEMD}',path='${MANAGER_PATH}',interface='${MANAGER}',member='JobRemoved'`;
    const daemon = 'org.freedesktop.DBus';
    await bus.call(
      {
        destination: daemon,
        path: '/org/freedesktop/DBus',
        interface: daemon,
        member: 'AddMatch',
        signature: 's',
        body: [rule],
      },
      this.#callMs,
    );
    await this.#manager(bus, 'Subscribe', []);
    return ends;
  }

  async #stateOn(bus: Bus, unit: string): Promise<UnitState> {
    const [path] = await this.#manager(bus, 'LoadUnit', [unit]);
    const [all] = await bus.call(
      {
        destination: SYSTEMD,
        path: String(path),
        interface: 'org.freedesktop.DBus.Properties',
        member: 'GetAll',
        signature: 's',
        body: ['org.freedesktop.systemd1.Unit'],
      },
      this.#callMs,
    );
    return unitState(all);
  }

  /** Waits for the job's end, the loss of the bus, the deadline, or the signal to stop: whichever is first. */
  async #end(bus: Bus, ended: Promise<string>, until: number, signal: AbortSignal): Promise<string> {
    const over = new AbortController();
    const timer = this.#clock.sleep(until - this.#clock.monotonic(), AbortSignal.any([signal, over.signal]));
    const late = timer.then(() => {
      throw signal.aborted
        ? stopped()
        : new PullwrightError('Cannot wait for the job: it is overdue', { code: 'JobOverdue' });
    });
    late.catch(() => undefined);
    try {
      return await Promise.race([ended, bus.lost, late]);
    } finally {
      over.abort();
    }
  }

  /** The job's end was not seen. Asks the unit, over new connections, until it is at rest or the job is overdue. */
  async #lookUp(job: LostJob): Promise<JobEnd> {
    const giveUp = this.#clock.monotonic() + LOOK_UP_MS;
    for (;;) {
      const state = await this.state(job.unit).catch(() => undefined);
      if (state !== undefined && !state.busy && state.active !== 'activating') {
        const restarted = state.active === 'active' && state.invocation !== job.before;
        return { result: restarted ? 'done' : 'failed' };
      }
      if (job.signal.aborted) throw stopped();
      if (state === undefined && this.#clock.monotonic() >= giveUp) throw job.cause;
      if (this.#clock.monotonic() >= job.until) throw overdue(job);
      await this.#clock.sleep(LOOK_AGAIN_MS, job.signal);
    }
  }
}

interface LostJob {
  readonly unit: string;
  readonly before: string;
  readonly until: number;
  readonly signal: AbortSignal;
  readonly cause: unknown;
}

/** Results of jobs, kept whether they arrive before or after somebody asks. */
class JobEnds {
  readonly #results = new Map<string, string>();
  #wanted: { readonly path: string; readonly tell: (result: string) => void } | undefined;

  see(signal: BusSignal): void {
    if (signal.interface !== MANAGER || signal.member !== 'JobRemoved') return;
    const [, path, , result] = signal.body.map(String);
    if (path === undefined || result === undefined) return;
    this.#results.set(path, result);
    if (this.#wanted?.path === path) this.#wanted.tell(result);
  }

  of(path: string): Promise<string> {
    const known = this.#results.get(path);
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((tell) => {
      this.#wanted = { path, tell };
    });
  }
}

function unitState(answer: unknown): UnitState {
  if (typeof answer !== 'object' || answer === null)
    throw new PullwrightError('Cannot read the state of the unit: systemd answers without its properties', {
      code: 'BusAnswer',
    });
  const all = answer as Readonly<Record<string, { readonly value?: unknown } | null | undefined>>;
  const text = (name: string): string => {
    const value = all[name]?.value;
    return typeof value === 'string' ? value : '';
  };
  const id = all['InvocationID']?.value;
  const job = all['Job']?.value;
  return {
    active: text('ActiveState'),
    sub: text('SubState'),
    load: text('LoadState'),
    invocation: isBytes(id) ? Buffer.from(id).toString('hex') : '',
    busy: Array.isArray(job) && job[0] !== 0,
  };
}

function isBytes(value: unknown): value is Uint8Array | readonly number[] {
  if (value instanceof Uint8Array) return true;
  return Array.isArray(value) && value.every((one) => typeof one === 'number');
}

/** Whether the job may have run although its end was not seen. */
function isUncertain(error: unknown): boolean {
  if (error instanceof BusRefused) return error.busError === 'org.freedesktop.DBus.Error.NoReply';
  return error instanceof PullwrightError && ['BusLost', 'BusTimeout', 'JobOverdue'].includes(error.code);
}

function stopped(): PullwrightError {
  return new PullwrightError('Cannot wait for the job: this program is told to stop', { code: 'Stopped' });
}

function overdue(job: LostJob): PullwrightError {
  return new PullwrightError(
    `Cannot wait for the job of "${job.unit}": it does not end, and the unit does not come up`,
    {
      code: 'JobOverdue',
      hint: `Look at "systemctl status ${job.unit}" and "systemctl list-jobs" on the node`,
      cause: job.cause,
    },
  );
}
