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
    'Runs on a node, in the DaemonSet global-pull-secret-syncer. Keeps /var/lib/kubelet/config.json equal in meaning to the mounted pull secret, restarts the kubelet over D-Bus, and puts the old file back when the kubelet does not come up.',
  ],
  flags: {
    global: file({
      default: '/etc/global-pull-secret/.dockerconfigjson',
      help: 'the pull secret that is used when it is there and not empty',
    }),
    original: file({
      default: '/etc/original-pull-secret/.dockerconfigjson',
      help: 'the pull secret that is used otherwise',
    }),
    // An atomic rename needs write access to the folder of the file.
    file: absolute(
      file({ default: '/var/lib/kubelet/config.json', touches: 'writes', help: 'the file that is kept' }),
    ),
    'state-dir': absolute(
      folder({
        touches: 'writes',
        help: 'where journal, ledger and lock are; without it, .pullwright beside the file',
      }),
    ),
    foreign: choice(['drop', 'keep'], {
      default: 'drop',
      help: 'what becomes of entries that others put into the file',
    }),
    'removal-share': checked(
      text({
        value: 'SHARE',
        default: '0.5',
        help: 'share of the registries in the file that a source may remove at once, unless its writer checks removals; a larger removal, and one of all, is held',
      }),
      (share) => (/^[\d.]/.test(share) && Number(share) <= 1 ? undefined : 'a number from 0 to 1'),
    ),
    'removal-delay': duration({
      most: 30 * DAY_MS,
      help: 'time after which a held removal proceeds; without it, the removal waits for its confirmation',
    }),
    'confirm-removal': text({ value: 'HASH', help: 'let the removal go on that the state names' }),
    restart: choice(['on-change', 'on-removal', 'never'], {
      default: 'on-change',
      help: 'when the unit is restarted',
    }),
    settle: duration({ default: '2s', most: DAY_MS, help: 'how long the unit must stay up' }),
    ...NODE_FLAGS,
    'restart-window': orWord(
      'auto',
      duration({
        default: 'auto',
        most: DAY_MS,
        help: 'each node waits for a share of it before the restart; 0: none waits; auto: each books a turn in a Lease, so that a tenth of the nodes restarts at once',
      }),
    ),
    watch: toggle({
      help: 'watch both secrets beside their mounts, a minute ahead; the pod needs a token',
    }),
    'health-port': healthPort(AGENT_PORTS.probes),
    'metrics-address': text({
      value: 'HOST',
      help: 'where --metrics-port is served with TLS, for Prometheus; without it, metrics are at --health-port only',
    }),
    'metrics-port': port({ default: String(AGENT_PORTS.metrics), help: 'the port of /metrics with TLS' }),
    'metrics-tls-dir': absolute(
      folder({ default: '/etc/pullwright-tls', help: 'where tls.crt and tls.key are' }),
    ),
    janitor: toggle({ help: 'remove auth files of CRI-O that no pull used' }),
    'janitor-folder': absolute(
      folder({ default: '/etc/crio/auth', touches: 'writes', help: 'where these auth files are' }),
    ),
    'janitor-age': duration({ default: '30m', most: DAY_MS, help: 'how old they must be' }),
    uninstall: toggle({
      help: 'finish what is under way, remove the state folder, and do nothing more; config.json stays',
    }),
    'dry-run': toggle({ help: 'with --once: print what would be done, and touch nothing' }),
    ...ONCE_FLAGS,
  },
  notes: ['Ready (/readyz) means: the file says what the mounted secret says, and no restart is pending.'],
  examples: ['pullwright agent --once --dry-run --original /tmp/pull-secret.json --file /tmp/config.json'],
  permissions: {
    hosts: [
      'none; listens on <--health-address>:<--health-port>, <--metrics-address>:<--metrics-port>; asks <--kubelet-healthz>; the API server with --watch, --report or --restart-window=auto',
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
  if (flags['dry-run'] && !flags.once) throw new UsageError('--dry-run needs --once');
  if (flags['dry-run'] && flags.uninstall)
    throw new UsageError('--dry-run does not go with --uninstall: it removes the state folder only');
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
