/**
 * Log lines: a constant message with fields, in JSON or logfmt, one line each. A `Redacted` value is logged as `[redacted]` at
 * any depth, and user info is removed from registries and URLs. Neither can be disabled.
 */
import type { PullwrightError } from './errors.ts';
import { printable, withoutUserInfo } from './text.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFormat = 'json' | 'logfmt';
export type Fields = Readonly<Record<string, unknown>>;

export const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

export interface Logger extends Readonly<Record<LogLevel, (message: string, fields?: Fields) => void>> {
  /** Returns a logger that adds `fields` to every line. */
  child(fields: Fields): Logger;
}

export interface LoggerOptions {
  readonly write: (line: string) => unknown;
  /** @default {'json'} */
  readonly format?: LogFormat;
  /** Called for every line: the level can change at run time. @default {() => 'info'} */
  readonly level?: () => LogLevel;
  readonly now?: () => Date;
}

/** The fields of an error. */
export function problemFields({ code, message: problem, hint }: PullwrightError): Fields {
  return { code, problem, hint };
}

/** Creates a logger that drops lines below the current level. */
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
  // JSON does not escape C1 controls, line separators and bidirectional marks, which terminals interpret.
  return printable(withoutUserInfo(jsonText(line)));
}

/** JSON.stringify throws for a bigint, and logging must never throw. */
function jsonText(value: unknown): string {
  return JSON.stringify(value, (_key, one: unknown) => (typeof one === 'bigint' ? String(one) : one));
}

function renderLogfmt(line: Fields): string {
  return Object.entries(line)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${logfmtValue(value)}`)
    .join(' ');
}

/** Text that needs no quotes: no blanks, logfmt delimiters, control or invisible characters. */
const PLAIN = /^[^\s"=\\\p{Cc}\p{Cf}\u2028\u2029]+$/u;

function logfmtValue(value: unknown): string {
  // JSON first, because it redacts Redacted values; a string then drops its quotes.
  const json = jsonText(value) ?? 'null';
  const text = withoutUserInfo(json.startsWith('"') ? (JSON.parse(json) as string) : json);
  return PLAIN.test(text) ? text : printable(JSON.stringify(text));
}

/** Maximum number of buffered characters. */
const MOST_HELD = 64 * 1024;

/**
 * Buffers the log lines of one turn of the event loop, because each write to a pipe is a system call. Pass lines to the returned
 * function; the buffer is flushed at the end of the turn, and at process exit.
 *
 * @param write such as `process.stdout.write`
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
