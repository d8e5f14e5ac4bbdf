/**
 * banzaicloud/imps: an ImagePullSecret merges Secrets into one of the name `spec.target.secret.name`, in every namespace that one
 * of its criteria selects (labels, annotations, names, or pods in it).
 */

import { pullSecretKey } from '../docker-config/secret-text.ts';
import { readSelector, selects } from '../kubernetes/label-selector.ts';
import type { KubeObject } from '../kubernetes/object.ts';
import { dropped, secretsIn, together } from './copies.ts';
import { byName, namespaceNames } from './namespaces.ts';
import type { ImportedPart, ImportedProfile, ImportNote } from './types.ts';
import { subjectOf } from './types.ts';

interface ImpsSpec {
  readonly target?: {
    readonly secret?: { readonly name?: string };
    readonly namespaces?: {
      readonly labels?: readonly object[];
      readonly annotations?: readonly object[];
      readonly names?: readonly string[];
      readonly namespacesWithPods?: unknown;
    };
  };
  readonly registry?: {
    readonly credentials?: readonly { readonly name: string; readonly namespace: string }[];
  };
}

/** Profiles and grants for ImagePullSecrets. */
export function importImps(objects: readonly KubeObject[]): ImportedPart {
  const sets = objects.filter(
    ({ kind, apiVersion }) => kind === 'ImagePullSecret' && apiVersion.startsWith('images.banzaicloud.io/'),
  );
  return together(sets.map((object) => importOne(object, objects)));
}

function importOne(object: KubeObject, objects: readonly KubeObject[]): ImportedPart {
  const { target, registry } = (object.spec ?? {}) as ImpsSpec;
  const subject = subjectOf(object);
  const { usable, notes: foreign } = sourcesOf(subject, registry?.credentials ?? [], objects);
  const criteria = target?.namespaces ?? {};
  const targets = targetsOf(criteria, objects);
  const notes = [...foreign, ...unselectable(subject, criteria)];
  if (usable.length === 0) return { notes: [...notes, dropped(subject, 'names no pull secret')] };
  if (targets.length === 0)
    return { notes: [...notes, dropped(subject, 'selects no namespace that can be carried over')] };
  const name = target?.secret?.name ?? object.metadata.name;
  const profiles = targets.map(
    ({ selector }, at): ImportedProfile => ({
      name: at === 0 ? object.metadata.name : `${object.metadata.name}-${at + 1}`,
      spec: { namespaceSelector: selector, mode: 'Distribute', secrets: [{ name, sources: usable }] },
    }),
  );
  const to = targets.map(({ grant }) => grant).join(', ');
  const message = `profile ${profiles.map((profile) => profile.name).join(', ')}: where sources disagree the first one now always wins`;
  return {
    profiles,
    grants: usable.map((one) => ({ ...one, to })),
    notes: [{ outcome: 'changed', subject, message }, ...notes],
  };
}

interface SourceName {
  readonly name: string;
  readonly namespace: string;
}

/** What is not in the dump is believed to be a pull secret; keys of clouds are known by the type of their Secret. */
function sourcesOf(
  subject: string,
  credentials: readonly SourceName[],
  objects: readonly KubeObject[],
): { readonly usable: readonly SourceName[]; readonly notes: readonly ImportNote[] } {
  const secrets = secretsIn(objects);
  const isUsable = ({ name, namespace }: SourceName): boolean => {
    const found = secrets.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
    return found === undefined || pullSecretKey(found.type) !== undefined;
  };
  const plain = credentials.map(({ name, namespace }) => ({ name, namespace }));
  const why = 'holds no pull secret: for keys of a cloud, use a generator of External Secrets';
  return {
    usable: plain.filter(isUsable),
    notes: plain
      .filter((one) => !isUsable(one))
      .map((one) => dropped(subject, `Secret "${one.namespace}/${one.name}" ${why}`)),
  };
}

function unselectable(subject: string, { annotations, namespacesWithPods }: Criteria): readonly ImportNote[] {
  const label = 'label the namespaces';
  return [
    ...(annotations === undefined
      ? []
      : [dropped(subject, `annotations of namespaces cannot be selected by: ${label}`)]),
    ...(namespacesWithPods === undefined
      ? []
      : [dropped(subject, `namespaces cannot be selected by the pods in them: ${label}`)]),
  ];
}

type Criteria = NonNullable<NonNullable<ImpsSpec['target']>['namespaces']>;

/** One for each set of labels, and one for all names. */
function targetsOf(
  { labels = [], names = [] }: Criteria,
  objects: readonly KubeObject[],
): readonly { readonly selector: object; readonly grant: string }[] {
  const namespaces = objects.filter(({ kind }) => kind === 'Namespace');
  const known = namespaceNames(objects);
  const byLabel = labels.flatMap((selector) => {
    const read = readSelector(selector);
    const found = read.ok
      ? namespaces.filter(({ metadata }) => selects(read.requirements, metadata.labels ?? {}))
      : [];
    return found.length === 0
      ? []
      : [{ selector, grant: found.map(({ metadata }) => metadata.name).join(', ') }];
  });
  const wanted = names.filter((name) => known.length === 0 || known.includes(name));
  return [...byLabel, ...(wanted.length === 0 ? [] : [byName(wanted)])];
}
