/** Judges the manifests that `pullwright validate` is given, together: some problems show only when two of them meet. */
import type { Manifest } from '../../controller/manifests.ts';
import { matchImageFault, matchImageHint } from '../../rules/auth-lookup/match-images.ts';
import { nameFault } from '../../rules/credential-provider/name.ts';
import { mergePullSecrets } from '../../rules/docker-config/merge.ts';
import { secretDataText } from '../../rules/docker-config/secret-text.ts';
import { validateSecret } from '../../rules/docker-config/validate.ts';
import { PROFILE_KIND, type PullSecretProfile, readProfile } from '../../rules/injection/profile.ts';
import { DEFAULT_TRUSTED_KEYS, GRANT_ANNOTATION, readGrant } from '../../rules/injection/profile-grant.ts';
import { GRANT_KIND, readPullSecretGrant } from '../../rules/injection/pull-secret-grant.ts';
import { readSidecarSet } from '../../rules/injection/sidecar-set.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import {
  NAMESPACE_NAME_LABEL,
  readSelector,
  selectorKeys,
  selects,
} from '../../rules/kubernetes/label-selector.ts';
import {
  describeObject,
  isSecret,
  type KubeObject,
  type SecretObject,
} from '../../rules/kubernetes/object.ts';
import { type Shape, shapeProblems } from '../../rules/kubernetes/shape.ts';
import { counted } from '../../rules/text/counted.ts';
import { judgeMirrorSets, NODE_MIRROR_KINDS } from './mirror-sets.ts';
import { NO_CONTAINERS, sidecarSetProblems } from './sidecar-sets.ts';

/** A problem, and the file where it stands. */
export interface FileProblem {
  readonly severity: 'error' | 'warning';
  /** CamelCase, stable. */
  readonly code: string;
  readonly file: string;
  /** Of the object, or of the text when the whole file is one document. */
  readonly line?: number;
  readonly column?: number;
  /** `Secret/web/pull`; empty for a file that is no manifest. */
  readonly subject: string;
  readonly path: string;
  readonly message: string;
}

/** Of Kruise, in whichever version. */
export const SIDECAR_SET = 'SidecarSet';
const PROVIDER_CONFIG = 'CRIOCredentialProviderConfig';

/** Kinds that can be judged. */
export const VALIDATED_KINDS: ReadonlySet<string> = new Set([
  'Secret',
  PROFILE_KIND,
  GRANT_KIND,
  SIDECAR_SET,
  PROVIDER_CONFIG,
  ...NODE_MIRROR_KINDS,
]);

type Judged = Omit<FileProblem, 'file' | 'line' | 'subject'>;

/** All problems, in the order of the manifests. */
export function judgeManifests(manifests: readonly Manifest[]): readonly FileProblem[] {
  const isBringing = manifests.some(
    ({ object }) => object.kind === SIDECAR_SET && readSidecarSet(object).containers > 0,
  );
  const each = manifests.flatMap((manifest) =>
    judgeObject(manifest.object)
      // One set may bring the container beside which the Secrets of another are injected.
      .filter(({ code }) => code !== NO_CONTAINERS || !isBringing)
      .map((problem) => located(manifest, problem)),
  );
  return [...each, ...mirrorProblems(manifests), ...mergeProblems(manifests)];
}

function judgeObject(object: KubeObject): readonly Judged[] {
  switch (object.kind) {
    case 'Secret':
      if (object.apiVersion !== 'v1') return foreignSecret(object);
      return [...secretProblems(object as SecretObject), ...annotationProblems(object)];
    case PROFILE_KIND:
      return profileProblems(object);
    case GRANT_KIND:
      return grantProblems(object);
    case SIDECAR_SET:
      return sidecarSetProblems(object);
    case PROVIDER_CONFIG:
      return providerProblems(object);
    default:
      return [];
  }
}

function secretProblems(object: SecretObject): readonly Judged[] {
  return validateSecret(object, isAdditional(object), new Date()).map(({ position, path, ...rest }) => ({
    ...rest,
    path:
      position === undefined
        ? path
        : `${path} (line ${position.line}, column ${position.column} of the value)`,
  }));
}

/** A kind of the same name in a group of its own is none of ours; the core group has no other version. */
function foreignSecret({ apiVersion }: KubeObject): readonly Judged[] {
  if (apiVersion.includes('/')) return [];
  const message = 'is no version of a Secret, expected "v1"';
  return [{ severity: 'error', code: 'WrongVersion', path: 'apiVersion', message }];
}

/** The additional pull secret is read whatever its type is. */
function isAdditional({ metadata }: KubeObject): boolean {
  return metadata.namespace === NAMES.namespace && metadata.name === NAMES.additional;
}

function profileProblems(object: KubeObject): readonly Judged[] {
  const read = readProfile(object);
  if (read.ok) return [];
  return read.problems.map((problem) => {
    const [path = '', ...rest] = problem.split(': ');
    return { severity: 'error', code: 'ProfileInvalid', path, message: rest.join(': ') };
  });
}

/** Which label keys are trusted is the cluster's affair, so that a selector over others is a warning here. */
function grantProblems(object: KubeObject): readonly Judged[] {
  const selector = (object.spec as { namespaceSelector?: unknown } | undefined)?.namespaceSelector;
  const read = selector === undefined || selector === null ? undefined : readSelector(selector);
  const keys = read?.ok === true ? selectorKeys(read.requirements) : [];
  const grant = readPullSecretGrant(object, [...DEFAULT_TRUSTED_KEYS, ...keys]);
  const strange = keys.filter((key) => !DEFAULT_TRUSTED_KEYS.includes(key));
  return [
    ...grant.problems.map((problem): Judged => {
      const [path = '', ...rest] = problem.split(': ');
      return { severity: 'error', code: 'GrantInvalid', path, message: rest.join(': ') };
    }),
    ...strange.map((key): Judged => {
      const message = `uses the label "${key}", which counts only where trustedLabelKeys names it and a policy guards it`;
      return { severity: 'warning', code: 'LabelMustBeTrusted', path: 'spec.namespaceSelector', message };
    }),
    ...patternProblems(grant.to.patterns, 'spec.namespaces'),
  ];
}

/** Whoever may choose the name of a namespace can meet a pattern. */
function patternProblems(patterns: readonly string[], path: string): readonly Judged[] {
  return patterns
    .filter((pattern) => /[*?]/.test(pattern))
    .map((pattern) => ({
      severity: 'warning',
      code: 'PatternIsNoConsent',
      path,
      message: `"${pattern}" is no consent where users choose the names of namespaces: grant by a label that a policy guards, or by names`,
    }));
}

function annotationProblems({ metadata }: KubeObject): readonly Judged[] {
  const text = metadata.annotations?.[GRANT_ANNOTATION];
  if (typeof text !== 'string') return [];
  return patternProblems(readGrant(text).patterns, `metadata.annotations["${GRANT_ANNOTATION}"]`);
}

/**
 * What the selectors of profiles come to among the namespaces at hand. Everything is seldom a typing error and always worth knowing; so is
 * nothing.
 */
export function selectionNotes(
  manifests: readonly Manifest[],
  namespaces: readonly KubeObject[],
): readonly string[] {
  return manifests.flatMap(({ object }) => {
    const read = object.kind === PROFILE_KIND ? readProfile(object) : undefined;
    return read?.ok === true ? selectionNote(read.profile, namespaces) : [];
  });
}

function selectionNote(
  { name, namespaceSelector, selector, injects }: PullSecretProfile,
  namespaces: readonly KubeObject[],
): readonly string[] {
  const pods = injects && selector.length === 0 ? ', all pods of them' : '';
  const subject = `note: ${PROFILE_KIND}/${name} selects`;
  if (namespaceSelector.length === 0)
    return [
      `${subject} every namespace: ${namespaces.length} among these files, and each that will be made${pods}`,
    ];
  if (namespaces.length === 0) return [];
  const selected = namespaces.filter(({ metadata }) =>
    selects(namespaceSelector, { ...metadata.labels, [NAMESPACE_NAME_LABEL]: metadata.name }),
  ).length;
  return [
    `${subject} ${selected} of ${counted(namespaces.length, 'namespace')} among these files${selected > 0 ? pods : ''}`,
  ];
}

const PROVIDER_SHAPE: Shape = { fields: { matchImages: { list: 'string' } } };

function providerProblems(object: KubeObject): readonly Judged[] {
  const fault = nameFault(object);
  return [
    ...shapeProblems(object.spec, PROVIDER_SHAPE, 'spec').map((problem): Judged => {
      const [path = '', ...rest] = problem.split(': ');
      return { severity: 'error', code: 'RefusedByDefinition', path, message: rest.join(': ') };
    }),
    ...(fault === undefined ? [] : [{ severity: 'error', code: 'RefusedByDefinition', ...fault } as const]),
    ...imageProblems((object.spec as { matchImages?: unknown } | undefined)?.matchImages),
  ];
}

function imageProblems(images: unknown): readonly Judged[] {
  const list: readonly unknown[] = Array.isArray(images) ? images : [];
  return list.flatMap((image, index): readonly Judged[] => {
    const path = `spec.matchImages[${index}]`;
    if (typeof image !== 'string') return [];
    const fault = matchImageFault(image);
    if (fault !== undefined) return [{ severity: 'error', code: 'KubeletRefuses', path, message: fault }];
    const hint = matchImageHint(image);
    return hint === undefined
      ? []
      : [{ severity: 'warning', code: 'NotMeant', path, message: `"${image}": ${hint}` }];
  });
}

function located({ object, file, line }: Manifest, problem: Judged): FileProblem {
  const { name, namespace } = object.metadata;
  return { ...problem, file, line, subject: describeObject({ kind: object.kind, namespace, name }) };
}

/** Mirror sets are judged together, as the nodes of each cluster read them. */
function mirrorProblems(manifests: readonly Manifest[]): readonly FileProblem[] {
  return judgeMirrorSets(manifests).map(({ manifest, ...problem }) => located(manifest, problem));
}

/** What the merge would leave out, when both pull secrets of a cluster are at hand. */
function mergeProblems(manifests: readonly Manifest[]): readonly FileProblem[] {
  return secretsOf(manifests, NAMES.namespace, NAMES.additional).flatMap((additional) => {
    const near = (namespace: string, name: string): Manifest | undefined =>
      nearest(additional, secretsOf(manifests, namespace, name));
    const original = near(NAMES.namespace, NAMES.original) ?? near(NAMES.configNamespace, NAMES.platform);
    return original === undefined ? [] : mergeProblemsOf(additional, original);
  });
}

function secretsOf(manifests: readonly Manifest[], namespace: string, name: string): readonly Manifest[] {
  return manifests.filter(
    ({ object }) =>
      isSecret(object) && object.metadata.namespace === namespace && object.metadata.name === name,
  );
}

/** In a repository of many clusters that of the same cluster: the one with which it shares most of its path. */
function nearest(to: Manifest, among: readonly Manifest[]): Manifest | undefined {
  const parts = to.file.split('/');
  const shared = ({ file }: Manifest): number => {
    const others = file.split('/');
    const end = parts.findIndex((part, index) => part !== others[index]);
    return end < 0 ? parts.length : end;
  };
  return among.toSorted((a, b) => shared(b) - shared(a))[0];
}

function mergeProblemsOf(additional: Manifest, original: Manifest): readonly FileProblem[] {
  const ofPlatform = (original.object as SecretObject).data?.[NAMES.dataKey];
  const ofTenant = (additional.object as SecretObject).data?.[NAMES.dataKey];
  if (ofPlatform === undefined || ofTenant === undefined) return [];
  const merged = mergePullSecrets({
    original: secretDataText(ofPlatform),
    additional: secretDataText(ofTenant),
  });
  if (!merged.ok) return [];
  return merged.verdicts
    .filter(({ verdict }) => verdict === 'Shadowed')
    .map(({ reason, subject, message }) => {
      const path = `data["${NAMES.dataKey}"]: auths[${JSON.stringify(subject)}]`;
      return located(additional, { severity: 'warning', code: reason, path, message });
    });
}
