/** What discovery of hosted clusters is given. */
import type { Redacted } from '../rules/redacted.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Cluster } from './cluster.ts';
import type { ClaimMemory } from './cluster-ownership-memory.ts';
import type { Scope } from './contract.ts';
import type { HostedKubeconfig } from './hosted-kubeconfig.ts';
import type { Manager } from './manager.ts';
import type { ObjectStore } from './store.ts';

/** How to reach the hosted clusters. */
export interface HostedClusters {
  /** The kubeconfig as it is now. */
  read(scope: Scope): Promise<HostedKubeconfig>;
  open(kubeconfig: Redacted<string>, scope: Scope): Promise<Cluster>;
  /** What holds the kubeconfig, for people. */
  subject(scope: Scope): string;
}

export interface DiscoveryOptions {
  readonly management: Cluster;
  readonly manager: Manager;
  /** Hosted clusters that the store speaks of. */
  readonly scopesOf: (store: ObjectStore) => readonly Scope[];
  readonly hosted: HostedClusters;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Which cluster was whose before. @default none */
  readonly memory?: ClaimMemory;
  /** The kubeconfig is looked at again after this time. @default {60000} */
  readonly refreshMs?: number;
  /** The part of the hosted clusters that is this process's, where several divide them. @default all of them */
  readonly share?: Share;
}

/** What of all hosted clusters this process looks after. It changes as replicas come and go. */
export interface Share {
  /** Namespace of the management cluster in which the replicas write down which cluster is whose. */
  readonly namespace: string;
  serves(scope: string): boolean;
  mayWrite(scope: string): boolean;
}
