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
  /** Hosted clusters of this process, by what the store holds. */
  readonly scopesOf: (store: ObjectStore) => readonly Scope[];
  readonly hosted: HostedClusters;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The kubeconfig is looked at again after this time. @default {60000} */
  readonly refreshMs?: number;
  /** The Lease of this process: a PullStatus beside it says how the hosted clusters fare. @default none is written */
  readonly lease?: { readonly namespace: string; readonly name: string; isHeld(): boolean };
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
