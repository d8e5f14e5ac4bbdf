/**
 * A connection to the D-Bus system bus that notices when the bus goes away.
 *
 * dbus-next leaves a call that the bus will never answer pending for ever, so every call here has its own deadline, and all
 * calls fail at once when the connection ends. A lost connection is not repaired: its owner makes a new one.
 */
import type { Message, MessageBus } from 'dbus-next';
import { PullwrightError } from '../rules/errors.ts';
import { scalarText } from '../rules/record.ts';

/** What to call: the parts of a D-Bus method call. */
export interface BusCall {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly signature?: string;
  readonly body?: readonly unknown[];
}

/** A signal that arrived. */
export interface BusSignal {
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly body: readonly unknown[];
}

export interface Bus {
  /** The body of the reply. Rejects with `BusLost`, `BusTimeout`, or `BusRefused` whose `busError` is the D-Bus error name. */
  call(call: BusCall, deadlineMs: number): Promise<readonly unknown[]>;
  /** Called for each signal, until the connection is closed. */
  onSignal(listener: (signal: BusSignal) => void): void;
  /** Rejects when the connection is lost; never resolves. */
  readonly lost: Promise<never>;
  close(): void;
}

/** The bus answered with an error. `busError` is its name, such as `org.freedesktop.DBus.Error.AccessDenied`. */
export class BusRefused extends PullwrightError {
  readonly busError: string;
  /** What the bus says, without the rest of the message. */
  readonly text: string;

  constructor(member: string, busError: string, text: string) {
    super(`Cannot call ${member}: ${text} (${busError})`, { code: 'BusRefused' });
    this.busError = busError;
    this.text = text;
  }
}

/** The number of a signal in the D-Bus specification; the constant of dbus-next would have to be imported for it. */
const SIGNAL: number = 4;

interface Internals extends MessageBus {
  /** The only place where the end of the stream can be seen. */
  readonly _connection?: { once(event: 'end', listener: () => void): void };
}

/** Connects to the socket at `path`. Rejects with `BusUnreachable` when that fails or takes longer than `deadlineMs`. */
export async function connectBus(path: string, deadlineMs: number): Promise<Bus> {
  if (/[:=,;%]/.test(path))
    throw unreachable(path, 'the path holds one of : = , ; %, which a bus address cannot');
  const { default: dbus } = await import('dbus-next');
  const inner: Internals = dbus.sessionBus({ busAddress: `unix:socket=${path}` });
  let lose: (error: Error) => void = () => undefined;
  const lost = new Promise<never>((_, reject) => {
    lose = reject;
  });
  lost.catch(() => undefined);
  inner.on('error', (error: Error) => lose(busLost(path, error.message)));
  inner._connection?.once('end', () => lose(busLost(path, 'it closed the connection')));
  const ready = new Promise<void>((resolve) => inner.once('connect', () => resolve()));
  try {
    await withDeadline(Promise.race([ready, lost]), deadlineMs, () => unreachable(path, 'no answer in time'));
  } catch (error) {
    disconnect(inner);
    throw error instanceof PullwrightError && error.code === 'BusLost'
      ? unreachable(path, error.message)
      : error;
  }
  return new ConnectedBus(inner, lost, dbus.Message);
}

class ConnectedBus implements Bus {
  readonly #inner: MessageBus;
  readonly #message: typeof Message;
  readonly lost: Promise<never>;

  constructor(inner: MessageBus, lost: Promise<never>, message: typeof Message) {
    this.#inner = inner;
    this.lost = lost;
    this.#message = message;
  }

  async call(call: BusCall, deadlineMs: number): Promise<readonly unknown[]> {
    const message = new this.#message({
      destination: call.destination,
      path: call.path,
      interface: call.interface,
      member: call.member,
      signature: call.signature ?? '',
      body: [...(call.body ?? [])],
    });
    const overdue = (): PullwrightError =>
      new PullwrightError(`Cannot call ${call.member}: no answer within ${deadlineMs} ms`, {
        code: 'BusTimeout',
      });
    try {
      const reply = await withDeadline(
        Promise.race([this.#inner.call(message), this.lost]),
        deadlineMs,
        overdue,
      );
      return reply?.body ?? [];
    } catch (error) {
      throw refusal(call.member, error);
    }
  }

  onSignal(listener: (signal: BusSignal) => void): void {
    this.#inner.on('message', (message: Message) => {
      if (message.type !== SIGNAL) return;
      listener({
        path: message.path ?? '',
        interface: message.interface ?? '',
        member: message.member ?? '',
        body: message.body ?? [],
      });
    });
  }

  close(): void {
    disconnect(this.#inner);
  }
}

function disconnect(inner: MessageBus): void {
  try {
    inner.disconnect();
  } catch {
    // It is gone already.
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

/** The bus closes the connection of a user that it does not know without a word, and lets only root restart units. */
function connectHint(text: string): string {
  const uid = process.geteuid?.();
  if (uid !== undefined && uid !== 0 && !/ENOENT|ENOTDIR|ECONNREFUSED/.test(text))
    return `This process runs as uid ${uid}, and the system bus lets only root restart units: set runAsUser: 0 in its securityContext`;
  return 'Mount the folder of the socket (not the socket itself), and look whether dbus runs on the node';
}

function unreachable(path: string, text: string): PullwrightError {
  return new PullwrightError(`Cannot connect to the bus at "${path}": ${text}`, {
    code: 'BusUnreachable',
    hint: connectHint(text),
  });
}

async function withDeadline<T>(work: Promise<T>, ms: number, overdue: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(overdue()), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
