/** `pullwright job`: stores the pull secret of one cluster; runs in a Kubernetes Job. */
import { parseArgs } from 'node:util';
import { VERSION } from '../rules/version.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';

const HELP = `
Usage: pullwright job [--dry-run]

Stores a pull secret in Google Secret Manager, reads it back, and writes the Secret that HyperShift reads. Everything comes by
environment; a Job of the adapter sets it.

  GCP_PROJECT_ID, CLUSTER_ID     required
  PULL_SECRET_FILE               file with the pull secret; or PULL_SECRET_DATA, the pull secret itself
  SECRET_NAME                    (hyperfleet-<CLUSTER_ID>-pull-secret)
  JOB_MODE                       store or delete (store)
  CLUSTER_NAME, CLUSTER_GENERATION, SECRET_LABELS (key=value,...)
  REPLICATION_POLICY             automatic or user-managed:LOCATION[,LOCATION]
  KMS_KEY_NAME                   Cloud KMS key; {location} is filled in
  KEEP_VERSIONS                  older versions that stay enabled (1)
  ON_DELETION                    delete or retain (delete)
  ADOPT                          true takes over secrets without an owner's label
  GCP_SERVICE_ACCOUNT            service account to take on
  MANAGEMENT_NAMESPACE, MANAGEMENT_SECRET_NAME (pull-secret)
  RESULT_FILE, TERMINATION_LOG (/dev/termination-log)
  GCP_API_TIMEOUT                for each answer (30s)
  RUN_TIMEOUT                    for the whole run (55s)
  SECRET_MANAGER_ENDPOINT, IAM_CREDENTIALS_ENDPOINT, RESOURCE_MANAGER_ENDPOINT

  --dry-run    get a token, ask for the permissions, go through the write in the cluster without keeping it, say what would be done

Exit codes: 0 done, 65 the pull secret cannot work, 69 no identity, 73 the name is taken, 75 try again, 76 stored content differs,
77 permission denied or API disabled, 78 wrong environment, 1 anything else.

Example: GCP_PROJECT_ID=my-project CLUSTER_ID=cls-123 PULL_SECRET_FILE=pull-secret.json pullwright job --dry-run
`;

export const command: Command = {
  name: 'job',
  summary: 'Store one pull secret in Google Secret Manager (runs in a Kubernetes Job)',
  help: HELP,
  permissions: {
    reads: ['<PULL_SECRET_FILE>', '<GOOGLE_APPLICATION_CREDENTIALS>'],
    writes: ['<RESULT_FILE>', '<TERMINATION_LOG>'],
    hosts: [
      'secretmanager.googleapis.com, iamcredentials.googleapis.com, the metadata server, the API server; cloudresourcemanager.googleapis.com with --dry-run; sts.googleapis.com with federation; oauth2.googleapis.com with a key file',
    ],
    api: ['get, create, patch, delete secrets/pull-secret (management namespace)'],
  },
  run,
};

async function run(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const { values } = parseArgs({
    args: [...args],
    options: { 'dry-run': { type: 'boolean', default: false } },
  });
  const { runJobProcess } = await import('../pull-secret-adapter/job/process.ts');
  const code = await runJobProcess({
    env: io.env,
    signal: io.signal,
    dryRun: values['dry-run'],
    write: (line) => io.stdout.write(line),
    openCluster: async () => {
      const { loadConnection } = await import('../kube/kubeconfig.ts');
      const { HttpKubeClient } = await import('../kube/http-client.ts');
      const connection = await loadConnection(undefined, io.env);
      return new HttpKubeClient({ connection, userAgent: `pullwright/${VERSION}` });
    },
  });
  // A request for a token that was given up may be open still; the library has no way to end it.
  setTimeout(() => process.exit(), 200).unref();
  return code;
}
