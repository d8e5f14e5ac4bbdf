/** `pullwright reconcile`: keeps a cluster as declared, or shows offline what that would be. */

import {
  type Command,
  type CommandIo,
  type CommandTable,
  defineCommand,
  type ExitCode,
} from '../../cli/command.ts';
import {
  ALLOW_ADDRESS,
  duration,
  type Flags,
  file,
  folder,
  type Given,
  LOG_FLAGS,
  outputFlag,
  port,
  seconds,
  text,
  toggle,
} from '../../cli/flags.ts';
import { UsageError } from '../../core/errors.ts';
import { SHARD_LABEL } from '../../engine/hosted-status.ts';

const HOUR_MS = 3_600_000;

const TABLE = {
  name: 'reconcile',
  summary: 'Keep clusters as declared; with --from, show offline what would change',
  about: [
    'Computes what should be: the merged pull secret, node labels, and all that the other systems declare.',
    'Offline, with --from, it reads every manifest below DIR ("-" reads standard input), as "kubectl get -o yaml --show-managed-fields" prints them, runs every reconciler until nothing changes any more, and prints what would change. Nothing is written unless --to names a folder. In a cluster, without --from, it keeps it so until it is stopped.',
  ],
  flags: {
    from: folder({ short: 'f', help: 'offline: manifests of the (hosted) cluster, or - for standard input' }),
    management: folder({
      help: 'offline: manifests of the management cluster; without it, the cluster stands alone',
    }),
    to: folder({
      touches: 'writes',
      help: 'offline: write the resulting objects there; Secret values become keyed digests',
    }),
    'with-secrets': toggle({
      help: 'with --to: write real Secret values, files 0600; refused inside a git work tree',
    }),
    'digest-key-file': file({
      help: 'with --to: key of the digests, so that two runs can be compared; without it, new in every run',
    }),
    facts: file({ help: 'offline: answers to look-ups outside the API server, as YAML' }),
    config: file({ help: 'which systems run, and their options' }),
    'dry-run': toggle({ help: 'print only; in a cluster, send nothing' }),
    output: outputFlag(['text', 'json', 'yaml'], 'the form of what is printed'),
    verbose: toggle({ help: 'also list what is unchanged, and of several clusters what changes in each' }),
    kubeconfig: file({ help: 'the (hosted) cluster; without it, as for kubectl, in a pod its own account' }),
    'management-kubeconfig': file({ help: 'the management cluster' }),
    discover: toggle({ help: 'find every hosted cluster by its HostedControlPlane' }),
    'hosted-cluster': text({ value: 'NS/NAME', help: 'only this one of several hosted clusters' }),
    'kubeconfig-secret': text({
      value: 'NAME',
      default: 'pullwright-kubeconfig',
      help: 'Secret with the kubeconfig of a hosted cluster, in its control plane namespace',
    }),
    'allow-address': ALLOW_ADDRESS,
    refresh: duration({
      default: '60s',
      least: 1000,
      most: HOUR_MS,
      help: 'how often the kubeconfigs of hosted clusters are looked at again',
    }),
    'registry-authfile': file({
      help: "docker config.json for looking up the catalogs' digests in registries, after the pull secret of each hosted cluster; without it (and without the option askRegistries) no registry is contacted, and catalogs that no annotation names are left alone",
    }),
    'lease-namespace': text({
      value: 'NAME',
      completes: 'namespaces',
      help: 'namespace of the leader election Lease; without it there is no election',
    }),
    'lease-duration': seconds({ default: '15s', least: 1, most: 3600, help: 'how long the Lease lasts' }),
    shard: text({
      value: 'NAME',
      help: `with --discover: only HostedClusters whose label ${SHARD_LABEL} is NAME; without it: only those without the label`,
    }),
    'health-port': port({ default: 'off', help: 'the port of /healthz and /readyz' }),
    'metrics-port': port({ default: 'off', help: 'the port of /metrics' }),
    ...LOG_FLAGS,
  },
  exitCodes: '0 done, 1 something could not be read, validated or written, 2 wrong usage',
  examples: ['pullwright reconcile --from examples/fleet/hosted --management examples/fleet/management'],
  permissions: {
    reads: [],
    writes: [],
    hosts: [
      'API servers of the kubeconfigs',
      'with `--registry-authfile`, or where a cluster says `askRegistries`: registries of the catalogs',
    ],
    api: ['what the sections of the fleet file render: see charts/*/access.ts and rbac.ts'],
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

/** Flags for folders, which have no effect in a cluster. */
const OFFLINE = ['management', 'to', 'facts', 'with-secrets'] as const;

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  if (flags.from !== undefined) return (await import('./offline.ts')).reconcileOffline(flags, io);
  for (const flag of OFFLINE) {
    if (flags[flag] !== undefined && flags[flag] !== false)
      throw new UsageError(`--${flag} goes with --from`);
  }
  return (await import('./live.ts')).reconcileLive(flags, io);
}
