/**
 * Restarts units over D-Bus, and believes nothing before it has seen it.
 *
 * Source of the rule: org.freedesktop.systemd1(5). Signals are subscribed before the call, results that arrive before the
 * reply are kept, only the job result `done` is success, and when the bus goes away or the job is overdue, the unit itself is
 * asked what became of it: a unit that runs under a new invocation id was restarted.
 */
import { PullwrightError } from '../rules/errors.ts';
import { scalarText } from '../rules/record.ts';
import { type Bus, type BusCall, BusRefused, type BusSignal, connectBus } from './bus.ts';
import { type Clock, systemClock } from './clock.ts';
import { type LoadedService, loadedService } from './loaded-service.ts';
import { type UnitState, unitState } from './unit-state.ts';

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

/** For programs that have to know what systemd makes of a service, and run others as services. */
export interface ServiceSystemd extends ReloadingSystemd {
  /** The service as systemd has read it; undefined where it has none of this name. */
  service(unit: string): Promise<LoadedService | undefined>;
  /** Starts a service made of these properties, and waits for its end. Rejects as `restart` does. */
  run(unit: string, properties: ServiceProperties, signal: AbortSignal): Promise<JobEnd>;
}

/** Name, D-Bus signature, and value of each property. */
export type ServiceProperties = readonly (readonly [string, string, unknown])[];

const SYSTEMD = 'org.freedesktop.systemd1';
const MANAGER_PATH = '/org/freedesktop/systemd1';
const MANAGER = 'org.freedesktop.systemd1.Manager';
const TRANSIENT = 'ssa(sv)a(sa(sv))';
const LOOK_AGAIN_MS = 250;
/** How long a bus that went away during a job may stay away before the attempt counts as failed. */
const LOOK_UP_MS = 30_000;

/** systemd over the system bus. */
export function systemdOverBus(options: SystemdOptions = {}): ServiceSystemd {
  return new SystemdOverBus(options);
}

class SystemdOverBus implements ServiceSystemd {
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

  async service(unit: string): Promise<LoadedService | undefined> {
    return this.#with(async (bus) => {
      const ofUnit = await this.#properties(bus, unit, 'Unit');
      const ofService = await this.#properties(bus, unit, 'Service');
      const [processes] = await this.#manager(bus, 'GetUnitProcesses', [unit]).catch(() => []);
      return loadedService(ofUnit, ofService, processes);
    });
  }

  async run(unit: string, properties: ServiceProperties, signal: AbortSignal): Promise<JobEnd> {
    const { default: dbus } = await import('dbus-next');
    const variants = properties.map(([name, type, value]) => [name, new dbus.Variant(type, value)]);
    const until = this.#clock.monotonic() + this.#jobMs;
    return this.#with(async (bus) => {
      const ends = await this.#listen(bus);
      const [path] = await this.#manager(bus, 'StartTransientUnit', [unit, 'fail', variants, []], TRANSIENT);
      return { result: await this.#end(bus, ends.of(scalarText(path)), until, signal) };
    });
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
        return { result: await this.#end(bus, ends.of(scalarText(path)), until, signal) };
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

  async #manager(
    bus: Bus,
    member: string,
    body: readonly unknown[],
    signature = 's'.repeat(body.length),
  ): Promise<readonly unknown[]> {
    const call: BusCall = { destination: SYSTEMD, path: MANAGER_PATH, interface: MANAGER, member };
    return bus.call(body.length === 0 ? call : { ...call, signature, body }, this.#callMs);
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
    return unitState(await this.#properties(bus, unit, 'Unit'));
  }

  /** Every property of the unit's interface. */
  async #properties(bus: Bus, unit: string, kind: 'Unit' | 'Service'): Promise<unknown> {
    const [path] = await this.#manager(bus, 'LoadUnit', [unit]);
    const [all] = await bus.call(
      {
        destination: SYSTEMD,
        path: scalarText(path),
        interface: 'org.freedesktop.DBus.Properties',
        member: 'GetAll',
        signature: 's',
        body: [`org.freedesktop.systemd1.${kind}`],
      },
      this.#callMs,
    );
    return all;
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
