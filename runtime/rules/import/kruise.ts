/** Kruise: the `imagePullSecrets` of SidecarSets, as profiles that inject. Copies by ResourceDistribution hold values, and stay. */

import { readSidecarSet } from '../injection/sidecar-set.ts';
import type { KubeObject } from '../kubernetes/object.ts';
import { dropped, together } from './copies.ts';
import type { ImportedPart, ImportNote } from './types.ts';
import { subjectOf } from './types.ts';

/** A profile for each SidecarSet that brings pull secrets. */
export function importKruise(objects: readonly KubeObject[]): ImportedPart {
  const sets = objects.filter(
    ({ kind, apiVersion }) => kind === 'SidecarSet' && apiVersion.startsWith('apps.kruise.io/'),
  );
  const copies = objects.filter(({ kind }) => kind === 'ResourceDistribution');
  return together([
    ...sets.map(importSet),
    {
      notes: copies.map((object) =>
        dropped(
          subjectOf(object),
          'holds its Secret in clear: make it a Secret, and name it as the source of a profile',
        ),
      ),
    },
  ]);
}

interface SetSpec {
  readonly selector?: object;
  readonly namespace?: string;
  readonly namespaceSelector?: object;
}

function importSet(object: KubeObject): ImportedPart {
  const set = readSidecarSet(object);
  const subject = subjectOf(object);
  if (set.imagePullSecrets.length === 0) return { notes: [] };
  const reason = notCarried(set);
  if (reason !== undefined) return { notes: [dropped(subject, reason)] };
  const { selector, namespace, namespaceSelector } = (object.spec ?? {}) as SetSpec;
  const inNamespace = { matchLabels: { 'kubernetes.io/metadata.name': namespace ?? '' } };
  const names = [...new Set(set.imagePullSecrets)].filter((name) => name !== '');
  const note: ImportNote = {
    outcome: 'carried',
    subject,
    message: `profile ${set.name}: names only; its containers stay with Kruise, and the Secrets must come from somewhere`,
  };
  return {
    profiles: [
      {
        name: set.name,
        spec: {
          namespaceSelector:
            namespace === undefined || namespace === '' ? (namespaceSelector ?? {}) : inNamespace,
          selector: selector ?? {},
          mode: 'Inject',
          ...(set.paused ? { suspend: true as const } : {}),
          secrets: names.map((name) => ({ name })),
        },
      },
    ],
    notes: [note],
  };
}

/** What would mean something else as a profile. */
function notCarried(set: ReturnType<typeof readSidecarSet>): string | undefined {
  if (!set.selector.ok) return `its selector cannot be read: ${set.selector.problem}`;
  if (set.selector.requirements.length === 0)
    return 'an empty selector matches no pod in Kruise, and every pod in a profile';
  if (set.containers === 0) return 'has no container, so that Kruise injects nothing';
  if (set.canaryOf !== undefined) return `is a canary of "${set.canaryOf}"`;
  if (set.pin !== undefined) return 'pins a revision: the profile would have the current names';
  return set.imagePullSecrets.length > 8 ? 'names more than eight Secrets' : undefined;
}
