/** The flags of `reconcile` in a cluster, checked. */
import { UsageError } from '../../core/errors.ts';
import type { LogFormat, LogLevel } from '../../core/logger.ts';
import { reconcilerName } from '../../engine/hosted-status.ts';

export interface LiveSettings {
  /** Of the management cluster, or of the one there is; undefined: that of the pod. */
  readonly mainKubeconfig: string | undefined;
  /** Of the one hosted cluster, when it is given as a file. */
  readonly hostedKubeconfig: string | undefined;
  /** Look for hosted clusters in the main one. */
  readonly discover: boolean;
  /** Only this hosted cluster, `<namespace>/<name>`. */
  readonly hostedCluster: string | undefined;
  readonly kubeconfigSecret: string;
  /** Networks of API servers and registries that may be contacted even under untrusted host names. */
  readonly allowAddresses: readonly string[];
  /** How often kubeconfigs are looked at again. */
  readonly refreshMs: number;
  /** Credentials for look-ups in registries; undefined: none is contacted. */
  readonly registryAuthfile: string | undefined;
  readonly config: string | undefined;
  readonly dryRun: boolean;
  readonly output: string;
  readonly verbose: boolean;
  /** Undefined: no leader election. */
  readonly leaseNamespace: string | undefined;
  readonly leaseSeconds: number;
  readonly leaseName: string;
  /** Of the hosted clusters; undefined: those without a shard. */
  readonly shard: string | undefined;
  readonly healthPort: number | undefined;
  readonly metricsPort: number | undefined;
  readonly logFormat: LogFormat;
  readonly logLevel: LogLevel;
}

/** @throws UsageError that says which flag is wrong */
export function liveSettings(flags: ReconcileFlags): LiveSettings {
  const management = flags['management-kubeconfig'];
  if (management !== undefined && flags.discover)
    throw new UsageError(
      'Cannot use --discover with --management-kubeconfig: --kubeconfig is the management cluster then',
    );
  if (flags.shard !== undefined && !flags.discover)
    throw new UsageError('--shard goes with --discover: it selects hosted clusters');
  return {
    mainKubeconfig: management ?? flags.kubeconfig,
    hostedKubeconfig: management === undefined ? undefined : required(flags.kubeconfig),
    discover: flags.discover || management !== undefined,
    hostedCluster: flags['hosted-cluster'],
    kubeconfigSecret: flags['kubeconfig-secret'],
    allowAddresses: flags['allow-address'] ?? [],
    refreshMs: flags.refresh,
    registryAuthfile: flags['registry-authfile'],
    config: flags.config,
    dryRun: flags['dry-run'],
    output: flags.output,
    verbose: flags.verbose,
    leaseNamespace: flags['lease-namespace'],
    leaseSeconds: flags['lease-duration'],
    leaseName: reconcilerName(flags.shard),
    shard: flags.shard,
    healthPort: flags['health-port'],
    metricsPort: flags['metrics-port'],
    logFormat: flags['log-format'],
    logLevel: flags['log-level'],
  };
}

function required(kubeconfig: string | undefined): string {
  if (kubeconfig !== undefined) return kubeconfig;
  throw new UsageError('--management-kubeconfig goes with --kubeconfig, which is the hosted cluster');
}

// The flags of `reconcile`, read.

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
