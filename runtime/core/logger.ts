/**
 * Log lines: a constant message, everything variable in fields, JSON or logfmt, one line each. A `Redacted` value shows as
 * `[redacted]`, wherever it is, and user info of registries and URLs is left out; that cannot be switched off.
 */
import { printable, withoutUserInfo } from './text.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFormat = 'json' | 'logfmt';
export type Fields = Readonly<Record<string, unknown>>;

export const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

export interface Logger {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** A logger that adds `fields` to every line. */
  child(fields: Fields): Logger;
}

export interface LoggerOptions {
  readonly write: (line: string) => unknown;
  /** @default {'json'} */
  readonly format?: LogFormat;
  /** Asked for every line, so that it can be changed while running. @default {() => 'info'} */
  readonly level?: () => LogLevel;
  readonly now?: () => Date;
}

/**
 */
export function createLogger(options: LoggerOptions): Logger {
  const { write, format = 'json', level = () => 'info', now = () => new Date() } = options;
  const render = format === 'json' ? renderJson : renderLogfmt;
  const make = (base: Fields): Logger => {
    const at =
      (wanted: LogLevel) =>
      (message: string, fields: Fields = {}): void => {
        if (LOG_LEVELS.indexOf(wanted) < LOG_LEVELS.indexOf(level())) return;
        write(`${render({ time: now().toISOString(), level: wanted, msg: message, ...base, ...fields })}\n`);
      };
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (fields) => make({ ...base, ...fields }),
    };
  };
  return make({});
}

function renderJson(line: Fields): string {
  // What JSON leaves as it is and a terminal obeys: C1 controls, separators of lines, marks that turn the direction.
  return printable(withoutUserInfo(jsonText(line)));
}

/** JSON knows no bigint, and a log line must never throw. */
function jsonText(value: unknown): string {
  return JSON.stringify(value, (_key, one: unknown) => (typeof one === 'bigint' ? String(one) : one));
}

function renderLogfmt(line: Fields): string {
  return Object.entries(line)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${logfmtValue(value)}`)
    .join(' ');
}

/** Needs no quotes: no blank, no logfmt delimiter, and no terminal control or invisible character. */
const PLAIN = /^[^\s"=\\\p{Cc}\p{Cf}\u2028\u2029]+$/u;

function logfmtValue(value: unknown): string {
  // A Redacted has a toJSON that gives its mark; quotes around that would only be in the way.
  const json = jsonText(value) ?? 'null';
  const text = withoutUserInfo(json.startsWith('"') ? (JSON.parse(json) as string) : json);
  return PLAIN.test(text) ? text : printable(JSON.stringify(text));
}

/** Never more than this is held back. */
const MOST_HELD = 64 * 1024;

/**
 * Log lines of one turn of the event loop in one write: to a pipe each write is a system call. Gives a function that takes lines. They are written together when the loop comes round, and at the latest when the process
 * exits.
 *
 * @param write takes text, as `process.stdout.write`
 */
export function lineBuffer(write: (text: string) => unknown): (line: string) => void {
  let held = '';
  const flush = (): void => {
    const text = held;
    held = '';
    if (text !== '') write(text);
  };
  process.once('exit', flush);
  return (line) => {
    if (held === '') setImmediate(flush);
    held += line;
    if (held.length > MOST_HELD) flush();
  };
}
