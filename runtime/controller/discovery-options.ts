/** What discovery of hosted clusters is given. */
import type { PullwrightError } from '../rules/errors.ts';
import type { Redacted } from '../rules/redacted.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Cluster } from './cluster.ts';
import type { Scope } from './contract.ts';
import type { Manager } from './manager.ts';
import type { ObjectStore } from './store.ts';

/** How to reach the hosted clusters. */
export interface HostedClusters {
  /** The kubeconfig as it is now. */
  read(scope: Scope): Promise<Redacted<string>>;
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
  /** The kubeconfig is looked at again after this time. @default {60000} */
  readonly refreshMs?: number;
  /** The part of the hosted clusters that is this process's, where several divide them. @default all of them */
  readonly share?: Share;
  /** For which Leases this process says how their hosted clusters fare. @default none: nobody is told by an object */
  readonly held?: HeldLeases;
}

/** The Leases by which this process looks after hosted clusters: one for all of them, or one for each of its shards. */
export interface HeldLeases {
  readonly namespace: string;
  /** Those that there are, whoever holds them: one for each shard, in their order. */
  readonly all: readonly string[];
  /** Those that it holds at the moment. */
  leases(): readonly string[];
}

/** What of all hosted clusters this process looks after. It changes as replicas come and go. */
export interface Share {
  /** Namespace of the management cluster in which the replicas write down which cluster is whose. */
  readonly namespace: string;
  serves(scope: string): boolean;
  mayWrite(scope: string): boolean;
}

/** One hosted cluster that is followed, and how its last look ended. */
export interface Follower {
  readonly scope: Scope;
  readonly stop: AbortController;
  done: Promise<void>;
  /** The kubeconfig that the open connection is made of. */
  used: Redacted<string> | undefined;
  /** Looks in a row that failed, and the last of these failures. */
  failures: number;
  failure: PullwrightError | undefined;
  /** Times in a row that it could not be read although it was opened. */
  unread: number;
  state: 'good' | 'failing' | 'refused';
}
