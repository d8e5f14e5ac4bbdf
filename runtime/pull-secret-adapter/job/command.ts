/** `pullwright job`: stores the pull secret of one cluster; runs in a Kubernetes Job. */

import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import { type Given, toggle } from '../../cli/flags.ts';
import { VERSION } from '../../core/version.ts';

const TABLE = {
  name: 'job',
  about: [
    'Stores a pull secret in Google Secret Manager, reads it back, and writes the Secret that HyperShift reads. All settings are environment variables; the adapter sets them.',
  ],
  flags: {
    'dry-run': toggle({
      help: 'get a token, test the permissions, do a server-side dry run in the cluster, and print the plan',
    }),
  },
  environment: [
    { name: 'GCP_PROJECT_ID, CLUSTER_ID', help: 'required' },
    {
      name: 'PULL_SECRET_FILE',
      help: 'file with the pull secret; or PULL_SECRET_DATA, the pull secret itself',
    },
    { name: 'SECRET_NAME', help: 'name in Secret Manager (default hyperfleet-<CLUSTER_ID>-pull-secret)' },
    { name: 'JOB_MODE', help: 'store or delete (default store)' },
    { name: 'CLUSTER_NAME, CLUSTER_GENERATION', help: 'for labels and result' },
    { name: 'SECRET_LABELS', help: 'further labels: key=value,...' },
    { name: 'REPLICATION_POLICY', help: 'automatic or user-managed:LOCATION[,LOCATION] (default automatic)' },
    { name: 'KMS_KEY_NAME', help: 'Cloud KMS key; {location} is filled in' },
    {
      name: 'SECRET_LOCATION',
      help: 'location of a regional secret; if unset, Google replicates the secret',
    },
    { name: 'KEEP_VERSIONS', help: 'older versions that stay enabled (default 1)' },
    {
      name: 'PREVIOUS_FOR_SECONDS',
      help: 'how long a replaced version stays enabled (default: until KEEP_VERSIONS is exceeded)',
    },
    {
      name: 'DESTROY_AFTER_SECONDS',
      help: 'delay until Google destroys a disabled version; 0: never (default 0)',
    },
    { name: 'REVOKE_PREVIOUS', help: 'a new value revokes all older versions' },
    { name: 'TENANT_CHALLENGE', help: 'required value of the project label pullwright-tenant' },
    { name: 'ON_DELETION', help: 'delete or retain (default delete)' },
    { name: 'ADOPT', help: 'true adopts secrets without an owner label' },
    { name: 'GCP_SERVICE_ACCOUNT', help: 'service account to impersonate' },
    { name: 'MANAGEMENT_NAMESPACE', help: "namespace of HyperShift's Secret; if unset, none is written" },
    { name: 'MANAGEMENT_SECRET_NAME', help: 'its name (default pull-secret)' },
    { name: 'TRACEPARENT', help: 'W3C Trace Context, for log and result' },
    { name: 'RESULT_FILE', help: 'result file, in addition to the termination log' },
    { name: 'TERMINATION_LOG', help: '(default /dev/termination-log)' },
    { name: 'GCP_API_TIMEOUT', help: 'timeout of a request (default 30s)' },
    { name: 'RUN_TIMEOUT', help: 'timeout of the run (default 55s)' },
    {
      name: 'SECRET_MANAGER_ENDPOINT, REGIONAL_SECRET_MANAGER_ENDPOINT, IAM_CREDENTIALS_ENDPOINT, RESOURCE_MANAGER_ENDPOINT',
      help: 'custom endpoints; {location} is filled into the second',
    },
  ],
  exitCodes:
    '0 done, 65 invalid pull secret, 69 no identity, 73 conflict with an existing secret, 75 retry, 76 stored content differs, 77 permission denied or API disabled, 78 invalid environment, 1 other errors',
  examples: [
    'GCP_PROJECT_ID=my-project CLUSTER_ID=cls-123 PULL_SECRET_FILE=pull-secret.json pullwright job --dry-run',
  ],
  permissions: {
    reads: ['<PULL_SECRET_FILE>', '<GOOGLE_APPLICATION_CREDENTIALS>'],
    writes: ['<RESULT_FILE>', '<TERMINATION_LOG>'],
    hosts: [
      'secretmanager.googleapis.com, secretmanager.<location>.rep.googleapis.com, iamcredentials.googleapis.com, the metadata server, the API server; cloudresourcemanager.googleapis.com with --dry-run and with a challenge; sts.googleapis.com with federation; oauth2.googleapis.com with a key file',
    ],
    api: ['get, create, patch, delete secrets/pull-secret (management namespace)'],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const { runJobProcess } = await import('./process.ts');
  const code = await runJobProcess({
    env: io.env,
    signal: io.signal,
    dryRun: flags['dry-run'],
    write: (line) => io.stdout.write(line),
    openCluster: async () => {
      const { loadConnection } = await import('../../kube/kubeconfig.ts');
      const { HttpKubeClient } = await import('../../kube/http-client.ts');
      const connection = await loadConnection(undefined, io.env);
      return new HttpKubeClient({ connection, userAgent: `pullwright/${VERSION}` });
    },
  });
  // A token request that timed out may still be open; the library cannot cancel it.
  setTimeout(() => process.exit(), 200).unref();
  return code;
}
