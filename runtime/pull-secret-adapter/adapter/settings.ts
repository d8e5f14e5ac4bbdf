/** What an operator can set for the adapter: all with a default, read from flags by the command. */
import { DEFAULT_IMAGE } from '../../rules/version.ts';

/** Other adapters that must be available first, by name. */
export const DEFAULT_DEPENDENCIES: readonly string[] = ['validation', 'dns', 'placement'];

/** Tenant to the projects that it may name; a `*` at the end stands for any further characters. */
export type TenantProjects = Readonly<Record<string, readonly string[]>>;

export interface AdapterSettings {
  /** As it stands in the list of required adapters. @default {'pullsecret'} */
  readonly adapterName: string;
  /** Where Jobs and their temporary Secrets live. @default {'hyperfleet-system'} */
  readonly namespace: string;
  /** @default {['validation', 'dns', 'placement']} */
  readonly dependencies: readonly string[];
  /** Namespace of the Secret for HyperShift; `{id}` and `{name}` are filled in. Empty: no such Secret. @default {'clusters-{id}'} */
  readonly managementNamespace: string;
  /** @default {'pull-secret'} */
  readonly pullSecretName: string;
  /** Name in Secret Manager; `{id}` and `{name}` are filled in. @default {'hyperfleet-{id}-pull-secret'} */
  readonly gcpSecretName: string;
  /** Identity that the Job takes on; `{project}` is filled in. Empty: its own. */
  readonly impersonate: string;
  /** How the Job gets the pull secret. @default {'file'} */
  readonly passAs: 'file' | 'env';
  readonly image: string;
  /** Secrets in `namespace` that the Jobs pull it with. @default {[]} */
  readonly imagePullSecrets: readonly string[];
  readonly serviceAccount: string;
  /** Full name of the provider of a workload identity pool; empty: the metadata server knows the pods of Jobs. */
  readonly federation: string;
  /** ConfigMap in `namespace` whose key `ca.crt` holds authorities that the Jobs trust beside those of the image; empty: none. */
  readonly jobAuthorities: string;
  /** Of regional secrets, such as `{region}`; empty: secrets that Google replicates. */
  readonly location: string;
  /** `automatic`, or `user-managed:LOCATION[,LOCATION]`. @default {'automatic'} */
  readonly replication: string;
  /** Key of Cloud KMS, empty for Google's own. */
  readonly kmsKey: string;
  /** Older versions that stay enabled while both credentials are in use. @default {1} */
  readonly keepVersions: number;
  /** So long one stays after it was replaced; undefined: until `keepVersions` pushes it out. */
  readonly previousForSeconds: number | undefined;
  /** So long a disabled version stays before Google destroys it; 0: for ever. @default {0} */
  readonly destroyAfterSeconds: number;
  /** What deletion does to the secret in the customer's project. @default {'delete'} */
  readonly onDeletion: 'delete' | 'retain';
  /** Take over secrets that carry no owner's label. @default {false} */
  readonly adopt: boolean;
  /** A finished Job stays this long. @default {3600} */
  readonly jobTtlSeconds: number;
  readonly jobDeadlineSeconds: number;
  /** Run the Job again when its last success is older; 0 never. @default {86400} */
  readonly verifyEverySeconds: number;
  /** Try again after a refused permission; 0 never. @default {3600} */
  readonly deniedRetrySeconds: number;
  /** An event is answered with an unchanged report only if that is at least this old. Sentinel's debounce. @default {10} */
  readonly repeatSeconds: number;
  /** Projects that each tenant may name; undefined: nobody checks. */
  readonly tenants: TenantProjects | undefined;
  /** What proves that a project lets the tenant in, before anything goes there. @default {'none'} */
  readonly challenge: 'none' | 'project-label';
  /** Where a cluster's document names its tenant: `created_by`, `tenancy.KEY` or `labels.KEY`. @default {'created_by'} */
  readonly tenantKey: string;
  /** Further environment of the Job, such as endpoints in a test. */
  readonly jobEnv: Readonly<Record<string, string>>;
}

export const DEFAULT_SETTINGS: AdapterSettings = {
  adapterName: 'pullsecret',
  namespace: 'hyperfleet-system',
  dependencies: DEFAULT_DEPENDENCIES,
  managementNamespace: 'clusters-{id}',
  pullSecretName: 'pull-secret',
  gcpSecretName: 'hyperfleet-{id}-pull-secret',
  impersonate: 'pullsecret-manager@{project}.iam.gserviceaccount.com',
  passAs: 'file',
  image: DEFAULT_IMAGE,
  imagePullSecrets: [],
  serviceAccount: 'pullsecret-adapter-job',
  federation: '',
  jobAuthorities: '',
  location: '',
  replication: 'automatic',
  kmsKey: '',
  keepVersions: 1,
  previousForSeconds: undefined,
  destroyAfterSeconds: 0,
  onDeletion: 'delete',
  adopt: false,
  jobTtlSeconds: 3600,
  jobDeadlineSeconds: 310,
  verifyEverySeconds: 86_400,
  deniedRetrySeconds: 3600,
  repeatSeconds: 10,
  tenants: undefined,
  challenge: 'none',
  tenantKey: 'created_by',
  jobEnv: {},
};
