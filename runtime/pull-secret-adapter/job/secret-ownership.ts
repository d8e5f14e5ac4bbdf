/** Whether a secret that is there may be written. */
import { JobError } from './gcp-error.ts';
import type { GcpSecret, Replication } from './secret-manager.ts';
import type { StoreInput } from './store-input.ts';

export interface OwnershipInput {
  readonly secretName: string;
  /** The labels that the secret of this cluster has. */
  readonly labels: Readonly<Record<string, string>>;
  /** Undefined: whatever the secret has. */
  readonly replication: Replication | undefined;
  /** Take over a secret that names no owner. */
  readonly adopt: boolean;
}

/**
 * A secret of this name that is not this cluster's, or that replicates otherwise than wanted, is left alone.
 *
 * @throws JobError SecretNotOwned, ReplicationMismatch
 */
export function assertOurs(input: OwnershipInput, secret: GcpSecret): void {
  const { labels = {} } = secret;
  const wanted = input.labels;
  const foreign = ['managed-by', 'cluster-id'].filter((key) => labels[key] !== wanted[key]);
  const adoptable = input.adopt && foreign.every((key) => labels[key] === undefined);
  if (foreign.length > 0 && !adoptable) {
    const what = foreign.map(
      (key) => `label "${key}" is ${labels[key] === undefined ? 'missing' : 'different'}`,
    );
    throw new JobError(
      'SecretNotOwned',
      `Cannot store pull secret "${input.secretName}": a secret of this name is there and ${what.join(', ')}; set its labels, or remove it`,
    );
  }
  if (input.replication !== undefined && !sameReplication(input.replication, replicationOf(secret))) {
    throw new JobError(
      'ReplicationMismatch',
      `Cannot store pull secret "${input.secretName}": its replication is not the wanted one and cannot be changed; remove the secret, or change the policy`,
    );
  }
}

/** How a secret is kept, wherever it says so. */
export function replicationOf(secret: GcpSecret): Replication | undefined {
  const { name, replication, customerManagedEncryption: key } = secret;
  if (!name.includes('/locations/')) return replication;
  return { regional: key === undefined ? {} : { customerManagedEncryption: key } };
}

/** Order of locations, and output-only fields, do not count. */
function sameReplication(wanted: Replication, present: Replication | undefined): boolean {
  const shape = (replication: Replication | undefined): string => {
    if (replication?.userManaged !== undefined) {
      const replicas = replication.userManaged.replicas.map(
        (replica) => `${replica.location} ${replica.customerManagedEncryption?.kmsKeyName ?? ''}`,
      );
      return replicas.sort().join('; ');
    }
    if (replication?.regional !== undefined)
      return `regional ${replication.regional.customerManagedEncryption?.kmsKeyName ?? ''}`;
    return `automatic ${replication?.automatic?.customerManagedEncryption?.kmsKeyName ?? ''}`;
  };
  return shape(wanted) === shape(present);
}

/** What a new secret says of its replication and its key. */
export function keptBy({
  location,
  replication,
}: Pick<StoreInput, 'location' | 'replication'>): Pick<
  GcpSecret,
  'replication' | 'customerManagedEncryption'
> {
  if (location === undefined) return { replication: replication ?? { automatic: {} } };
  const key = replication?.regional?.customerManagedEncryption;
  return key === undefined ? {} : { customerManagedEncryption: key };
}
