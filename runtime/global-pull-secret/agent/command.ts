/** `pullwright agent`: keeps the kubelet's pull credentials on a node. */
import { dirname, join } from 'node:path';
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import {
  absolute,
  checked,
  choice,
  DAY_MS,
  duration,
  file,
  folder,
  type Given,
  healthPort,
  NODE_FLAGS,
  nodeSettings,
  ONCE_FLAGS,
  orWord,
  parseFlags,
  port,
  text,
  toggle,
} from '../../cli/flags.ts';
import { UsageError } from '../../core/errors.ts';
import { AGENT_PORTS } from '../../core/kubernetes/hypershift.ts';
import { confirmedRemovals } from '../removal-guard.ts';
import type { AgentSettings } from './agent.ts';

const TABLE = {
  name: 'agent',
  about: [
    'Runs on a node, in the DaemonSet global-pull-secret-syncer. Keeps /var/lib/kubelet/config.json equal in meaning to the mounted pull secret, restarts the kubelet over D-Bus, and restores the old file when the kubelet fails to start.',
  ],
  flags: {
    global: file({
      default: '/etc/global-pull-secret/.dockerconfigjson',
      help: 'the pull secret to use if it exists and is not empty',
    }),
    original: file({
      default: '/etc/original-pull-secret/.dockerconfigjson',
      help: 'the pull secret to use otherwise',
    }),
    // An atomic rename needs write access to the folder of the file.
    file: absolute(
      file({ default: '/var/lib/kubelet/config.json', touches: 'writes', help: 'the file to keep in sync' }),
    ),
    'state-dir': absolute(
      folder({
        touches: 'writes',
        help: 'folder of the state and its lock; if unset, .pullwright next to the file',
      }),
    ),
    foreign: choice(['drop', 'keep'], {
      default: 'drop',
      help: 'what to do with entries that others add to the file',
    }),
    'removal-share': checked(
      text({
        value: 'SHARE',
        default: '0.5',
        help: 'share of the registries in the file that a source may remove at once, unless its writer checks removals; a larger removal, or a removal of all, is held',
      }),
      (share) => (/^[\d.]/.test(share) && Number(share) <= 1 ? undefined : 'a number from 0 to 1'),
    ),
    'removal-delay': duration({
      most: 30 * DAY_MS,
      help: 'time after which a held removal proceeds; if unset, it waits for confirmation',
    }),
    'confirm-removal': text({ value: 'HASH', help: 'confirm the held removal with this hash' }),
    restart: choice(['on-change', 'on-removal', 'never'], {
      default: 'on-change',
      help: 'when to restart the unit',
    }),
    settle: duration({ default: '2s', most: DAY_MS, help: 'how long the unit must stay up' }),
    ...NODE_FLAGS,
    'restart-window': orWord(
      'auto',
      duration({
        default: 'auto',
        most: DAY_MS,
        help: 'each node waits for a part of it before the restart; 0: no wait; auto: each node books a turn in a Lease, so that a tenth of the nodes restarts at once',
      }),
    ),
    watch: toggle({
      help: 'also watch both secrets, up to a minute ahead of their mounts; requires a token',
    }),
    'health-port': healthPort(AGENT_PORTS.probes),
    'metrics-address': text({
      value: 'HOST',
      help: 'address of --metrics-port, with TLS, for Prometheus; without it, metrics are on --health-port only',
    }),
    'metrics-port': port({ default: String(AGENT_PORTS.metrics), help: 'the port of /metrics with TLS' }),
    'metrics-tls-dir': absolute(
      folder({ default: '/etc/pullwright-tls', help: 'folder with tls.crt and tls.key' }),
    ),
    janitor: toggle({ help: 'remove auth files of CRI-O that no pull used' }),
    'janitor-folder': absolute(
      folder({ default: '/etc/crio/auth', touches: 'writes', help: 'folder of these auth files' }),
    ),
    'janitor-age': duration({ default: '30m', most: DAY_MS, help: 'minimum age of removed auth files' }),
    uninstall: toggle({
      help: 'finish the change in progress, remove the state folder, and stop managing; config.json stays',
    }),
    'dry-run': toggle({ help: 'with --once: print the next step, change nothing' }),
    ...ONCE_FLAGS,
  },
  notes: ['/readyz reports ready when the file matches the mounted secret and no restart is pending.'],
  examples: ['pullwright agent --once --dry-run --original /tmp/pull-secret.json --file /tmp/config.json'],
  permissions: {
    hosts: [
      'none; listens on <--health-address>:<--health-port>, <--metrics-address>:<--metrics-port>; contacts <--kubelet-healthz>; the API server with --watch, --report or --restart-window=auto',
    ],
    api: [
      'get,list,watch secrets/global-pull-secret,original-pull-secret (kube-system), with --watch only',
      'get,update leases/global-pull-secret-syncer-turns; get daemonsets/global-pull-secret-syncer (kube-system), with --restart-window=auto only',
      'get,create,patch pullstatuses; get,patch pullstatuses/status (kube-system); get nodes; create,patch events; with --report only',
    ],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const options = optionsOf(flags, io.env);
  const agent = await import('./agent.ts');
  return flags['dry-run'] ? agent.previewAgent(options, io) : agent.runAgent(options, io);
}

/** Parses the arguments of a rendered command line. @throws UsageError */
export function agentOptions(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): AgentSettings {
  return optionsOf(parseFlags(TABLE.flags, args).flags, env);
}

function optionsOf(
  flags: Given<typeof TABLE.flags>['flags'],
  env: Readonly<Record<string, string | undefined>>,
): AgentSettings {
  if (flags['dry-run'] && !flags.once) throw new UsageError('--dry-run requires --once');
  if (flags['dry-run'] && flags.uninstall)
    throw new UsageError('--dry-run cannot be used with --uninstall: it removes the state folder only');
  return {
    ...nodeSettings(flags, env),
    globalFile: flags.global,
    originalFile: flags.original,
    file: flags.file,
    stateDir: flags['state-dir'] ?? join(dirname(flags.file), '.pullwright'),
    restart: flags.restart,
    windowMs: flags['restart-window'],
    watch: flags.watch && !flags.once,
    janitorFolder: flags.janitor ? flags['janitor-folder'] : undefined,
    janitorAgeMs: flags['janitor-age'],
    foreign: flags.foreign,
    removals: {
      share: Number(flags['removal-share']),
      ...(flags['removal-delay'] === undefined ? {} : { delayMs: flags['removal-delay'] }),
    },
    confirmed: confirmedRemovals(flags['confirm-removal'] ?? ''),
    metricsAddress: flags['metrics-address'],
    metricsPort: flags['metrics-port'],
    metricsTlsDir: flags['metrics-tls-dir'],
  };
}
