/**
 * Whether the owner of a source lets a profile bring it to a namespace: by a PullSecretGrant beside it, or by the annotation of
 * the Secret itself. A grant that was withdrawn takes the copy away, and one that was lost does not.
 */

import { createHash } from 'node:crypto';
import { type LabelRequirement, type Labels, selects } from '../../core/kubernetes/label-selector.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import type { Reader } from '../../engine/contract.ts';
import {
  GRANT_ANNOTATION,
  GRANT_API_VERSION,
  GRANT_KIND,
  type Grant,
  grants,
  grantsTo,
  isGrantedTo,
  type PullSecretGrant,
  readGrant,
  readPullSecretGrant,
} from '../kinds/grant.ts';
import type { ProfileSource } from '../kinds/profile.ts';
import { namespaceRef, secretRef, sourceName } from '../names.ts';
import type { InjectionOptions } from '../options.ts';
import { isTerminating, namespaceLabels } from './view.ts';

// What a copy says its sources were granted by. It is written on the copy because a grant that was withdrawn takes the copy away, and
// one that was lost with what held it, or that the labels of the namespace no longer meet, does not.

/**
 * On a copy, separated by `, `: `<namespace>/<name> grant/<grant>@<uid of its namespace>` or
 * `<namespace>/<name> annotation/<uid of the source>`, and behind either `#<selector>` where a selector gave it and not a name.
 */
export const GRANTED_BY_ANNOTATION = 'pullwright.dev/granted-by';

/** What a copy says its sources were granted by: of each source, the text that {@link readGiver} reads. */
export type GrantRecord = ReadonlyMap<string, string>;

/** Who gave one source to a copy. */
export interface Giver {
  readonly kind: 'grant' | 'annotation' | 'unknown';
  /** Of the grant. */
  readonly name: string;
  /** Of the namespace of the grant, or of the annotated Secret; undefined when it was not known. */
  readonly uid: string | undefined;
  /** {@link selectorMark}; undefined when a name gave it. */
  readonly selector: string | undefined;
}

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

/** One element of a record. */
export function giverText({ kind, name, uid, selector }: Giver): string {
  const behind = selector === undefined ? '' : `#${selector}`;
  return kind === 'annotation'
    ? `annotation/${uid ?? ''}${behind}`
    : `grant/${name}${uid === undefined ? '' : `@${uid}`}${behind}`;
}

/** Reads one element of a record. Total: what nobody wrote so is `unknown`. */
export function readGiver(text: string): Giver {
  const [by = '', selector] = text.split('#');
  if (by.startsWith('annotation/'))
    return { kind: 'annotation', name: '', uid: by.slice('annotation/'.length), selector };
  if (!by.startsWith('grant/')) return { kind: 'unknown', name: '', uid: undefined, selector: undefined };
  const [name = '', uid] = by.slice('grant/'.length).split('@');
  return { kind: 'grant', name, uid, selector };
}

const marks = new WeakMap<readonly LabelRequirement[], string>();

/** A short text that is another one when the selector is. */
export function selectorMark(requirements: readonly LabelRequirement[]): string {
  const known = marks.get(requirements);
  if (known !== undefined) return known;
  const mark = createHash('sha256').update(JSON.stringify(requirements)).digest('hex').slice(0, 8);
  marks.set(requirements, mark);
  return mark;
}

/** Who asks. */
export interface ConsentRequest {
  readonly world: Reader;
  readonly options: InjectionOptions;
  readonly namespace: KubeObject;
  readonly profile: string;
}

/**
 * `granted`: by whom. `revoked`: it was granted to this copy, and its owner took it back. `lost`: it was granted by an annotation,
 * and the Secret was created again without one, or by a grant that went with its namespace or lost a part. `denied`: nobody granted it, or the namespace
 * no longer has the label that it was granted to.
 */
export type Consent =
  | { readonly is: 'granted'; readonly by: string }
  | { readonly is: 'lost'; readonly how: 'with-secret' | 'with-namespace' | 'in-part' }
  | { readonly is: 'revoked' | 'denied' };

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
  const giver = readGiver(held);
  return giver.kind === 'grant' ? grantLeft(request, source, giver) : annotationLeft(request, object, giver);
}

/** What became of a grant that no longer gives. One that went with its namespace was not withdrawn by anybody. */
function grantLeft(request: ConsentRequest, source: ProfileSource, giver: Giver): Consent {
  const { world: reader, options, profile } = request;
  const grant = grantsIn(reader, options.trustedLabelKeys)
    .get(sourceName(source))
    ?.find(({ name }) => name === giver.name);
  if (grant !== undefined)
    return isGrantedTo(grant, { secret: source.name, profile }) && stillSays(grant.to, giver)
      ? DENIED
      : REVOKED;
  const ref = {
    role: 'hosted',
    apiVersion: GRANT_API_VERSION,
    kind: GRANT_KIND,
    namespace: source.namespace,
  } as const;
  const object = reader.get({ ...ref, name: giver.name });
  if (object !== undefined && !readPullSecretGrant(object, options.trustedLabelKeys).isWhole)
    return { is: 'lost', how: 'in-part' };
  return wentWithNamespace(reader, source, giver) ? { is: 'lost', how: 'with-namespace' } : REVOKED;
}

/** What a Secret says in a namespace that ends is not said about its end: it may outlive the grant by a moment. */
function wentWithNamespace(reader: Reader, source: ProfileSource, { uid }: Giver): boolean {
  if (uid === undefined) return false;
  const home = reader.get(namespaceRef(source.namespace));
  if (home === undefined || isTerminating(home)) return true;
  const { annotations } = reader.get(secretRef(source.namespace, source.name))?.metadata ?? {};
  return home.metadata.uid !== uid && annotations?.[GRANT_ANNOTATION] === undefined;
}

const DENIED: Consent = { is: 'denied' };
const REVOKED: Consent = { is: 'revoked' };

/** What became of an annotation that no longer gives. */
function annotationLeft({ options }: ConsentRequest, object: KubeObject | undefined, giver: Giver): Consent {
  if (object?.metadata.annotations?.[GRANT_ANNOTATION] !== undefined)
    return stillSays(annotatedGrant(object, options.trustedLabelKeys), giver) ? DENIED : REVOKED;
  // Without the object nobody can have said anything; with another one in its place the annotation went with the first.
  const isSame = object !== undefined && giver.uid === (object.metadata.uid ?? '');
  return isSame ? REVOKED : { is: 'lost', how: 'with-secret' };
}

/**
 * Whether the owner says what it said: the namespace lost the label, or the operator no longer trusts it. That takes the copy away as any
 * change of labels does, and is no withdrawal.
 */
function stillSays({ selectors, mistrusted }: Grant, { selector }: Giver): boolean {
  return [...selectors, ...mistrusted].some((one) => selectorMark(one) === selector);
}

function grantFor(request: ConsentRequest, source: ProfileSource): string | undefined {
  const { world: reader, options, namespace, profile } = request;
  const { name } = namespace.metadata;
  const labels = namespaceLabels(namespace);
  const asked = { secret: source.name, profile, namespace: name, labels };
  const found = grantsIn(reader, options.trustedLabelKeys).get(sourceName(source));
  const grant = found?.find((one) => grantsTo(one, asked));
  if (grant === undefined) return undefined;
  const uid = reader.get(namespaceRef(source.namespace))?.metadata.uid;
  return giverText({ kind: 'grant', name: grant.name, uid, selector: markOf(grant.to, name, labels) });
}

/** Of the selector that gives, unless a name does. */
function markOf(grant: Grant, namespace: string, labels: Labels): string | undefined {
  if (grants({ ...grant, selectors: [] }, namespace, labels)) return undefined;
  const selector = grant.selectors.find((requirements) => selects(requirements, labels));
  return selector === undefined ? undefined : selectorMark(selector);
}

function annotationGrant(
  { options, namespace }: ConsentRequest,
  object: KubeObject | undefined,
): string | undefined {
  if (object === undefined) return undefined;
  const { name } = namespace.metadata;
  const labels = namespaceLabels(namespace);
  const grant = annotatedGrant(object, options.trustedLabelKeys);
  if (!grants(grant, name, labels)) return undefined;
  const { uid = '' } = object.metadata;
  return giverText({ kind: 'annotation', name: '', uid, selector: markOf(grant, name, labels) });
}

type GrantIndex = ReadonlyMap<string, readonly PullSecretGrant[]>;

const indexes = new WeakMap<
  readonly KubeObject[],
  { readonly keys: readonly string[]; readonly index: GrantIndex }
>();

/** The grants of each source, `namespace/name`. Made once until a grant changes. */
export function grantsIn(reader: Reader, trustedKeys: readonly string[]): GrantIndex {
  const objects = reader.list({ role: 'hosted', apiVersion: GRANT_API_VERSION, kind: GRANT_KIND });
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
