/** The flags of `reconcile`, read. */

import type { LogFormat, LogLevel } from '../../telemetry/logger.ts';

/** Flags of `reconcile`, offline and live. */
export interface ReconcileFlags {
  readonly from: string | undefined;
  readonly management: string | undefined;
  readonly to: string | undefined;
  readonly 'hosted-cluster': string | undefined;
  readonly config: string | undefined;
  readonly facts: string | undefined;
  readonly output: 'text' | 'json' | 'yaml';
  readonly verbose: boolean;
  readonly 'dry-run': boolean;
  readonly 'with-secrets': boolean;
  readonly 'digest-key-file': string | undefined;
  readonly kubeconfig: string | undefined;
  readonly 'management-kubeconfig': string | undefined;
  readonly discover: boolean;
  readonly 'kubeconfig-secret': string;
  readonly 'allow-address': readonly string[] | undefined;
  /** Milliseconds. */
  readonly refresh: number;
  readonly 'registry-authfile': string | undefined;
  readonly 'lease-namespace': string | undefined;
  /** Seconds. */
  readonly 'lease-duration': number;
  readonly shard: string | undefined;
  readonly 'health-port': number | undefined;
  readonly 'metrics-port': number | undefined;
  readonly 'log-format': LogFormat;
  readonly 'log-level': LogLevel;
}
