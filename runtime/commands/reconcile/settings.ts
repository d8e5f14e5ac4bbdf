/** The flags of `reconcile`, and the settings of a live run. */
import {
  ALLOW_ADDRESS,
  duration,
  file,
  folder,
  LOG_FLAGS,
  outputFlag,
  port,
  seconds,
  text,
  toggle,
  type ValuesOf,
} from '../../cli/flags.ts';
import { UsageError } from '../../core/errors.ts';
import { reconcilerName, SHARD_LABEL } from '../../engine/hosted-status.ts';

const HOUR_MS = 3_600_000;

export const FLAGS = {
  from: folder({ short: 'f', help: 'offline: manifests of the (hosted) cluster, or - for standard input' }),
  management: folder({
    help: 'offline: manifests of the management cluster; without it, the cluster is standalone',
  }),
  to: folder({
    touches: 'writes',
    help: 'offline: write the resulting objects to this folder; Secret values become keyed digests',
  }),
  'with-secrets': toggle({
    help: 'with --to: write real Secret values, files 0600; denied inside a git work tree',
  }),
  'digest-key-file': file({
    help: 'with --to: key of the digests, so that two runs can be compared; if unset, a new key per run',
  }),
  facts: file({ help: 'offline: results of look-ups outside the API server, as YAML' }),
  config: file({ help: 'configuration: enabled systems and their options' }),
  'dry-run': toggle({ help: 'print only; write nothing' }),
  output: outputFlag(['text', 'json', 'yaml'], 'output format'),
  verbose: toggle({ help: 'also list unchanged objects, and with several clusters the changes in each' }),
  kubeconfig: file({
    help: 'kubeconfig of the (hosted) cluster; if unset, as kubectl, in a pod its ServiceAccount',
  }),
  'management-kubeconfig': file({ help: 'kubeconfig of the management cluster' }),
  discover: toggle({ help: 'find every hosted cluster by its HostedControlPlane' }),
  'hosted-cluster': text({ value: 'NS/NAME', help: 'only this hosted cluster, of several' }),
  'kubeconfig-secret': text({
    value: 'NAME',
    default: 'pullwright-kubeconfig',
    help: 'Secret with the kubeconfig of a hosted cluster, in its control plane namespace',
  }),
  'allow-address': ALLOW_ADDRESS,
  refresh: duration({
    default: '60s',
    least: 1000,
    most: HOUR_MS,
    help: 'how often the kubeconfigs of hosted clusters are reloaded',
  }),
  'registry-authfile': file({
    help: "docker config.json for looking up the catalogs' digests in registries, after the pull secret of each hosted cluster; without it (and without the option askRegistries) no registry is contacted, and catalogs that no annotation names stay unchanged",
  }),
  'lease-namespace': text({
    value: 'NAME',
    completes: 'namespaces',
    help: 'namespace of the leader election Lease; without it, leader election is off',
  }),
  'lease-duration': seconds({ default: '15s', least: 1, most: 3600, help: 'duration of the Lease' }),
  shard: text({
    value: 'NAME',
    help: `with --discover: only HostedClusters whose label ${SHARD_LABEL} is NAME; without it: only those without the label`,
  }),
  'health-port': port({ default: 'off', help: 'the port of /healthz and /readyz' }),
  'metrics-port': port({ default: 'off', help: 'the port of /metrics' }),
  ...LOG_FLAGS,
};

/** Parsed flags, offline and live. */
export type ReconcileFlags = ValuesOf<typeof FLAGS>;

export type LiveSettings = Readonly<ReturnType<typeof liveSettings>>;

/** @throws UsageError naming the invalid flag */
export function liveSettings(flags: ReconcileFlags) {
  const management = flags['management-kubeconfig'];
  if (management !== undefined && flags.discover)
    throw new UsageError(
      'Cannot use --discover with --management-kubeconfig: pass the management cluster as --kubeconfig',
    );
  if (flags.shard !== undefined && !flags.discover)
    throw new UsageError('--shard requires --discover: it selects hosted clusters');
  if (management !== undefined && flags.kubeconfig === undefined)
    throw new UsageError('--management-kubeconfig requires --kubeconfig, which is the hosted cluster');
  return {
    ...flags,
    /** Kubeconfig of the management cluster or the only cluster; undefined: the default of kubectl or of the pod. */
    mainKubeconfig: management ?? flags.kubeconfig,
    /** Kubeconfig of the only hosted cluster, if given as a file. */
    hostedKubeconfig: management === undefined ? undefined : flags.kubeconfig,
    discover: flags.discover || management !== undefined,
    leaseName: reconcilerName(flags.shard),
  };
}
