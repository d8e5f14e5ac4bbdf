/** Mistakes that show only when the clusters of a fleet are seen together. Total: a cluster may be anything but a map of the right form. */
import { type FleetProblem, suggestion } from './fleet-problems.ts';
import type { ClusterTop } from './fleet-schema.ts';

/** Names and folders that occur twice, and clusters that refer to what is not there. */
export function fleetMistakes(clusters: readonly ClusterTop[]): readonly FleetProblem[] {
  return [
    ...twice(clusters, 'name', (cluster) => cluster.name),
    ...twice(clusters, 'path', (cluster) => cluster.path ?? cluster.name),
    ...nested(clusters),
    ...clusters.flatMap((cluster, index) => referenceMistakes(clusters, cluster, index)),
  ];
}

function twice(
  clusters: readonly ClusterTop[],
  field: 'name' | 'path',
  valueOf: (cluster: ClusterTop) => unknown,
): readonly FleetProblem[] {
  const first = new Map<unknown, number>();
  return clusters.flatMap((cluster, index) => {
    const value = valueOf(cluster);
    if (typeof value !== 'string') return [];
    const before = first.get(value);
    if (before === undefined) {
      first.set(value, index);
      return [];
    }
    // Two clusters of one name have one folder as well; that is one mistake.
    if (field === 'path' && cluster.path === undefined) return [];
    return [
      {
        path: ['clusters', index, field],
        text: `${JSON.stringify(value)} is also the ${field} of clusters[${before}], expected another`,
      },
    ];
  });
}

/** Longer than folders are: each folder around it is looked up, and a path of thousands has thousands. */
const MOST_PATH = 1000;

/** A folder within another cluster's folder would be taken for a part of it. */
function nested(clusters: readonly ClusterTop[]): readonly FleetProblem[] {
  const folders = new Map<string, number>();
  for (const [index, cluster] of clusters.entries()) {
    const path = cluster.path ?? cluster.name;
    if (typeof path === 'string') folders.set(path, index);
  }
  return clusters.flatMap((cluster, index) => {
    const path = cluster.path ?? cluster.name;
    if (typeof path !== 'string') return [];
    if (path === '.' && clusters.length > 1)
      return [
        {
          path: ['clusters', index, 'path'],
          text: 'only a fleet of one cluster may be written to ".", expected a folder',
        },
      ];
    // A name that is too long is a mistake of its own.
    if (path.length > MOST_PATH && cluster.path === undefined) return [];
    if (path.length > MOST_PATH)
      return [
        {
          path: ['clusters', index, 'path'],
          text: `has ${path.length} characters, expected at most ${MOST_PATH}`,
        },
      ];
    const parent = parentsOf(path).find((one) => folders.has(one));
    return parent === undefined
      ? []
      : [
          {
            path: ['clusters', index, 'path'],
            text: `${JSON.stringify(path)} is inside the folder of clusters[${folders.get(parent)}], expected one beside it`,
          },
        ];
  });
}

function parentsOf(path: string): readonly string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

function referenceMistakes(
  clusters: readonly ClusterTop[],
  cluster: ClusterTop,
  index: number,
): readonly FleetProblem[] {
  const at = (field: string, text: string): FleetProblem => ({ path: ['clusters', index, field], text });
  const notManaging =
    cluster.kind === 'management'
      ? []
      : [
          ...(cluster.discovery === true ? [at('discovery', 'only for kind "management"')] : []),
          ...(cluster.reconciler?.shards === undefined
            ? []
            : [
                {
                  path: ['clusters', index, 'reconciler', 'shards'],
                  text: 'only for kind "management": a shard is a part of its hosted clusters',
                },
              ]),
        ];
  if (cluster.kind !== 'hosted') {
    const wrong = (['management', 'hostedCluster'] as const).filter((field) => cluster[field] !== undefined);
    return [...wrong.map((field) => at(field, 'only for kind "hosted"')), ...notManaging];
  }
  if (notManaging.length > 0) return notManaging;
  // A name that is missing or no text is a mistake of its own.
  const managements = clusters
    .filter((one) => one.kind === 'management' && typeof one.name === 'string')
    .map((one) => one.name);
  if (cluster.management === undefined)
    return [
      at(
        'management',
        `missing, expected the cluster that runs its control plane${managements.length === 0 ? '; the fleet has none of kind "management"' : `: ${managements.join(', ')}`}`,
      ),
    ];
  if (typeof cluster.management !== 'string' || managements.includes(cluster.management)) return [];
  return [
    at(
      'management',
      `the fleet has no cluster ${JSON.stringify(cluster.management)} of kind "management"${managements.length === 0 ? '' : `, ${suggestion(cluster.management, managements)}`}`,
    ),
  ];
}
