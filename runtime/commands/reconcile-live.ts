/** `reconcile` in a cluster. */
import { UsageError } from '../rules/errors.ts';
import type { CommandIo, ExitCode } from './command.ts';
import type { ReconcileFlags } from './reconcile.ts';

export async function reconcileLive(_flags: ReconcileFlags, _io: CommandIo): Promise<ExitCode> {
  throw new UsageError('Cannot reconcile: wanted --from DIR');
}
