/** One combination of settings, rendered. */
import { parseYaml } from '../../runtime/kube/yaml.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { commonGroups, systemGroups } from '../app.ts';
import { type Fleet, readFleet } from '../fleet.ts';
import { FleetError } from '../fleet-problems.ts';
import { withMarks, withoutDigest } from './marks.ts';
import { type ChartValue, clusterOf, type Picked, type Setting } from './settings.ts';

/** What was rendered for one combination: objects by name, or why it is refused. */
export interface Combination {
  readonly objects: Readonly<Record<string, ChartValue>>;
  readonly problems: readonly ChartRefusal[];
}

export interface ChartRefusal {
  /** Below the cluster. */
  readonly path: string;
  readonly text: string;
}

/** On every Namespace, and only there. */
const KEEP = { 'helm.sh/resource-policy': 'keep' } as const;

/** Name of the one cluster; nothing that is rendered speaks of it. */
const CLUSTER = 'chart';

/** What is rendered of one system, or (`''`) of what they share. */
export function rendered(all: readonly Setting[], given: Picked, system: string): Combination {
  const read = fleetOf(all, given);
  if ('problems' in read) return { objects: {}, problems: read.problems };
  const { fleet } = read;
  const groups = fleet.clusters.flatMap((one) => (system === '' ? commonGroups : systemGroups)(fleet, one));
  const objects = groups
    .flatMap((group) => group.objects)
    .filter(({ kind }) => kind !== 'CustomResourceDefinition');
  return { objects: byName(objects, all, given), problems: [] };
}

/** Why a combination is refused. */
export function problemsOf(all: readonly Setting[], given: Picked): readonly ChartRefusal[] {
  const read = fleetOf(all, given);
  return 'problems' in read ? read.problems : [];
}

function fleetOf(
  all: readonly Setting[],
  given: Picked,
): { readonly fleet: Fleet } | { readonly problems: readonly ChartRefusal[] } {
  const { image, ...cluster } = clusterOf(all, given);
  try {
    return { fleet: readFleet({ image, clusters: [{ name: CLUSTER, ...cluster }] }) };
  } catch (error) {
    if (!(error instanceof FleetError)) throw error;
    return { problems: error.problems.map(({ path, text }) => ({ path: path.slice(2).join('.'), text })) };
  }
}

function byName(
  objects: readonly KubeObject[],
  all: readonly Setting[],
  given: Picked,
): Combination['objects'] {
  const plain = JSON.parse(JSON.stringify(objects.map(kept))) as readonly ChartValue[];
  const text = objects.flatMap((object) => configText(object)).at(0);
  const whole = withMarks(
    withoutDigest(plain, text, (one) => parseYaml(one) as ChartValue),
    all,
    given,
  ) as readonly ChartValue[];
  return Object.fromEntries(whole.map((object) => [nameOf(object as unknown as KubeObject), object]));
}

/** A namespace holds what others made: Helm must not delete it. */
function kept(object: KubeObject): KubeObject {
  if (object.kind !== 'Namespace') return object;
  const { annotations } = object.metadata;
  return { ...object, metadata: { ...object.metadata, annotations: { ...annotations, ...KEEP } } };
}

function configText({ kind, data }: KubeObject): readonly string[] {
  const text = kind === 'ConfigMap' ? (data as Readonly<Record<string, string>>)['config.yaml'] : undefined;
  return text === undefined ? [] : [text];
}

/** Kind, namespace and name, with marks. */
function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind}/${metadata.namespace ?? ''}/${metadata.name}`;
}
