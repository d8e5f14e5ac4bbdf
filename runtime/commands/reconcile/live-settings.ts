/** The flags of `reconcile` in a cluster, checked. */
import { UsageError } from '../../rules/errors.ts';
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from '../../telemetry/logger.ts';
import type { ReconcileFlags } from './reconcile-flags.ts';

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
  /** How often kubeconfigs are looked at again. */
  readonly refreshSeconds: number;
  /** Credentials for look-ups in registries; undefined: none is asked. */
  readonly registryAuthfile: string | undefined;
  readonly config: string | undefined;
  readonly dryRun: boolean;
  readonly output: string;
  readonly verbose: boolean;
  /** Undefined: no leader election. */
  readonly leaseNamespace: string | undefined;
  readonly leaseSeconds: number;
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
  return {
    mainKubeconfig: management ?? flags.kubeconfig,
    hostedKubeconfig: management === undefined ? undefined : required(flags.kubeconfig),
    discover: flags.discover || management !== undefined,
    hostedCluster: flags['hosted-cluster'],
    kubeconfigSecret: flags['kubeconfig-secret'] ?? 'admin-kubeconfig',
    refreshSeconds: numberOf(flags, 'refresh-seconds', { least: 1, most: 3600 }) ?? 60,
    registryAuthfile: flags['registry-authfile'],
    config: flags.config,
    dryRun: flags['dry-run'],
    output: flags.output,
    verbose: flags.verbose,
    leaseNamespace: flags['lease-namespace'],
    leaseSeconds: numberOf(flags, 'lease-seconds', { least: 1, most: 3600 }) ?? 15,
    healthPort: numberOf(flags, 'health-port', PORTS),
    metricsPort: numberOf(flags, 'metrics-port', PORTS),
    logFormat: choiceOf(flags, 'log-format', LOG_FORMATS),
    logLevel: choiceOf(flags, 'log-level', LOG_LEVELS, 'info'),
  };
}

const PORTS = { least: 0, most: 65_535 };

function required(kubeconfig: string | undefined): string {
  if (kubeconfig !== undefined) return kubeconfig;
  throw new UsageError('--management-kubeconfig goes with --kubeconfig, which is the hosted cluster');
}

function numberOf(
  flags: ReconcileFlags,
  name: 'health-port' | 'metrics-port' | 'lease-seconds' | 'refresh-seconds',
  range: { readonly least: number; readonly most: number },
): number | undefined {
  const text = flags[name];
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= range.least && value <= range.most) return value;
  throw new UsageError(
    `Cannot use --${name} "${text}": wanted a number from ${range.least} to ${range.most}`,
  );
}

function choiceOf<T extends string>(
  flags: ReconcileFlags,
  name: 'log-format' | 'log-level',
  choices: readonly T[],
  fallback: T | undefined = choices[0],
): T {
  const text = flags[name] ?? fallback;
  const choice = choices.find((one) => one === text);
  if (choice !== undefined) return choice;
  throw new UsageError(`Cannot use --${name} "${text}": wanted ${choices.join(', ')}`);
}
