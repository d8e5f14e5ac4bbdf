/** `pullwright install-provider`: the credential provider on a node without the Machine Config Operator. */
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import {
  DAY_MS,
  duration,
  file,
  folder,
  type Given,
  healthPort,
  NODE_FLAGS,
  nodeSettings,
  ONCE_FLAGS,
  several,
  text,
  toggle,
} from '../../cli/flags.ts';
import { parseArguments } from '../provider-flags.ts';

const UNIT_PATH = '/etc/systemd/system:/run/systemd/system:/usr/lib/systemd/system:/lib/systemd/system';

const TABLE = {
  name: 'install-provider',
  about: [
    'Installs the credential provider on this node (executable, kubelet configuration, systemd drop-in) for the entries of CRIOCredentialProviderConfig/cluster, and restarts the kubelet. If the kubelet does not start, the old drop-in is restored. The node must run kubelet and CRI-O 1.34 or newer, and the kubelet must accept the file. Nodes that the Machine Config Operator manages are skipped.',
  ],
  flags: {
    root: text({
      value: 'DIR',
      touches: 'reads',
      default: '',
      help: "mount point of the host's file system; if unset, /",
    }),
    'unit-path': text({
      value: 'DIRS',
      touches: 'reads',
      default: UNIT_PATH,
      help: 'unit directories, separated by colons',
    }),
    'drop-in-dir': folder({
      touches: 'writes',
      help: 'directory of the drop-in; if unset, /etc/systemd/system/<--unit>.d',
    }),
    'config-dir': folder({
      touches: 'writes',
      default: '/etc/kubernetes/credential-providers',
      help: "directory of the kubelet's file",
    }),
    'state-dir': folder({
      touches: 'writes',
      help: 'journal of the change; if unset, <--config-dir>/.pullwright',
    }),
    'bin-dir': folder({
      touches: 'writes',
      help: `plugin directory; if unset, the kubelet's current one, else /usr/libexec/kubelet-image-credential-provider-plugins`,
    }),
    executable: file({ help: 'program to install; if unset, this one' }),
    'secret-annotation': toggle({
      help: 'pass the ServiceAccount annotation pullwright.dev/image-pull-secrets to the provider',
    }),
    'provider-arg': several(
      text({
        value: 'ARG',
        help: "argument of the executable in the kubelet's file, such as --secrets=named",
      }),
    ),
    settle: duration({ default: '5s', most: DAY_MS, help: 'how long the kubelet must stay up' }),
    ...NODE_FLAGS,
    'health-port': healthPort(948),
    'auth-dir': folder({
      default: '/etc/crio/auth',
      touches: 'writes',
      help: "CRI-O's auth files; unused ones are removed",
    }),
    uninstall: toggle({ help: 'uninstall; sends no request to the API server' }),
    'take-over': toggle({
      help: 'install even if the Machine Config Operator manages the node, or another program owns the drop-in',
    }),
    'dry-run': toggle({ help: 'print the changes without applying them; exit 0: none, 1: some' }),
    ...ONCE_FLAGS,
  },
  examples: ['pullwright install-provider --root /host --dry-run'],
  permissions: {
    hosts: ['the API server; listens on <--health-address>:<--health-port>; asks <--kubelet-healthz>'],
    api: [
      'get nodes',
      'get,list,watch criocredentialproviderconfigs/cluster',
      'get,create,patch pullstatuses; get,patch pullstatuses/status (kube-system); create,patch events; with --report only',
    ],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const options = settingsOf(flags, io.env);
  const installer = await import('./installer.ts');
  return flags['dry-run'] ? installer.dryRunInstaller(options, io) : installer.runInstaller(options, io);
}

/** Settings of the installer. Paths are those of the host, `root` is prepended to each; times are milliseconds. */
export type InstallerSettings = Readonly<ReturnType<typeof settingsOf>>;

function settingsOf(flags: Given<typeof TABLE.flags>['flags'], env: CommandIo['env']) {
  const providerArgs = flags['provider-arg'] ?? [];
  // Validate now what the kubelet would pass to the executable at each pull.
  parseArguments(providerArgs, undefined, () => '{}');
  return {
    ...nodeSettings(flags, env),
    root: flags.root,
    // In systemd's order of precedence.
    unitPath: flags['unit-path'].split(':'),
    configDir: flags['config-dir'],
    dropInDir: flags['drop-in-dir'] ?? `/etc/systemd/system/${flags.unit}.d`,
    stateDir: flags['state-dir'] ?? `${flags['config-dir']}/.pullwright`,
    binDir: flags['bin-dir'],
    executable: flags.executable ?? process.execPath,
    secretAnnotation: flags['secret-annotation'],
    providerArgs,
    windowMs: flags['restart-window'],
    authDir: flags['auth-dir'],
    takeOver: flags['take-over'],
  };
}
