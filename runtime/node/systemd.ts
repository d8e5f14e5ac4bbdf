/**
 * Restarts units over D-Bus, and verifies each restart.
 *
 * Source of the rule: org.freedesktop.systemd1(5). Signals are subscribed before the call, results that arrive before the
 * reply are kept, and only the job result `done` is success. When the connection is lost or the job is overdue, a unit that runs
 * with a new invocation id was restarted.
 */
import type { Message, MessageBus } from 'dbus-next';
import { PullwrightError } from '../core/errors.ts';
import { withDeadline } from '../core/parallel.ts';
import { isRecord, recordOf, scalarText, textOf, textsIn } from '../core/record.ts';
import { type Clock, systemClock } from './clock.ts';

// A connection to the D-Bus system bus that detects its loss.
// dbus-next never settles a call without a reply, so every call has its own deadline, and all calls fail at once when the
// connection closes. A lost connection is not re-established: its owner opens a new one.

/** A D-Bus method call. */
export interface BusCall {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly signature: string;
  readonly body: readonly unknown[];
}

/** A received signal. */
export type BusSignal = Omit<BusCall, 'destination' | 'signature'>;

export interface Bus {
  /** The body of the reply. Rejects with `BusLost`, `BusTimeout`, or `BusRefused` whose `busError` is the D-Bus error name. */
  call(call: BusCall, deadlineMs: number): Promise<readonly unknown[]>;
  /** Called for each signal, until the connection is closed. */
  onSignal(listener: (signal: BusSignal) => void): unknown;
  /** Rejects when the connection is lost; never resolves. */
  readonly lost: Promise<never>;
  close(): void;
}

/** The bus answered with an error. `busError` is its name, such as `org.freedesktop.DBus.Error.AccessDenied`. */
export class BusRefused extends PullwrightError {
  readonly busError: string;

  constructor(member: string, busError: string, text: string) {
    super(`Cannot call ${member}: ${text} (${busError})`, { code: 'BusRefused' });
    this.busError = busError;
  }
}

/** Message type of signals in the D-Bus specification; the constant of dbus-next would load the library. */
const SIGNAL: number = 4;

interface Internals extends MessageBus {
  /** The only emitter of the end of the stream. */
  readonly _connection?: { once(event: 'end', listener: () => void): void };
}

/** Connects to the socket at `path`. Rejects with `BusUnreachable` when that fails or takes longer than `deadlineMs`. */
export async function connectBus(path: string, deadlineMs: number): Promise<Bus> {
  if (/[:=,;%]/.test(path))
    throw unreachable(path, 'the path holds one of : = , ; %, invalid in a bus address');
  const { default: dbus } = await import('dbus-next');
  const inner: Internals = dbus.sessionBus({ busAddress: `unix:socket=${path}` });
  const { promise: lost, reject: lose } = Promise.withResolvers<never>();
  lost.catch(() => undefined);
  inner.on('error', (error: Error) => lose(busLost(path, error.message)));
  inner._connection?.once('end', () => lose(busLost(path, 'it closed the connection')));
  const ready = new Promise<void>((resolve) => inner.once('connect', () => resolve()));
  try {
    await withDeadline(Promise.race([ready, lost]), deadlineMs, () => unreachable(path, 'request timed out'));
  } catch (error) {
    disconnect(inner);
    throw error instanceof PullwrightError && error.code === 'BusLost'
      ? unreachable(path, error.message)
      : error;
  }
  return {
    lost,
    call: async ({ member, body, ...to }, ms) => {
      const message = new dbus.Message({ ...to, member, body: [...body] });
      const late = (): PullwrightError =>
        new PullwrightError(`Cannot call ${member}: timed out after ${ms} ms`, { code: 'BusTimeout' });
      try {
        const reply = await withDeadline(Promise.race([inner.call(message), lost]), ms, late);
        return reply?.body ?? [];
      } catch (error) {
        throw refusal(member, error);
      }
    },
    onSignal: (listener) =>
      inner.on('message', ({ type, path, interface: from, member, body }: Message) => {
        if (type === SIGNAL) listener({ path, interface: from, member, body });
      }),
    close: () => disconnect(inner),
  };
}

function disconnect(inner: MessageBus): void {
  try {
    inner.disconnect();
  } catch {
    // Already disconnected.
  }
}

function refusal(member: string, error: unknown): unknown {
  if (error instanceof PullwrightError) return error;
  if (error instanceof Error && 'type' in error)
    return new BusRefused(member, scalarText(error.type), error.message);
  const text = error instanceof Error ? error.message : scalarText(error);
  return new PullwrightError(`Cannot call ${member}: ${text}`, { code: 'BusLost', cause: error });
}

function busLost(path: string, text: string): PullwrightError {
  return new PullwrightError(`Cannot use the bus at "${path}": ${text}`, { code: 'BusLost' });
}

/** The bus closes the connection of an unknown user without an error, and lets only root restart units. */
function connectHint(text: string): string {
  const uid = process.geteuid?.();
  if (uid !== undefined && uid !== 0 && !/ENOENT|ENOTDIR|ECONNREFUSED/.test(text))
    return `This process runs as uid ${uid}, and the system bus lets only root restart units: set runAsUser: 0 in its securityContext`;
  return 'Mount the folder of the socket (not the socket itself), and check that dbus runs on the node';
}

function unreachable(path: string, text: string): PullwrightError {
  return new PullwrightError(`Cannot connect to the bus at "${path}": ${text}`, {
    code: 'BusUnreachable',
    hint: connectHint(text),
  });
}

// A service as systemd has loaded it, from the properties of org.freedesktop.systemd1: its files in the order in which they
// apply, its command, its variables, and the command lines of its processes.

export type LoadedService = Readonly<NonNullable<ReturnType<typeof loadedService>>>;

/** The value of a property, by its name. */
type Values = (name: string) => unknown;

/** Undefined when systemd has no such service. `processes`: the reply of GetUnitProcesses. */
export function loadedService(ofUnit: unknown, ofService: unknown, processes: unknown) {
  const unit = valuesOf(ofUnit);
  const service = valuesOf(ofService);
  const fragment = textOf(unit('FragmentPath'));
  if (unit('LoadState') !== 'loaded' || fragment === '') return undefined;
  const mainPid = service('MainPID');
  return {
    /** Unit file, then drop-ins. */
    files: [fragment, ...textsIn(unit('DropInPaths'))],
    /** The effective command. */
    command: commandOf(service),
    /** `NAME=value` of each Environment setting. */
    environment: textsIn(service('Environment')),
    /** `optional`: it may be missing. */
    environmentFiles: listOf(service('EnvironmentFiles')).map((entry) => {
      const [path, optional] = listOf(entry);
      return { path: textOf(path), optional: optional === true };
    }),
    /** Whether files have changed since systemd loaded them. */
    isStale: unit('NeedDaemonReload') === true,
    /** Command line of the main process; empty when it does not run. */
    commandLine: mainPid === 0 ? '' : lineOf(processes, mainPid),
  };
}

/** By systemd.service(5). `ExecStartEx` has the flags of the command too; systemd before 243 has `ExecStart` alone. */
function commandOf(service: Values) {
  const extended = listOf(listOf(service('ExecStartEx')).at(-1));
  const [, words, flags] = extended.length > 0 ? extended : listOf(listOf(service('ExecStart')).at(-1));
  return {
    /** Program and arguments, with unexpanded variables and without prefixes such as `-` and `@`. Empty if the unit has no command. */
    words: textsIn(words),
    /** Whether systemd does not expand variables. */
    isVerbatim: textsIn(flags).includes('no-env-expand'),
  };
}

/** Each process is control group, number, and command line. */
function lineOf(processes: unknown, pid: unknown): string {
  const found = listOf(processes)
    .map(listOf)
    .find(([, number]) => number === pid);
  return textOf(found?.[2]);
}

function valuesOf(answer: unknown): Values {
  const all = recordOf(answer);
  return (name) => recordOf(all[name])['value'];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

// State of a unit, by its properties.

/** State of a unit. */
export type UnitState = Readonly<ReturnType<typeof unitState>>;

/** @throws PullwrightError for a reply without properties */
export function unitState(answer: unknown) {
  if (!isRecord(answer))
    throw new PullwrightError('Cannot read the state of the unit: systemd returned no properties', {
      code: 'BusAnswer',
    });
  const valueOf = valuesOf(answer);
  const id = valueOf('InvocationID');
  const job = valueOf('Job');
  return {
    /** `active`, `activating`, `failed`, `inactive` and so on. */
    active: textOf(valueOf('ActiveState')),
    /** `running`, `auto-restart`, `dead` and so on. */
    sub: textOf(valueOf('SubState')),
    /** Hexadecimal id of the current start; empty before the first. */
    invocation: isBytes(id) ? Buffer.from(id).toString('hex') : '',
    /** Whether the unit has a queued or running job. */
    busy: Array.isArray(job) && job[0] !== 0,
  };
}

function isBytes(value: unknown): value is Uint8Array | readonly number[] {
  if (value instanceof Uint8Array) return true;
  return Array.isArray(value) && value.every((one) => typeof one === 'number');
}

/** Times are milliseconds. */
export interface SystemdOptions {
  /** @default {'/run/dbus/system_bus_socket'} */
  readonly socket?: string;
  /** Deadline of a job. systemd's defaults are 90 s for the stop and 90 s for the start. @default {200000} */
  readonly jobMs?: number;
  readonly clock?: Clock;
  /** Opens a connection; for tests. */
  readonly connect?: () => Promise<Bus>;
}

/** The calls of an engine to systemd. */
export type Systemd = Pick<SystemdOverBus, 'state' | 'restart' | 'resetFailed' | 'reload'>;

/** Name, D-Bus signature, and value of each property. */
export type ServiceProperties = readonly (readonly [string, string, unknown])[];

/** Independent of boot and shutdown, and unloaded when it ends. */
const ONE_COMMAND: ServiceProperties = [
  ['DefaultDependencies', 'b', false],
  ['Type', 's', 'oneshot'],
  ['CollectMode', 's', 'inactive-or-failed'],
];

const DBUS = 'org.freedesktop.DBus';
const SYSTEMD = 'org.freedesktop.systemd1';
const MANAGER_PATH = '/org/freedesktop/systemd1';
const MANAGER = 'org.freedesktop.systemd1.Manager';
const TRANSIENT = 'ssa(sv)a(sa(sv))';
/** Deadline of a call. */
const CALL_MS = 5000;
const LOOK_AGAIN_MS = 250;
/** How long the bus may be unreachable during a job before the attempt fails. */
const LOOK_UP_MS = 30_000;

/** systemd over the system bus. Each call opens its own connection, so that no connection is idle. */
export class SystemdOverBus {
  readonly #jobMs: number;
  readonly #clock: Clock;
  readonly #connect: () => Promise<Bus>;

  constructor(options: SystemdOptions = {}) {
    this.#jobMs = options.jobMs ?? 200_000;
    this.#clock = options.clock ?? systemClock;
    const socket = options.socket ?? '/run/dbus/system_bus_socket';
    this.#connect = options.connect ?? (() => connectBus(socket, CALL_MS));
  }

  async state(unit: string): Promise<UnitState> {
    return this.#with((bus) => this.#stateOn(bus, unit));
  }

  /** Resets the failure count, so that the start limit does not reject the next start. */
  async resetFailed(unit: string): Promise<void> {
    await this.#with((bus) => this.#manager(bus, 'ResetFailedUnit', [unit]));
  }

  /** Reloads all unit files, as `systemctl daemon-reload` does. */
  async reload(): Promise<void> {
    await this.#with((bus) => this.#manager(bus, 'Reload', []));
  }

  /** The service as systemd has loaded it; undefined when it has no service with this name. */
  async service(unit: string): Promise<LoadedService | undefined> {
    return this.#with(async (bus) => {
      const ofUnit = await this.#properties(bus, unit, 'Unit');
      const ofService = await this.#properties(bus, unit, 'Service');
      const [processes] = await this.#manager(bus, 'GetUnitProcesses', [unit]).catch(() => []);
      return loadedService(ofUnit, ofService, processes);
    });
  }

  /** Runs a transient oneshot service with these properties, and waits for its end. Rejects as `restart` does. */
  async run(unit: string, properties: ServiceProperties, signal: AbortSignal): Promise<string> {
    const { default: dbus } = await import('dbus-next');
    const variants = [...ONE_COMMAND, ...properties].map(([name, type, value]) => [
      name,
      new dbus.Variant(type, value),
    ]);
    const until = this.#clock.monotonic() + this.#jobMs;
    return this.#with(async (bus) => {
      const endOf = await this.#listen(bus);
      const [path] = await this.#manager(bus, 'StartTransientUnit', [unit, 'fail', variants, []], TRANSIENT);
      return this.#end(bus, endOf(path), until, signal);
    });
  }

  /**
   * Restarts or starts the unit. Returns the result of the job: `done`, `failed`, `timeout`, `canceled`, `dependency` or
   * `skipped`. Rejects with `JobOverdue`, `Stopped`, `BusUnreachable`, `BusLost` or `BusRefused`.
   */
  async restart(unit: string, signal: AbortSignal): Promise<string> {
    const until = this.#clock.monotonic() + this.#jobMs;
    const before = { invocation: '', called: false };
    try {
      return await this.#with(async (bus) => {
        const endOf = await this.#listen(bus);
        before.invocation = (await this.#stateOn(bus, unit)).invocation;
        before.called = true;
        const [path] = await this.#manager(bus, 'RestartUnit', [unit, 'replace']);
        return this.#end(bus, endOf(path), until, signal);
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

  async #manager(bus: Bus, member: string, body: readonly unknown[], signature = 's'.repeat(body.length)) {
    const to = { destination: SYSTEMD, path: MANAGER_PATH, interface: MANAGER };
    return bus.call({ ...to, member, signature, body }, CALL_MS);
  }

  /** Subscribes to the results of jobs. They are kept, whether they arrive before or after they are awaited. */
  async #listen(bus: Bus): Promise<(path: unknown) => Promise<string>> {
    const jobs = new Map<string, PromiseWithResolvers<string>>();
    const jobAt = (path: string): PromiseWithResolvers<string> => {
      const job = jobs.get(path) ?? Promise.withResolvers<string>();
      jobs.set(path, job);
      return job;
    };
    bus.onSignal(({ interface: from, member, body }) => {
      if (from !== MANAGER || member !== 'JobRemoved') return;
      const [, path, , result] = body.map(String);
      if (path !== undefined && result !== undefined) jobAt(path).resolve(result);
    });
    const rule = `type='signal',sender='${SYSTEMD}',path='${MANAGER_PATH}',interface='${MANAGER}',member='JobRemoved'`;
    const daemon = { destination: DBUS, path: '/org/freedesktop/DBus', interface: DBUS };
    await bus.call({ ...daemon, member: 'AddMatch', signature: 's', body: [rule] }, CALL_MS);
    await this.#manager(bus, 'Subscribe', []);
    return (path) => jobAt(scalarText(path)).promise;
  }

  async #stateOn(bus: Bus, unit: string): Promise<UnitState> {
    return unitState(await this.#properties(bus, unit, 'Unit'));
  }

  /** Every property of the unit's interface. */
  async #properties(bus: Bus, unit: string, kind: 'Unit' | 'Service'): Promise<unknown> {
    const [path] = await this.#manager(bus, 'LoadUnit', [unit]);
    const to = { destination: SYSTEMD, path: scalarText(path), interface: `${DBUS}.Properties` };
    const body = [`${SYSTEMD}.${kind}`];
    const [all] = await bus.call({ ...to, member: 'GetAll', signature: 's', body }, CALL_MS);
    return all;
  }

  /** Waits for the job's end, the loss of the bus, the deadline or the signal, whichever is first. */
  async #end(bus: Bus, ended: Promise<string>, until: number, signal: AbortSignal): Promise<string> {
    const over = new AbortController();
    const timer = this.#clock.sleep(until - this.#clock.monotonic(), AbortSignal.any([signal, over.signal]));
    const late = timer.then(() => {
      throw signal.aborted
        ? stopped('the job')
        : new PullwrightError('Cannot wait for the job: it is overdue', { code: 'JobOverdue' });
    });
    late.catch(() => undefined);
    try {
      return await Promise.race([ended, bus.lost, late]);
    } finally {
      over.abort();
    }
  }

  /** After a missed result of a job: polls the unit over new connections until it is at rest or the job is overdue. */
  async #lookUp(job: LostJob): Promise<string> {
    const giveUp = this.#clock.monotonic() + LOOK_UP_MS;
    for (;;) {
      const state = await this.state(job.unit).catch(() => undefined);
      if (state !== undefined && !state.busy && state.active !== 'activating') {
        const restarted = state.active === 'active' && state.invocation !== job.before;
        return restarted ? 'done' : 'failed';
      }
      if (job.signal.aborted) throw stopped('the job');
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

/** Whether the job may have run although its result was missed. */
function isUncertain(error: unknown): boolean {
  if (error instanceof BusRefused) return error.busError === 'org.freedesktop.DBus.Error.NoReply';
  return error instanceof PullwrightError && ['BusLost', 'BusTimeout', 'JobOverdue'].includes(error.code);
}

/** @param what was awaited */
export function stopped(what: string): PullwrightError {
  return new PullwrightError(`Cannot wait for ${what}: this program is stopping`, { code: 'Stopped' });
}

function overdue(job: LostJob): PullwrightError {
  return new PullwrightError(
    `Cannot wait for the job of "${job.unit}": it does not finish, and the unit does not start`,
    {
      code: 'JobOverdue',
      hint: `Run "systemctl status ${job.unit}" and "systemctl list-jobs" on the node`,
      cause: job.cause,
    },
  );
}
