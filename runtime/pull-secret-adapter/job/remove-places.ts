/**
 * Deletion: every place is gone to, whatever the others say, and what became of each stands in the receipt of the result. A place counts
 * only when it was seen to be gone, or to be somebody else's.
 */
import { gcpLabels } from '../names.ts';
import { NOT_THERE, OUTCOMES } from '../outcome.ts';
import { type GooglePlace, type Place, placeText } from '../places.ts';
import type { JobConfig } from './config.ts';
import { GcpError, type JobError } from './gcp-error.ts';
import { removeManagementSecret } from './management-secret.ts';
import { done, explained, type JobExit, type JobShell, retried } from './shell.ts';

/** Never throws for a place: the first that failed is what the run ends with, after all were tried. */
export async function removePlaces(config: JobConfig, shell: JobShell): Promise<JobExit> {
  const receipt: Record<string, string> = {};
  let failure: JobError | undefined;
  for (const place of config.places) {
    const text = placeText(place);
    try {
      const became = await retried(shell, () => removePlace(place, config, shell));
      receipt[text] = became;
      shell.log('info', 'delete-secret', `${text}: ${became}`);
    } catch (error) {
      const known = explained(place.kind === 'google' ? place.project : '', error);
      shell.log('error', 'delete-secret', `${text}: ${known.message}`);
      failure ??= known;
    }
  }
  const details = { secretName: config.secretName, gcpProject: config.gcpProjectId };
  if (failure !== undefined) return failedPart(failure, receipt, details);
  shell.log('info', 'completed', 'Removed pull secret');
  const lines = Object.entries(receipt).map(([place, became]) => `${place}: ${became}`);
  const end = done('SecretDeleted', lines.join('; ').slice(0, 1024), details);
  return { ...end, result: { ...end.result, receipt } };
}

function failedPart(
  { reason, message, exitCode }: JobError,
  receipt: Readonly<Record<string, string>>,
  details: JobExit['result']['details'],
): JobExit {
  const retriable = OUTCOMES[reason].class !== 'terminal';
  return {
    exitCode,
    result: {
      status: 'failure',
      reason,
      message: message.slice(0, 1024),
      details: { ...details, retriable },
      receipt,
    },
  };
}

async function removePlace(place: Place, config: JobConfig, shell: JobShell): Promise<string> {
  if (place.kind === 'kubernetes') return removeManagementSecret(shell.managementOf(place));
  if (config.onDeletion === 'retain') return 'retained by policy';
  return removeStored(place, config, shell);
}

async function removeStored(
  place: GooglePlace,
  { clusterId }: Pick<JobConfig, 'clusterId'>,
  shell: JobShell,
): Promise<string> {
  const manager = shell.managerOf(place);
  const secret = await manager.get(place.secret);
  if (secret === undefined) return NOT_THERE;
  const wanted = gcpLabels({ id: clusterId });
  const ours = ['managed-by', 'cluster-id'].every((key) => secret.labels?.[key] === wanted[key]);
  // What somebody else made under this name is not ours to remove, and nothing of ours is left.
  if (!ours) return 'is not ours: it stays';
  try {
    await manager.delete(place.secret, secret.etag);
  } catch (error) {
    // Somebody changed it since it was read: read it again.
    const changed = error instanceof GcpError && error.status === 'FAILED_PRECONDITION';
    throw changed ? new GcpError('DeleteSecret', 'ABORTED', { cause: error }) : error;
  }
  // An answer to the deletion is no proof that it is gone.
  if ((await manager.get(place.secret)) !== undefined) throw new GcpError('DeleteSecret', 'ABORTED');
  return 'removed';
}
