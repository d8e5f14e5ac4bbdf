/** `pullwright agent`: keeps the kubelet's pull credentials on a node. */
import type { Command, CommandIo, ExitCode } from '../command.ts';

const HELP = `
Usage: pullwright agent [options]

Runs on a node, in the DaemonSet global-pull-secret-syncer. Keeps /var/lib/kubelet/config.json equal in meaning to the
mounted pull secret, restarts the kubelet over D-Bus, and puts the old file back when the kubelet does not come up.

  --global FILE            used when it is there and not empty (/etc/global-pull-secret/.dockerconfigjson)
  --original FILE          used otherwise (/etc/original-pull-secret/.dockerconfigjson)
  --file FILE              what is kept (/var/lib/kubelet/config.json)
  --state-dir DIR          journal, ledger and lock (.pullwright beside the file)
  --foreign MODE           entries that others put into the file: drop (default) or keep

  --restart WHEN           on-change (default), on-removal, or never
  --restart-window TIME    each node waits for a share of it before the restart; 0 for none; auto (default): each books
                           a turn in a Lease, so that a tenth of the nodes restarts at once
  --restart-timeout TIME   how long a restart may take (200s)
  --max-restarts N         at most so many changes restart the unit within 10 minutes; 0: no limit (6)
  --restart-slots N        never more than N nodes at once, by Leases; needs a token in the pod (off)
  --watch                  watch both secrets beside their mounts, a minute ahead; needs a token in the pod
  --report                 write a PullStatus and Events about the node; needs a token in the pod
  --settle TIME            how long the unit must stay up (2s)
  --kubelet-healthz URL    must answer 200 after a restart; auto: if it did before (default); off
  --unit NAME              what is restarted (kubelet.service)
  --bus-socket PATH        (/var/run/dbus/system_bus_socket)

  --node-name NAME         (NODE_NAME of the environment, else the host name)
  --health-address HOST    (127.0.0.1)
  --health-port PORT       /readyz, /healthz and /metrics; off for none (9447)
  --poll TIME              look at least so often (30s)
  --log-level LEVEL        debug, info, warn or error (info)
  --log-format FORMAT      json or logfmt (json)

  --janitor                remove auth files of CRI-O that no pull used
  --janitor-folder DIR     where they are (/etc/crio/auth)
  --janitor-age TIME       how old they must be (30m)

  --uninstall              finish what is under way, remove the state folder, and do nothing more; config.json stays
  --once                   go on until nothing is to be done, then exit: 0 in sync, 1 not
  --dry-run                with --once: print what would be done, and touch nothing
  --output FORMAT          text, json or yaml: form of what --once prints (text)

Ready (/readyz) means: the file says what the mounted secret says, and no restart is pending.

Example: pullwright agent --once --dry-run --original /tmp/pull-secret.json --file /tmp/config.json
`;

export const command: Command = {
  name: 'agent',
  summary: "Keep a node's pull credentials, and restart its kubelet (runs in a DaemonSet)",
  help: HELP,
  permissions: {
    reads: ['<--global>', '<--original>', '<--service-account-dir>'],
    // Of the file the whole folder: an atomic rename needs it.
    writes: ['<--file>', '<--state-dir>', '<--bus-socket>', '<--janitor-folder>'],
    hosts: [
      'none; listens on <--health-address>:<--health-port>; asks <--kubelet-healthz>; the API server with --watch, --report, --restart-slots or --restart-window=auto',
    ],
    api: [
      'get,list,watch secrets/global-pull-secret,original-pull-secret (kube-system), with --watch only',
      'get,update leases/global-pull-secret-syncer-turns; get daemonsets/global-pull-secret-syncer (kube-system), with --restart-window=auto only',
      'get,update leases/global-pull-secret-syncer-slot-<i> (kube-system), with --restart-slots only',
      'get,create,patch pullstatuses; get,patch pullstatuses/status (kube-system); get nodes; create,patch events; with --report only',
    ],
  },
  run,
};

async function run(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const { parseAgentFlags } = await import('./flags.ts');
  const flags = parseAgentFlags(args, io.env);
  const agent = await import('../../global-pull-secret/agent/agent.ts');
  if (flags.dryRun) return agent.previewAgent(flags, io);
  return agent.runAgent(flags, io);
}
