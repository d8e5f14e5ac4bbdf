/**
 * What other tools do with pull secrets, as a fleet of ours. Only names are carried over: no value of a Secret is ever read.
 *
 * Source of the rule: emberstack/kubernetes-reflector, mittwald/kubernetes-replicator, banzaicloud/imps, Kruise SidecarSet, and
 * HyperShift's additional pull secret and mirror sets, as their documents and sources state them.
 */

import type { KubeObject } from '../kubernetes/object.ts';
import { importHypershift } from './hypershift.ts';
import { importImps } from './imps.ts';
import { importKruise } from './kruise.ts';
import { importOthers } from './others.ts';
import { importReflector } from './reflector.ts';
import { importReplicator } from './replicator.ts';
import type { Imported, ImportedGrant, ImportedPart, ImportedProfile, ImportNote } from './types.ts';
import { subjectOf } from './types.ts';

/** Stands in the fleet until somebody writes the image that is really used. */
const IMAGE = 'registry.example.com/pullwright/pullwright:0.1.0';

/**
 * Makes a fleet of one cluster's objects. Total.
 *
 * @example
 * ```ts
 * import { importObjects } from './import.ts';
 * import assert from 'node:assert/strict';
 *
 * const prefix = 'reflector.v1.k8s.emberstack.com/reflection-';
 * const annotations = { [`${prefix}allowed`]: 'true', [`${prefix}auto-enabled`]: 'true', [`${prefix}auto-namespaces`]: 'web' };
 * const secret = { apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/dockerconfigjson', metadata: { name: 'pull', namespace: 'hub', annotations } };
 * const { grants } = importObjects([secret]);
 * assert.deepEqual(grants, [{ namespace: 'hub', name: 'pull', to: 'web' }]);
 * ```
 */
export function importObjects(objects: readonly KubeObject[]): Imported {
  const parts: readonly ImportedPart[] = [
    importHypershift(objects),
    importKruise(objects),
    importReflector(objects),
    importReplicator(objects),
    importImps(objects),
    importOthers(objects),
  ];
  const profiles = unique(parts.flatMap((part) => part.profiles ?? []));
  const hosted = parts.flatMap((part) => part.hosted ?? []);
  // A management cluster has no section for pods: its hosted clusters have.
  const serves = profiles.length > 0 && hosted.length === 0;
  const systems = {
    ...Object.assign({}, ...parts.map((part) => part.systems ?? {})),
    ...(serves ? { 'pull-secret-injection': { profiles } } : {}),
  } as Readonly<Record<string, unknown>>;
  const notes = [
    ...parts.flatMap((part) => part.notes),
    ...(serves ? [] : profiles.map(({ name }) => notHere(name))),
  ];
  return {
    fleet: {
      apiVersion: 'pullwright.dev/v1alpha1',
      kind: 'Fleet',
      image: IMAGE,
      clusters: clustersOf(systems, hosted),
    },
    grants: serves ? joined(parts.flatMap((part) => part.grants ?? [])) : [],
    notes: notes.some(({ outcome }) => outcome !== 'dropped') ? [...notes, imageNote()] : notes,
    others: othersIn(objects, notes),
  };
}

/** What no note speaks of, by kind. Our own objects are no other tool's, and what a cluster consists of is no news. */
function othersIn(
  objects: readonly KubeObject[],
  notes: readonly ImportNote[],
): Readonly<Record<string, number>> {
  // Of a policy each rule is told.
  const told = new Set(notes.map(({ subject }) => subject.split(' rule ', 1)[0]));
  const kinds = objects
    .filter((object) => object.kind !== 'Namespace' && !told.has(subjectOf(object)))
    .map(({ kind }) => kind);
  return Object.fromEntries(
    [...Map.groupBy(kinds, (kind) => kind)]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([kind, of]) => [kind, of.length]),
  );
}

function notHere(name: string): ImportNote {
  return {
    outcome: 'dropped',
    subject: `profile ${name}`,
    message:
      'a management cluster has no section pull-secret-injection: import the hosted clusters by themselves',
  };
}

function imageNote(): ImportNote {
  return {
    outcome: 'changed',
    subject: 'image',
    message: 'is an example: write the image that your clusters can pull',
  };
}

/** Profiles belong to the cluster whose pods they serve; a management cluster has none of its own. */
function clustersOf(
  systems: Readonly<Record<string, unknown>>,
  hosted: readonly { readonly namespace: string; readonly name: string }[],
): readonly object[] {
  if (hosted.length === 0) return [{ name: 'imported', systems }];
  return [
    { name: 'management', kind: 'management', systems },
    ...hosted.map((one) => ({
      name: one.name,
      kind: 'hosted',
      management: 'management',
      hostedCluster: { namespace: one.namespace, name: one.name },
      systems: { 'global-pull-secret': {} },
    })),
  ];
}

/** Names of profiles are unique in a cluster: a later one of the same name gets a number. */
function unique(profiles: readonly ImportedProfile[]): readonly ImportedProfile[] {
  const seen = new Map<string, number>();
  return profiles.map((profile) => {
    const count = (seen.get(profile.name) ?? 0) + 1;
    seen.set(profile.name, count);
    return count === 1 ? profile : { ...profile, name: `${profile.name}-${count}` };
  });
}

/** One annotation a Secret. */
function joined(grants: readonly ImportedGrant[]): readonly ImportedGrant[] {
  const all = new Map<string, ImportedGrant>();
  for (const grant of grants) {
    const id = `${grant.namespace}/${grant.name}`;
    const known = all.get(id);
    const names = new Set([...(known?.to.split(', ') ?? []), ...grant.to.split(', ')]);
    all.set(id, { ...grant, to: names.has('*') ? '*' : [...names].join(', ') });
  }
  return [...all.values()];
}
