/** `pullwright reconcile`: keeps a cluster in the declared state, or shows offline what would change. */

import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import type { Given } from '../../cli/flags.ts';
import { UsageError } from '../../core/errors.ts';
import { FLAGS } from './settings.ts';

const TABLE = {
  name: 'reconcile',
  about: [
    'Computes what should be: the merged pull secret, node labels, and all that the other systems declare.',
    'Offline, with --from, it reads every manifest below DIR ("-" reads standard input), as "kubectl get -o yaml --show-managed-fields" prints them, runs every reconciler until nothing changes any more, and prints what would change. Nothing is written unless --to names a folder. In a cluster, without --from, it keeps it so until it is stopped.',
  ],
  flags: FLAGS,
  exitCodes: '0 done, 1 something could not be read, validated or written, 2 wrong usage',
  examples: ['pullwright reconcile --from examples/fleet/hosted --management examples/fleet/management'],
  permissions: {
    hosts: [
      'API servers of the kubeconfigs',
      'with `--registry-authfile`, or where a cluster says `askRegistries`: registries of the catalogs',
    ],
    api: ['what the sections of the fleet file render: see charts/*/access.ts and rbac.ts'],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);

/** Flags that are valid only with --from. */
const OFFLINE = ['management', 'to', 'facts', 'with-secrets'] as const;

async function run({ flags }: Given<typeof FLAGS>, io: CommandIo): Promise<ExitCode> {
  if (flags.from !== undefined) return (await import('./offline.ts')).reconcileOffline(flags, io);
  for (const flag of OFFLINE) {
    if (flags[flag] !== undefined && flags[flag] !== false)
      throw new UsageError(`--${flag} goes with --from`);
  }
  return (await import('./live.ts')).reconcileLive(flags, io);
}
