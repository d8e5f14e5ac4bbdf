/** Proof that the project lets the tenant in, before Secret Manager of that project is asked for anything. */
import { CHALLENGE_LABEL } from '../tenancy.ts';
import type { JobConfig } from './config.ts';
import { JobError } from './gcp-error.ts';
import type { JobShell } from './shell.ts';

/** @throws JobError TenancyUnproven; GcpError when the project does not say */
export async function assertTenant(
  { challenge, gcpProjectId: project }: Pick<JobConfig, 'challenge' | 'gcpProjectId'>,
  { manager }: Pick<JobShell, 'manager'>,
): Promise<void> {
  if (challenge === '') return;
  const { [CHALLENGE_LABEL]: present } = await manager.projectLabels();
  if (present === challenge) return;
  const state = present === undefined ? 'has no label' : 'has another tenant in its label';
  throw new JobError(
    'TenancyUnproven',
    `Project "${project}" ${state} "${CHALLENGE_LABEL}": its owner lets this tenant in with "gcloud projects update ${project} --update-labels=${CHALLENGE_LABEL}=${challenge}"`,
  );
}
