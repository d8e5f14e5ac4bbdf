/** Flags that the programs on a node share: what they restart, how they learn of its health, and how they end. */

import type { LogFormat, LogLevel } from '../../telemetry/logger.ts';
import { LOG_FLAGS, outputFlag } from './common.ts';
import { checked, count, duration, type Flag, folder, port, text, toggle } from './flag.ts';

export const DAY_MS: number = 24 * 3_600_000;

/** Both programs have these, with the same meaning and the same defaults. */
export const NODE_FLAGS: {
  readonly unit: Flag<string>;
  readonly 'bus-socket': Flag<string>;
  readonly 'max-restarts': Flag<number>;
  readonly 'restart-timeout': Flag<number>;
  readonly 'restart-window': Flag<number>;
  readonly 'kubelet-healthz': Flag<string>;
  readonly report: Flag<boolean>;
  readonly 'service-account-dir': Flag<string>;
  readonly 'node-name': Flag<string | undefined>;
  readonly 'health-address': Flag<string>;
  readonly poll: Flag<number>;
  readonly 'log-level': Flag<LogLevel>;
  readonly 'log-format': Flag<LogFormat>;
} = {
  unit: text({ value: 'NAME', default: 'kubelet.service', help: 'the unit that is restarted' }),
  'bus-socket': text({
    value: 'PATH',
    completes: 'files',
    touches: 'writes',
    default: '/var/run/dbus/system_bus_socket',
    help: 'the socket of the system bus',
  }),
  'max-restarts': count({
    default: '6',
    most: 32,
    help: 'how many changes may restart the unit within 10 minutes; 0: no limit',
  }),
  'restart-timeout': duration({ default: '200s', most: DAY_MS, help: 'how long a restart may take' }),
  'restart-window': duration({
    default: '5m',
    most: DAY_MS,
    help: 'each node waits for a share of it before the restart; 0: none waits',
  }),
  'kubelet-healthz': checked(
    text({
      value: 'URL|auto|off',
      default: 'auto',
      help: 'what must answer 200 after a restart; auto: if it did so before',
    }),
    (value) =>
      value === 'off' || value === 'auto' || /^http:\/\/[^/]+/.test(value)
        ? undefined
        : 'off, auto or an http:// address',
  ),
  report: toggle({ help: 'write a PullStatus and Events about the node; the pod needs a token' }),
  'service-account-dir': folder({
    default: '/var/run/secrets/kubernetes.io/serviceaccount',
    help: "where the pod's token is",
  }),
  'node-name': text({
    value: 'NAME',
    help: 'the node; without it, NODE_NAME of the environment, else the host name',
  }),
  'health-address': text({ value: 'HOST', default: '127.0.0.1', help: 'where --health-port is served' }),
  poll: duration({
    default: '30s',
    least: 100,
    most: DAY_MS,
    help: 'the node is looked at at least so often',
  }),
  ...LOG_FLAGS,
};

/** The port of a node program's probes and metrics. */
export function healthPort(number: number): Flag<number | undefined> {
  return port({ default: String(number), help: 'the port of /readyz, /healthz and /metrics' });
}

/** How a node program is asked for one thing instead of running for ever. */
export const ONCE_FLAGS: {
  readonly once: Flag<boolean>;
  readonly output: Flag<'text' | 'json' | 'yaml'>;
} = {
  once: toggle({ help: 'go on until nothing is to be done, then exit: 0 in sync, 1 not' }),
  output: outputFlag(['text', 'json', 'yaml'], 'the form of what --once and --dry-run print'),
};
