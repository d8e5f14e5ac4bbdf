/** Doubles of the catalog tests: results of look-ups, and accessors for catalogs after a run. */

import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { LookupResult } from '../../runtime/engine/contract.ts';
import { meta, refOf } from '../support/meta.ts';
import { deployment, NAMESPACE, type RunInput, type RunOutput } from './run-once.ts';

export const CATALOG_NAMES: readonly string[] = [
  'certified-operators',
  'community-operators',
  'redhat-operators',
];
export const DIGEST: string = `sha256:${'c'.repeat(64)}`;
const THERE: LookupResult = { ok: true, value: DIGEST };
export const CATALOGS: RunInput = { options: { catalogs: true } };

/** An object of the kind, so that the cluster serves it. */
export const OTHER_STREAM: KubeObject = meta('image.openshift.io/v1 ImageStream', {
  name: 'other',
  namespace: 'elsewhere',
  uid: 'u-other',
});

/** The answer of a registry for each of the three indexes. */
export function facts(
  image: (index: string) => string,
  fact: LookupResult = THERE,
): Readonly<Record<string, LookupResult>> {
  return Object.fromEntries(
    ['certified-operator', 'community-operator', 'redhat-operator'].map((index) => [
      image(`${index}-index`),
      fact,
    ]),
  );
}

/** The ImageStream that we make. */
export function stream(out: RunOutput): KubeObject | undefined {
  return out.management.get(refOf('image.openshift.io/v1 ImageStream', 'catalogs', NAMESPACE));
}

/** Its tags with their images. */
export function images(out: RunOutput): readonly string[] {
  const spec = stream(out)?.spec as { tags: readonly { name: string; from: { name: string } }[] } | undefined;
  return (spec?.tags ?? []).map((tag) => `${tag.name} ${tag.from.name}`);
}

/** Look-ups with the newest version of every catalog at its source. */
export const KNOWN: Readonly<Record<string, LookupResult>> = facts(
  (index) => `registry.redhat.io/redhat/${index}:v4.22`,
);
/** A valid image for the annotations. */
export const GOOD: string = `mirror.example.com/index@${DIGEST}`;

/** Annotations with the same image for each of `names`. */
export function annotated(
  value: string,
  names: readonly string[] = CATALOG_NAMES,
): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [`hypershift.openshift.io/${name}-catalog-image`, value]));
}

export const GOOD_CATALOGS: Readonly<Record<string, string>> = annotated(GOOD);
export const DEPLOYMENTS: readonly KubeObject[] = CATALOG_NAMES.map((name) => deployment(`${name}-catalog`));
