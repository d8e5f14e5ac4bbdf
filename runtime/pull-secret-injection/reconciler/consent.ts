/**
 * Whether the owner of a source lets a profile bring it to a namespace: by a PullSecretGrant beside it, or by the annotation of
 * the Secret itself. What a copy was granted by is written on it, because a grant that was withdrawn takes the copy away, and
 * one that was lost with its Secret does not.
 */
import type { World } from '../../controller/contract.ts';
import type { ProfileSource } from '../../rules/injection/profile.ts';
import { GRANT_ANNOTATION, type Grant, grants, readGrant } from '../../rules/injection/profile-grant.ts';
import {
  GRANT_API_VERSION,
  GRANT_KIND,
  grantsTo,
  type PullSecretGrant,
  readPullSecretGrant,
} from '../../rules/injection/pull-secret-grant.ts';
import { NAMESPACE_NAME_LABEL } from '../../rules/kubernetes/label-selector.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import type { InjectionOptions } from '../options.ts';
import { secretRef, sourceName } from './names.ts';

/** On a copy: `<namespace>/<name> grant/<grant>` or `<namespace>/<name> annotation/<uid of the source>`, separated by `, `. */
export const GRANTED_BY_ANNOTATION = 'pullwright.dev/granted-by';

/** Who asks. */
export interface ConsentRequest {
  readonly world: World;
  readonly options: InjectionOptions;
  readonly namespace: KubeObject;
  readonly profile: string;
}

/**
 * `granted`: by whom. `revoked`: it was granted to this copy, and its owner took it back. `lost`: it was granted by an annotation,
 * and the Secret was created again without one. `denied`: nobody granted it.
 */
export type Consent =
  | { readonly is: 'granted'; readonly by: string }
  | { readonly is: 'revoked' | 'lost' | 'denied' };

/** What a copy says its sources were granted by. */
export type GrantRecord = ReadonlyMap<string, string>;

/** Reads the record of a copy. */
export function grantRecordOf(copy: SecretObject | undefined): GrantRecord {
  const text = copy?.metadata.annotations?.[GRANTED_BY_ANNOTATION];
  const entries = typeof text === 'string' && text !== '' ? text.split(', ') : [];
  return new Map(
    entries.map((entry): [string, string] => {
      const [source = '', by = ''] = entry.split(' ');
      return [source, by];
    }),
  );
}

/** The annotation that {@link grantRecordOf} reads. */
export function grantRecordText(record: GrantRecord): string {
  return [...record].map(([source, by]) => `${source} ${by}`).join(', ');
}

/**
 * Consent to one source.
 *
 * @param held what the copy that stands there was granted by: an empty text when it does not say, undefined when it does not hold
 * the source
 */
export function consentTo(request: ConsentRequest, source: ProfileSource, held: string | undefined): Consent {
  const object = request.world.get(secretRef(source.namespace, source.name));
  const by = grantFor(request, source) ?? annotationGrant(request, object);
  if (by !== undefined) return { is: 'granted', by };
  if (held === undefined) return { is: 'denied' };
  if (held.startsWith('grant/')) return { is: 'revoked' };
  if (object?.metadata.annotations?.[GRANT_ANNOTATION] !== undefined) return { is: 'revoked' };
  // Without the object nobody can have said anything; with another one in its place the annotation went with the first.
  return { is: object !== undefined && held === annotationOf(object) ? 'revoked' : 'lost' };
}

function annotationOf({ metadata }: KubeObject): string {
  return `annotation/${metadata.uid ?? ''}`;
}

function grantFor(request: ConsentRequest, source: ProfileSource): string | undefined {
  const { world, options, namespace, profile } = request;
  const labels = { ...namespace.metadata.labels, [NAMESPACE_NAME_LABEL]: namespace.metadata.name };
  const asked = { secret: source.name, profile, namespace: namespace.metadata.name, labels };
  const found = grantsIn(world, options.trustedLabelKeys).get(sourceName(source));
  const grant = found?.find((one) => grantsTo(one, asked));
  return grant === undefined ? undefined : `grant/${grant.name}`;
}

function annotationGrant(
  { options, namespace }: ConsentRequest,
  object: KubeObject | undefined,
): string | undefined {
  if (object === undefined) return undefined;
  const { name, labels = {} } = namespace.metadata;
  return grants(annotatedGrant(object, options.trustedLabelKeys), name, labels)
    ? annotationOf(object)
    : undefined;
}

type GrantIndex = ReadonlyMap<string, readonly PullSecretGrant[]>;

const indexes = new WeakMap<
  readonly KubeObject[],
  { readonly keys: readonly string[]; readonly index: GrantIndex }
>();

/** The grants of each source, `namespace/name`. Made once until a grant changes. */
export function grantsIn(world: World, trustedKeys: readonly string[]): GrantIndex {
  const objects = world.list({ role: 'hosted', apiVersion: GRANT_API_VERSION, kind: GRANT_KIND });
  const known = indexes.get(objects);
  if (known !== undefined && known.keys === trustedKeys) return known.index;
  const index = new Map<string, PullSecretGrant[]>();
  for (const object of objects) {
    if (object.metadata.deletionTimestamp !== undefined) continue;
    const grant = readPullSecretGrant(object, trustedKeys);
    for (const secret of grant.secrets) {
      const id = sourceName({ namespace: grant.namespace, name: secret });
      index.set(id, [...(index.get(id) ?? []), grant]);
    }
  }
  indexes.set(objects, { keys: trustedKeys, index });
  return index;
}

const annotated = new WeakMap<KubeObject, { readonly keys: readonly string[]; readonly grant: Grant }>();

/** What the annotation of a source grants, read once per object. */
export function annotatedGrant(object: KubeObject, trustedKeys: readonly string[]): Grant {
  const known = annotated.get(object);
  if (known !== undefined && known.keys === trustedKeys) return known.grant;
  const text = object.metadata.annotations?.[GRANT_ANNOTATION];
  const grant = readGrant(typeof text === 'string' ? text : '', trustedKeys);
  annotated.set(object, { keys: trustedKeys, grant });
  return grant;
}
