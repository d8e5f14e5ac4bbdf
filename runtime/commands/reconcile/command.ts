/** `pullwright reconcile`: keeps a cluster in the declared state, or shows offline what would change. */

import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import type { Given } from '../../cli/flags.ts';
import { UsageError } from '../../core/errors.ts';
import { FLAGS } from './settings.ts';

const TABLE = {
  name: 'reconcile',
  about: [
    'Computes the desired state: the merged pull secret, node labels, and the objects of the other systems.',
    'Offline, with --from, it reads every manifest below DIR ("-" reads standard input) in the format of "kubectl get -o yaml --show-managed-fields", runs every reconciler until nothing changes, and prints the changes. It writes files only with --to. In a cluster, without --from, it reconciles until it is stopped.',
  ],
  flags: FLAGS,
  exitCodes: '0 done, 1 something could not be read, validated or written, 2 wrong usage',
  examples: ['pullwright reconcile --from examples/fleet/hosted --management examples/fleet/management'],
  permissions: {
    hosts: [
      'API servers of the kubeconfigs',
      'with `--registry-authfile`, or if a cluster sets `askRegistries`: registries of the catalogs',
    ],
    api: ['permissions that the sections of the fleet file render: see charts/*/access.ts and rbac.ts'],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);

/** Flags that are valid only with --from. */
const OFFLINE = ['management', 'to', 'facts', 'with-secrets'] as const;

async function run({ flags }: Given<typeof FLAGS>, io: CommandIo): Promise<ExitCode> {
  if (flags.from !== undefined) return (await import('./offline.ts')).reconcileOffline(flags, io);
  for (const flag of OFFLINE) {
    if (flags[flag] !== undefined && flags[flag] !== false) throw new UsageError(`--${flag} requires --from`);
  }
  return (await import('./live.ts')).reconcileLive(flags, io);
}
