/** Mistakes of hosted clusters that show only beside the management cluster whose reconciler looks after them. */
import type { FleetProblem } from './fleet-problems.ts';
import type { ClusterTop } from './fleet-schema.ts';
import type { Section } from './fleet-sections.ts';
import { ADMIN_KUBECONFIG, OWN_KUBECONFIG, type ReconcilerSettings } from './shared/reconciler.ts';

/** What is looked at, by the clusters' order. */
export interface HostedFleet {
  readonly tops: readonly ClusterTop[];
  readonly sections: readonly (readonly Section[])[];
  readonly defaults: ReconcilerSettings | undefined;
}

/** Accounts that no kubeconfig leads to, and options of which one reconciler can follow only one. */
export function hostedMistakes(fleet: HostedFleet): readonly FleetProblem[] {
  return fleet.tops.flatMap((cluster, index) =>
    cluster.kind === 'hosted' ? [...accountMistakes(fleet, cluster, index), ...rivals(fleet, index)] : [],
  );
}

/** HyperShift's own kubeconfig is an administrator's: no account that policies may name. */
function accountMistakes(
  { tops, defaults }: HostedFleet,
  cluster: ClusterTop,
  index: number,
): readonly FleetProblem[] {
  const { serviceAccount } = cluster.hostedCluster ?? {};
  const management = tops.find(({ name, kind }) => kind === 'management' && name === cluster.management);
  const secret = management?.reconciler?.kubeconfigSecret ?? defaults?.kubeconfigSecret;
  if (serviceAccount === undefined || management === undefined) return [];
  if (secret !== ADMIN_KUBECONFIG) return [];
  return [
    {
      path: ['clusters', index, 'hostedCluster', 'serviceAccount'],
      text: `the reconciler of "${management.name}" comes with Secret admin-kubeconfig, which is system:admin: expected reconciler.kubeconfigSecret there, a Secret with the kubeconfig of this account`,
    },
  ];
}

/** A reconciler whose way to hosted clusters nobody has said: HyperShift makes no kubeconfig but that of an administrator. */
export function hostedWarnings(fleet: HostedFleet): readonly FleetProblem[] {
  return fleet.tops.flatMap((cluster, index) => {
    const secret = cluster.reconciler?.kubeconfigSecret ?? fleet.defaults?.kubeconfigSecret;
    const serves =
      cluster.discovery === true || fleet.tops.some(({ management }) => management === cluster.name);
    if (cluster.kind !== 'management' || secret !== undefined || !serves) return [];
    return [
      {
        path: ['clusters', index, 'reconciler', 'kubeconfigSecret'],
        text: `without it the reconciler comes to hosted clusters with Secret ${OWN_KUBECONFIG}, which HyperShift does not make: make it of hostedCluster.serviceAccount and write its name here, or write ${ADMIN_KUBECONFIG} to have it come as system:admin`,
      },
    ];
  });
}

/** One reconciler has one set of some options for all hosted clusters. */
function rivals({ tops, sections }: HostedFleet, index: number): readonly FleetProblem[] {
  const { management } = tops[index] as ClusterTop;
  return (sections[index] ?? []).flatMap(({ system, config }): readonly FleetProblem[] => {
    const wanted = system.shared?.(config);
    if (wanted === undefined) return [];
    const first = tops.findIndex(
      (other, at) =>
        other.kind === 'hosted' &&
        other.management === management &&
        sections[at]?.some((one) => one.system === system) === true,
    );
    const before = sections[first]?.find((one) => one.system === system);
    if (first >= index || before === undefined) return [];
    const other = system.shared?.(before.config) ?? {};
    return Object.keys({ ...wanted, ...other })
      .filter((key) => JSON.stringify(wanted[key]) !== JSON.stringify(other[key]))
      .map((key) => ({
        path: ['clusters', index, 'systems', system.name, key],
        text: `clusters[${first}] has ${JSON.stringify(other[key])}, and the reconciler of "${management}" serves both with one value: expected the same, got ${JSON.stringify(wanted[key])}`,
      }));
  });
}
