/** `pullwright install-provider`: the credential provider on a node without the Machine Config Operator. */
import { hostname } from 'node:os';
import { parseArgs } from 'node:util';
import { parseArguments } from '../credential-provider/plugin/options.ts';
import { UsageError } from '../rules/errors.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';

const HELP = `Usage: pullwright install-provider [flags]

Puts executable, kubelet file and systemd drop-in of the credential provider on this node, for the entries of
CRIOCredentialProviderConfig/cluster, and restarts the kubelet. When the kubelet does not come up, the old drop-in is
put back. Nothing is written unless the node runs kubelet and CRI-O 1.34 or newer and the kubelet would take the file,
nor on nodes that the Machine Config Operator manages.

  --root DIR               where the host's files are mounted (none: this is the host)
  --unit NAME              the kubelet's unit (kubelet.service)
  --unit-path DIRS         folders of units, colons between (/etc/systemd/system:/run/systemd/system:/usr/lib/systemd/system:/lib/systemd/system)
  --drop-in-dir DIR        (/etc/systemd/system/<unit>.d)
  --config-dir DIR         where the kubelet's file goes (/etc/kubernetes/credential-providers)
  --state-dir DIR          journal of the change (<--config-dir>/.pullwright)
  --bin-dir DIR            folder of plugins (the kubelet's present one, else /usr/libexec/kubelet-image-credential-provider-plugins)
  --executable FILE        what is copied there (this program)
  --secret-annotation      hand pullwright.dev/image-pull-secrets of service accounts over
  --provider-arg ARG       argument of the executable in the kubelet's file, such as --secrets=named; may be repeated
  --bus-socket PATH        (/var/run/dbus/system_bus_socket)
  --restart-window TIME    spread the restarts of the nodes over this time, in seconds (300)
  --max-restarts N         at most so many changes restart the kubelet within 10 minutes; 0: no limit (6)
  --settle TIME            how long the kubelet must stay up, in seconds (5)
  --kubelet-healthz URL    must answer 200 after a restart; auto: if it did before (default); off
  --node-name NAME         (NODE_NAME of the environment, else the host name)
  --health-address HOST    (127.0.0.1)
  --health-port PORT       /readyz, /healthz and /metrics; off for none (9448)
  --auth-dir DIR           CRI-O's auth files: what no pull takes is removed (/etc/crio/auth)
  --report                 write a PullStatus and Events about the node
  --poll TIME              look at least so often, in seconds (30)
  --service-account-dir DIR  (/var/run/secrets/kubernetes.io/serviceaccount)
  --once                   go on until nothing is to be done, then exit: 0 in sync, 1 not
  --dry-run                print what would be done, and touch nothing: 0 nothing, 1 something
  --output FORMAT          text, json or yaml: form of what --once and --dry-run print (text)
  --uninstall              take everything back instead; the API server is not asked
  --take-over              also where the Machine Config Operator manages the node, or the drop-in is somebody else's

Example: pullwright install-provider --root /host --dry-run
`;

export const command: Command = {
  name: 'install-provider',
  summary: 'Put the credential provider on a node, and restart its kubelet (runs in a DaemonSet)',
  help: HELP,
  permissions: {
    reads: ['<--root>', '<--unit-path>', '<--service-account-dir>', '<--executable>', '<--auth-dir>'],
    writes: [
      '<--auth-dir>',
      '<--drop-in-dir>',
      '<--config-dir>',
      '<--state-dir>',
      '<--bin-dir>',
      '<--bus-socket>',
    ],
    hosts: ['the API server; listens on <--health-address>:<--health-port>; asks <--kubelet-healthz>'],
    api: [
      'get nodes',
      'get criocredentialproviderconfigs/cluster',
      'get,create,patch pullstatuses; get,patch pullstatuses/status (kube-system); create,patch events; with --report only',
    ],
  },
  run,
};

const text = (value: string) => ({ type: 'string', default: value }) as const;

async function run(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      root: text(''),
      unit: text('kubelet.service'),
      'unit-path': text(
        '/etc/systemd/system:/run/systemd/system:/usr/lib/systemd/system:/lib/systemd/system',
      ),
      'drop-in-dir': { type: 'string' },
      'config-dir': text('/etc/kubernetes/credential-providers'),
      'state-dir': { type: 'string' },
      'bin-dir': { type: 'string' },
      executable: text(process.execPath),
      'secret-annotation': { type: 'boolean', default: false },
      'provider-arg': { type: 'string', multiple: true, default: [] },
      'bus-socket': text('/var/run/dbus/system_bus_socket'),
      'restart-window': text('300'),
      'max-restarts': text('6'),
      settle: text('5'),
      'kubelet-healthz': text('auto'),
      'node-name': { type: 'string' },
      'health-address': text('127.0.0.1'),
      'health-port': text('9448'),
      'auth-dir': text('/etc/crio/auth'),
      report: { type: 'boolean', default: false },
      poll: text('30'),
      'service-account-dir': text('/var/run/secrets/kubernetes.io/serviceaccount'),
      once: { type: 'boolean', default: false },
      'dry-run': { type: 'boolean', default: false },
      output: text('text'),
      uninstall: { type: 'boolean', default: false },
      'take-over': { type: 'boolean', default: false },
    },
  });
  const port = values['health-port'];
  const options = {
    root: values.root,
    unit: values.unit,
    unitPath: values['unit-path'].split(':'),
    configDir: values['config-dir'],
    dropInDir: values['drop-in-dir'] ?? `/etc/systemd/system/${values.unit}.d`,
    stateDir: values['state-dir'] ?? `${values['config-dir']}/.pullwright`,
    binDir: values['bin-dir'],
    executable: values.executable,
    secretAnnotation: values['secret-annotation'],
    providerArgs: providerArguments(values['provider-arg']),
    busSocket: values['bus-socket'],
    windowMs: seconds('restart-window', values['restart-window']),
    maxRestarts: countOf('max-restarts', values['max-restarts']),
    settleMs: seconds('settle', values.settle),
    healthz: values['kubelet-healthz'],
    nodeName: values['node-name'] ?? io.env['NODE_NAME'] ?? hostname(),
    healthAddress: values['health-address'],
    healthPort: port === 'off' ? undefined : portOf(port),
    pollMs: Math.max(100, seconds('poll', values.poll)),
    authDir: values['auth-dir'],
    report: values.report,
    output: formatOf(values.output),
    uninstall: values.uninstall,
    takeOver: values['take-over'],
    serviceAccountDir: values['service-account-dir'],
    once: values.once,
  };
  const installer = await import('../credential-provider/installer/installer.ts');
  return values['dry-run'] ? installer.dryRunInstaller(options, io) : installer.runInstaller(options, io);
}

/** What the kubelet would hand over at each pull is held against the executable's own flags now. */
function providerArguments(args: readonly string[]): readonly string[] {
  parseArguments(args, undefined, () => '{}');
  return args;
}

function seconds(flag: string, value: string): number {
  if (/^\d+(\.\d+)?$/.test(value) && Number(value) <= 86_400) return Number(value) * 1000;
  throw new UsageError(`Flag --${flag} is "${value}": wanted seconds, from 0 to 86400`);
}

function countOf(flag: string, value: string): number {
  if (/^\d{1,4}$/.test(value)) return Number(value);
  throw new UsageError(`Flag --${flag} is "${value}": wanted a count, from 0 to 9999`);
}

function portOf(value: string): number {
  if (/^\d{1,5}$/.test(value) && Number(value) <= 65_535) return Number(value);
  throw new UsageError(`Flag --health-port is "${value}": wanted a port, or off`);
}

function formatOf(value: string): 'text' | 'json' | 'yaml' {
  if (value === 'text' || value === 'json' || value === 'yaml') return value;
  throw new UsageError(`Flag --output is "${value}": wanted text, json or yaml`);
}
