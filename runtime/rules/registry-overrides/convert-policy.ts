/**
 * An ImageContentSourcePolicy as the ImageDigestMirrorSet that means the same to nodes.
 *
 * Source of the rule: `oc adm migrate icsp`, which keeps name, labels and annotations, and writes source and mirrors one to one.
 * What the schema of the newer kind refuses is not carried over: a mirror twice is written once, in the order that nodes have, and an
 * entry that cannot be used is left out and said.
 */
import { type KubeObject, LAST_APPLIED } from '../kubernetes/object.ts';
import { readMirrorEntries } from '../mirrors/collect.ts';
import { mergeOrders } from '../mirrors/order.ts';

export interface ConvertedPolicy {
  readonly object: KubeObject;
  /** What was left out, each as a sentence with its place. */
  readonly problems: readonly string[];
}

/** Set by the API server or by tools for the one object that it is. */
const OF_THE_OBJECT: readonly string[] = [LAST_APPLIED];

/**
 * Converts `policy`. `taken`: names of ImageDigestMirrorSets that are there already, which the new one must not replace.
 *
 * @example
 * ```ts
 * import { convertPolicy } from './convert-policy.ts';
 * import assert from 'node:assert/strict';
 *
 * const { object } = convertPolicy({
 *   apiVersion: 'operator.openshift.io/v1alpha1', kind: 'ImageContentSourcePolicy', metadata: { name: 'mirrors', uid: 'u' },
 *   spec: { repositoryDigestMirrors: [{ source: 'quay.io/ocp', mirrors: ['m.example.com/ocp'] }] },
 * }, new Set());
 * assert.deepEqual(object, {
 *   apiVersion: 'config.openshift.io/v1', kind: 'ImageDigestMirrorSet', metadata: { name: 'mirrors' },
 *   spec: { imageDigestMirrors: [{ source: 'quay.io/ocp', mirrors: ['m.example.com/ocp'] }] },
 * });
 * ```
 */
export function convertPolicy(policy: KubeObject, taken: ReadonlySet<string>): ConvertedPolicy {
  const { entries, problems } = readMirrorEntries([policy]);
  const { name, labels, annotations } = policy.metadata;
  const kept = Object.entries(annotations ?? {}).filter(([key]) => !OF_THE_OBJECT.includes(key));
  return {
    object: {
      apiVersion: 'config.openshift.io/v1',
      kind: 'ImageDigestMirrorSet',
      metadata: {
        name: taken.has(name) ? freeName(`${name}-icsp`, taken) : name,
        ...(labels === undefined ? {} : { labels }),
        ...(kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) }),
      },
      spec: {
        imageDigestMirrors: entries.map(({ source, mirrors }) => ({
          source,
          mirrors: once(source, mirrors),
        })),
      },
    },
    problems: [
      ...problems.map(({ message }) => message),
      ...entries
        .filter(({ mirrors }) => isRepeated(mirrors))
        .map(
          ({ origin: { kind, path } }) =>
            `${kind}/${name} ${path} lists a mirror twice, which the newer kind does not admit: it is written once`,
        ),
    ],
  };
}

function once(source: string, mirrors: readonly string[]): readonly string[] {
  return isRepeated(mirrors) ? mergeOrders(source, [mirrors]).order : mirrors;
}

function isRepeated(mirrors: readonly string[]): boolean {
  return new Set(mirrors).size !== mirrors.length;
}

function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name;
  for (let number = 2; taken.has(free); number += 1) free = `${name}-${number}`;
  return free;
}
