/** Flags of `pullwright agent`: text in, checked values out. */
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { UsageError } from '../../rules/errors.ts';

/** Times are milliseconds. */
export interface AgentFlags {
  readonly globalFile: string;
  readonly originalFile: string;
  readonly file: string;
  readonly stateDir: string;
  readonly unit: string;
  readonly busSocket: string;
  readonly restart: 'on-change' | 'on-removal' | 'never';
  /** `auto`: the fleet books turns. */
  readonly windowMs: number | 'auto';
  /** Zero: no slots. */
  readonly slots: number;
  readonly serviceAccountDir: string;
  readonly watch: boolean;
  readonly report: boolean;
  /** Undefined: nothing is removed. */
  readonly janitorFolder: string | undefined;
  readonly janitorAgeMs: number;
  readonly foreign: 'drop' | 'keep';
  readonly settleMs: number;
  readonly jobMs: number;
  readonly maxRestarts: number;
  /** `off`, `auto`, or an address that must answer. */
  readonly healthz: string;
  readonly nodeName: string;
  readonly healthAddress: string;
  /** Undefined: nothing is served. */
  readonly healthPort: number | undefined;
  readonly pollMs: number;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
  readonly logFormat: 'json' | 'logfmt';
  readonly uninstall: boolean;
  readonly once: boolean;
  readonly dryRun: boolean;
  readonly output: 'text' | 'json' | 'yaml';
}

const text = (value: string) => ({ type: 'string', default: value }) as const;

/** Flags, and what they are when nobody says otherwise. */
const OPTIONS = {
  global: text('/etc/global-pull-secret/.dockerconfigjson'),
  original: text('/etc/original-pull-secret/.dockerconfigjson'),
  file: text('/var/lib/kubelet/config.json'),
  'state-dir': { type: 'string' },
  unit: text('kubelet.service'),
  'bus-socket': text('/var/run/dbus/system_bus_socket'),
  restart: text('on-change'),
  'restart-window': text('auto'),
  'restart-timeout': text('200s'),
  'restart-slots': text('0'),
  'service-account-dir': text('/var/run/secrets/kubernetes.io/serviceaccount'),
  watch: { type: 'boolean', default: false },
  report: { type: 'boolean', default: false },
  janitor: { type: 'boolean', default: false },
  'janitor-folder': text('/etc/crio/auth'),
  'janitor-age': text('30m'),
  'max-restarts': text('6'),
  foreign: text('drop'),
  settle: text('2s'),
  'kubelet-healthz': text('auto'),
  'node-name': { type: 'string' },
  'health-address': text('127.0.0.1'),
  'health-port': text('9447'),
  poll: text('30s'),
  'log-level': text('info'),
  'log-format': text('json'),
  uninstall: { type: 'boolean', default: false },
  once: { type: 'boolean', default: false },
  'dry-run': { type: 'boolean', default: false },
  output: text('text'),
} as const;

/** Reads the flags. @throws UsageError, or what parseArgs throws for a flag that is not known */
export function parseAgentFlags(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): AgentFlags {
  const { values } = parseArgs({
    args: [...args],
    options: OPTIONS,
  });
  if (values['dry-run'] && !values.once) throw new UsageError('Flag --dry-run needs --once');
  if (values['dry-run'] && values.uninstall)
    throw new UsageError('Flag --dry-run does not go with --uninstall: it removes the state folder only');
  return {
    globalFile: values.global,
    originalFile: values.original,
    file: absolute('file', values.file),
    stateDir: absolute('state-dir', values['state-dir'] ?? join(dirname(values.file), '.pullwright')),
    unit: values.unit,
    busSocket: values['bus-socket'],
    restart: oneOf('restart', values.restart, ['on-change', 'on-removal', 'never']),
    windowMs:
      values['restart-window'] === 'auto' ? 'auto' : duration('restart-window', values['restart-window']),
    jobMs: duration('restart-timeout', values['restart-timeout']),
    maxRestarts: count('max-restarts', values['max-restarts'], { from: 0, to: 32 }),
    slots: count('restart-slots', values['restart-slots'], { from: 0, to: 1000 }),
    serviceAccountDir: values['service-account-dir'],
    watch: values.watch && !values.once,
    report: values.report,
    janitorFolder: values.janitor ? absolute('janitor-folder', values['janitor-folder']) : undefined,
    janitorAgeMs: duration('janitor-age', values['janitor-age']),
    foreign: oneOf('foreign', values.foreign, ['drop', 'keep']),
    settleMs: duration('settle', values.settle),
    healthz: healthz(values['kubelet-healthz']),
    nodeName: values['node-name'] ?? env['NODE_NAME'] ?? hostname(),
    healthAddress: values['health-address'],
    healthPort:
      values['health-port'] === 'off'
        ? undefined
        : count('health-port', values['health-port'], { from: 0, to: 65535 }),
    pollMs: Math.max(100, duration('poll', values.poll)),
    logLevel: oneOf('log-level', values['log-level'], ['debug', 'info', 'warn', 'error']),
    logFormat: oneOf('log-format', values['log-format'], ['json', 'logfmt']),
    uninstall: values.uninstall,
    once: values.once,
    dryRun: values['dry-run'],
    output: oneOf('output', values.output, ['text', 'json', 'yaml']),
  };
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const MAX_MS = 24 * 3_600_000;

/** `5m`, `1m30s`, `250ms`, `0`: as Go and kubectl write times. */
function duration(flag: string, value: string): number {
  if (value === '0') return 0;
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(value))
    throw new UsageError(`Flag --${flag} is "${value}": wanted a time such as 30s, 5m or 0`);
  const parts = [...value.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/gy)];
  const ms = parts.reduce((sum, [, digits, unit]) => sum + Number(digits) * (UNIT_MS[unit ?? ''] ?? 0), 0);
  if (ms > MAX_MS) throw new UsageError(`Flag --${flag} is "${value}": wanted at most 24h`);
  return Math.round(ms);
}

function count(flag: string, value: string, range: { readonly from: number; readonly to: number }): number {
  const number = Number(value);
  if (/^\d+$/.test(value) && number >= range.from && number <= range.to) return number;
  throw new UsageError(`Flag --${flag} is "${value}": wanted a number from ${range.from} to ${range.to}`);
}

function oneOf<T extends string>(flag: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new UsageError(`Flag --${flag} is "${value}": wanted one of ${allowed.join(', ')}`);
}

function absolute(flag: string, value: string): string {
  if (value.startsWith('/')) return value;
  throw new UsageError(`Flag --${flag} is "${value}": wanted an absolute path`);
}

function healthz(value: string): string {
  if (value === 'off' || value === 'auto' || /^http:\/\/[^/]+/.test(value)) return value;
  throw new UsageError(`Flag --kubelet-healthz is "${value}": wanted off, auto or an http:// address`);
}
