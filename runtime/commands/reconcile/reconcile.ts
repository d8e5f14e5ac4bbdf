/** `pullwright reconcile`: keeps a cluster as declared, or shows offline what that would be. */

import { parseArgs } from 'node:util';
import { UsageError } from '../../rules/errors.ts';
import type { Command, CommandIo, ExitCode } from '../command.ts';
import type { ReconcileFlags } from './reconcile-flags.ts';

const TEXT = { type: 'string' } as const;
const SWITCH = { type: 'boolean', default: false } as const;

function parseFlags(args: readonly string[]): ReconcileFlags {
  return parseArgs({
    args: [...args],
    options: {
      from: TEXT,
      management: TEXT,
      to: TEXT,
      'hosted-cluster': TEXT,
      config: TEXT,
      facts: TEXT,
      output: { type: 'string', default: 'text' },
      verbose: SWITCH,
      'dry-run': SWITCH,
      'with-secrets': SWITCH,
      'digest-key-file': TEXT,
      kubeconfig: TEXT,
      'management-kubeconfig': TEXT,
      discover: SWITCH,
      'kubeconfig-secret': TEXT,
      'refresh-seconds': TEXT,
      'registry-authfile': TEXT,
      'lease-namespace': TEXT,
      'lease-seconds': TEXT,
      'health-port': TEXT,
      'metrics-port': TEXT,
      'log-format': TEXT,
      'log-level': TEXT,
    },
  }).values;
}

const HELP = `
Usage: pullwright reconcile --from DIR [--management DIR] [options]      offline
       pullwright reconcile [--kubeconfig FILE] [options]                in a cluster

Computes what should be: the merged pull secret, node labels, and all that the other systems declare.

Offline, reads every manifest below DIR ("-" reads standard input), as "kubectl get -o yaml" prints them,
runs every reconciler until nothing changes any more, and prints what would change. Nothing is written
unless --to names a folder.

  --from DIR              manifests of the (hosted) cluster
  --management DIR        manifests of the management cluster; without it, the cluster stands alone
  --hosted-cluster NS/N   which hosted cluster, when the management folder holds several
  --to DIR                write the resulting objects there; Secret values become keyed digests
  --with-secrets          write real Secret values, files 0600; refused inside a git work tree
  --digest-key-file FILE  key of the digests, so that two runs can be compared (default: new in every run)
  --facts FILE            answers to look-ups outside the API server, as YAML
  --config FILE           which systems run, and their options
  --dry-run               print only; in a cluster, send nothing
  --output FORMAT         text (default), json or yaml
  --verbose               also list what is unchanged

In a cluster:
  --kubeconfig FILE            the (hosted) cluster; default: as for kubectl, in a pod its own account
  --management-kubeconfig FILE the management cluster
  --discover                   find every hosted cluster by its HostedControlPlane
  --hosted-cluster NS/N        only this one
  --kubeconfig-secret NAME     Secret with the kubeconfig of a hosted cluster, in its control plane namespace
                               (default: admin-kubeconfig)
  --refresh-seconds N          how often the kubeconfigs of hosted clusters are looked at again (default: 60)
  --registry-authfile FILE     docker config.json with which registries are asked for the catalogs' digests, after the
                               pull secret of each hosted cluster; without it (and without the option askRegistries)
                               none is asked, and catalogs that no annotation names are left alone
  --lease-namespace NAME       namespace of the leader election Lease; without it there is no election
  --lease-seconds N            how long the Lease lasts (default: 15)
  --health-port N --metrics-port N --log-format json|logfmt --log-level LEVEL

Exit codes: 0 done, 1 something could not be read, judged or written, 2 wrong usage.

Example: pullwright reconcile --from examples/fleet/hosted --management examples/fleet/management
`;

export const command: Command = {
  name: 'reconcile',
  summary: 'Keep clusters as declared; with --from, show offline what would change',
  help: HELP,
  permissions: {
    reads: [
      '<--from>',
      '<--management>',
      '<--config>',
      '<--facts>',
      '<--digest-key-file>',
      '<--kubeconfig>',
      '<--registry-authfile>',
    ],
    writes: ['<--to>'],
    hosts: [
      'API servers of the kubeconfigs',
      'with `--registry-authfile`, or where a cluster says `askRegistries`: registries of the catalogs',
    ],
    api: ['what the sections of the fleet file render: see charts/*/access.ts and rbac.ts'],
  },
  async run(args: readonly string[], io: CommandIo): Promise<ExitCode> {
    const flags = parseFlags(args);
    if (!['text', 'json', 'yaml'].includes(flags.output)) {
      throw new UsageError(`Cannot print as "${flags.output}": wanted text, json or yaml`);
    }
    if (flags.from !== undefined) return (await import('./offline.ts')).reconcileOffline(flags, io);
    for (const flag of ['management', 'to', 'facts', 'with-secrets'] as const) {
      if (flags[flag] !== undefined && flags[flag] !== false)
        throw new UsageError(`--${flag} goes with --from`);
    }
    return (await import('./live.ts')).reconcileLive(flags, io);
  },
};
