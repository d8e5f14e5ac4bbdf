/** Objects of a cluster and their writers, to compare before and after. */
import assert from 'node:assert/strict';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { TestObject } from '../control-plane/resource-path.ts';

/** Kinds that controllers of the cluster make of others, or that tell what happened. */
const DERIVED =
  'Event Lease Pod ReplicaSet ControllerRevision EndpointSlice Endpoints Job ComponentStatus APIService IPAddress'.split(
    ' ',
  );

/** Everything in the cluster but what is derived. */
async function objects(plane: ControlPlane): Promise<readonly TestObject[]> {
  const kinds = await plane.kubectl('api-resources', '--verbs=list', '-o', 'name');
  const names = kinds.stdout.split('\n').filter((name) => name !== '' && !name.endsWith('metrics.k8s.io'));
  const { code, stdout, stderr } = await plane.kubectl(
    'get',
    [...new Set(names)].join(','),
    '--all-namespaces',
    '--output=json',
    '--show-managed-fields',
  );
  assert.equal(code, 0, stderr);
  const { items } = JSON.parse(stdout) as { items: readonly TestObject[] };
  return items.filter(({ kind }) => !DERIVED.includes(kind));
}

const nameOf = ({ kind, metadata: { namespace = '', name } }: TestObject): string =>
  [kind, namespace, name].filter((part) => part !== '').join(' ');

/** Kind, namespace and name of every object. */
export async function objectNames(plane: ControlPlane): Promise<ReadonlySet<string>> {
  return new Set((await objects(plane)).map(nameOf));
}

/** Managed fields of a field manager with their times, by object, without status. */
export async function writtenBy(plane: ControlPlane, manager: string): Promise<ReadonlyMap<string, string>> {
  const written = (await objects(plane)).flatMap((object): [string, string][] => {
    const entries = fieldsOf(object).filter(
      (entry) => entry.manager === manager && entry.subresource === undefined,
    );
    return entries.length === 0 ? [] : [[nameOf(object), JSON.stringify(entries)]];
  });
  return new Map(written.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Field managers of an object. */
export function managersOf(object: TestObject | undefined): readonly string[] {
  return object === undefined ? [] : fieldsOf(object).map(({ manager }) => manager);
}

interface Managed {
  readonly manager: string;
  readonly subresource?: string;
}

function fieldsOf({ metadata }: TestObject): readonly Managed[] {
  return (metadata['managedFields'] ?? []) as readonly Managed[];
}
