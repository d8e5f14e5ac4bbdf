/** Validates the manifests given to `pullwright validate` together: some problems show only in combination. */
import { isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { matchImageFault, matchImageHint } from '../../core/docker-config/match-images.ts';
import { mergePullSecrets } from '../../core/docker-config/merge.ts';
import { secretDataText } from '../../core/docker-config/pull-secret.ts';
import { HOSTED_CLUSTER, GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import { labelSelectorSchema } from '../../core/kubernetes/kind.ts';
import {
  NAMESPACE_NAME_LABEL,
  readSelector,
  selectorKeys,
  selects,
} from '../../core/kubernetes/label-selector.ts';
import {
  describeObject,
  isNamespaceName,
  isObjectName,
  isSecret,
  type KubeObject,
  type SecretObject,
} from '../../core/kubernetes/object.ts';
import { readValue, shapeProblems } from '../../core/kubernetes/read-spec.ts';
import { recordOf, scalarText } from '../../core/record.ts';
import { counted } from '../../core/text.ts';
import { matchImagesSchema, nameFault } from '../../credential-provider/kind.ts';
import type { Manifest } from '../../engine/offline/manifests.ts';
import { KUBERNETES_SCHEMA } from '../../kube/yaml.ts';
import {
  DEFAULT_TRUSTED_KEYS,
  GRANT_KIND,
  readPullSecretGrant,
} from '../../pull-secret-injection/kinds/grant.ts';
import {
  PROFILE_KIND,
  type PullSecretProfile,
  readProfile,
} from '../../pull-secret-injection/kinds/profile.ts';
import {
  readContent,
  readSidecarSet,
  SIDECAR_SET_API_VERSIONS,
  SOURCE_NAMESPACE_ANNOTATION,
} from '../../pull-secret-injection/kinds/sidecar-set.ts';
import { lintMirrors } from '../../registry-overrides/lint.ts';
import {
  type ClusterObjects,
  clustersIn,
  NODE_KINDS,
} from '../../registry-overrides/machine-config/input.ts';
import { isOf } from '../../registry-overrides/mirror-sets/collect.ts';
import { hostedPath } from '../model/mirrors.ts';
import type { Finding } from '../model/types.ts';
import { type ValidationProblem, validateSecret } from './docker-config.ts';
import { type Check, judge, type Told } from './findings.ts';

// Validates mirror sets and image configurations as the API server, the operator and the runtime read them: cluster by cluster.

/** Kinds that decide where nodes pull from. */
export const NODE_MIRROR_KINDS: readonly string[] = [...NODE_KINDS, HOSTED_CLUSTER].map(({ kind }) => kind);

/** Whether an object is validated here: other groups have kinds of the same names. */
export function isNodeMirrorKind(object: KubeObject): boolean {
  return [...NODE_KINDS, HOSTED_CLUSTER].some((kind) => isOf(object, kind));
}

/** Mirror sets are validated together, as the nodes of each cluster read them; shared findings are reported once. */
function mirrorsTold(manifests: readonly Manifest[]): readonly Told[] {
  const sets = manifests.filter(({ object }) => isNodeMirrorKind(object));
  const byObject = new Map(sets.map((manifest) => [manifest.object, manifest]));
  const told = (sets.length === 0 ? [] : clustersIn(sets)).flatMap((cluster) => toldIn(cluster, byObject));
  return [...new Map(told.map((one) => [JSON.stringify(one), one])).values()];
}

function toldIn(cluster: ClusterObjects, byObject: ReadonlyMap<KubeObject, Manifest>): readonly Told[] {
  const hosted = cluster.hostedCluster;
  const byName = new Map(
    cluster.objects.map((object) => [`${object.kind}/${object.metadata.name}`, hosted ?? object]),
  );
  return lintMirrors(cluster.objects).flatMap(({ severity, code, origin, message }): readonly Told[] => {
    const object = byName.get(`${origin.kind}/${origin.name}`);
    const manifest = object === undefined ? undefined : byObject.get(object);
    if (manifest === undefined) return [];
    const own = `${origin.kind}/${origin.name} ${origin.path} `;
    const text = message.startsWith(own) ? message.slice(own.length) : message;
    const path = hosted === undefined ? origin.path : hostedPath(origin.path);
    return [located(manifest, { severity, code, path, message: text })];
  });
}

// What a SidecarSet says that keeps its pull secrets from pods, before it is applied.

/** Nothing of it is injected, unless another set adds a container. */
const NO_CONTAINERS = 'NoContainers';

type Raw = Readonly<Record<string, unknown>>;

const SELECTORS = ['selector', 'namespaceSelector', 'updateStrategy.selector'];
const ANNOTATION = `metadata.annotations["${SOURCE_NAMESPACE_ANNOTATION}"]`;

/**
 * Errors: what an API server with Kruise's definitions and webhook rejects, or what cannot be applied. Warnings: accepted, without effect on pods.
 * A set without pull secrets and source is ignored.
 *
 * Source of the rule: Kruise's definition and webhook, and the conditions of the reconciler.
 */
export function sidecarSetProblems(object: KubeObject): readonly ValidationProblem[] {
  const spec = recordOf(object.spec);
  const from = object.metadata.annotations?.[SOURCE_NAMESPACE_ANNOTATION];
  const listed = spec['imagePullSecrets'] ?? [];
  if (from === undefined && Array.isArray(listed) && listed.length === 0) return [];
  return [
    ...versionProblems(object),
    ...SELECTORS.flatMap((path) => brokenSelector(spec, path)),
    ...selectionWarnings(spec),
    ...sidecarSetSecretProblems(listed),
    ...sourceProblems(from, listed),
    ...containerWarnings(spec, listed),
  ];
}

function versionProblems({ apiVersion }: KubeObject): readonly ValidationProblem[] {
  if (SIDECAR_SET_API_VERSIONS.includes(apiVersion)) return [];
  const message = `is not a version of SidecarSet, expected ${SIDECAR_SET_API_VERSIONS.map((one) => `"${one}"`).join(' or ')}`;
  return [{ severity: 'error', code: 'WrongVersion', path: 'apiVersion', message }];
}

const SELECTOR = labelSelectorSchema();

/** A field that is spelled wrong is dropped by the API server, and the selector then selects everything. */
function brokenSelector(spec: Raw, path: string): readonly ValidationProblem[] {
  const value = path.split('.').reduce<unknown>((at, key) => recordOf(at)[key], spec);
  const shape = shapeProblems(value, SELECTOR, `spec.${path}`).map((problem) => {
    const [at = '', ...rest] = problem.split(': ');
    return { path: at, message: rest.join(': ') };
  });
  const read = shape.length === 0 ? readSelector(value ?? {}) : undefined;
  const found = read?.ok === false ? [{ path: `spec.${path}`, message: read.problem }] : shape;
  return found.map((one) => ({ severity: 'error', code: 'SelectorInvalid', ...one }));
}

function selectionWarnings({ selector, namespace, namespaceSelector }: Raw): readonly ValidationProblem[] {
  const problems: ValidationProblem[] = [];
  if (isEmpty(selector))
    problems.push({
      severity: 'warning',
      code: 'SelectorEmpty',
      path: 'spec.selector',
      message: 'selects no pod: in a SidecarSet an absent or empty selector means none, not all',
    });
  if (typeof namespace === 'string' && namespace !== '' && namespaceSelector !== undefined)
    problems.push({
      severity: 'warning',
      code: 'NamespaceWins',
      path: 'spec.namespaceSelector',
      message: `counts for nothing beside spec.namespace; leave spec.namespace out and select by ${NAMESPACE_NAME_LABEL}`,
    });
  return problems;
}

function isEmpty(selector: unknown): boolean {
  const read = readSelector(selector ?? {});
  return (
    read.ok &&
    read.requirements.length === 0 &&
    shapeProblems(selector, SELECTOR, 'spec.selector').length === 0
  );
}

function sidecarSetSecretProblems(listed: unknown): readonly ValidationProblem[] {
  const path = 'spec.imagePullSecrets';
  const error = { severity: 'error', code: 'SecretNameInvalid' } as const;
  if (!Array.isArray(listed)) return [{ ...error, path, message: 'must be a list' }];
  return listed.flatMap((entry: unknown, at): readonly ValidationProblem[] => {
    const { name } = recordOf(entry);
    if (isObjectName(name)) return [];
    const what = typeof name === 'string' ? JSON.stringify(name.slice(0, 80)) : 'what is there';
    return [{ ...error, path: `${path}[${at}].name`, message: `${what} is not the name of a Secret` }];
  });
}

function sourceProblems(from: unknown, listed: unknown): readonly ValidationProblem[] {
  if (from === undefined) return [];
  const at = { path: ANNOTATION } as const;
  if (!isNamespaceName(from)) {
    const message = `${JSON.stringify(scalarText(from).slice(0, 80))} is not the name of a namespace`;
    return [{ severity: 'error', code: 'SourceNamespaceInvalid', ...at, message }];
  }
  if (!Array.isArray(listed) || listed.length > 0) return [];
  const message = 'has no effect: spec.imagePullSecrets lists no Secret';
  return [{ severity: 'warning', code: 'NoSecretListed', ...at, message }];
}

function containerWarnings(spec: Raw, listed: unknown): readonly ValidationProblem[] {
  if (readContent(spec).containers > 0 || !Array.isArray(listed) || listed.length === 0) return [];
  const message =
    'no container: pull secrets are injected only into pods that a SidecarSet brings a container to; add one, set withoutContainers in the fleet, or use a PullSecretProfile';
  return [{ severity: 'warning', code: NO_CONTAINERS, path: 'spec.containers', message }];
}

/** Of Kruise, in whichever version. */
export const SIDECAR_SET = 'SidecarSet';
const PROVIDER_CONFIG = 'CRIOCredentialProviderConfig';

/** Kinds that can be validated. */
export const VALIDATED_KINDS: ReadonlySet<string> = new Set([
  'Secret',
  PROFILE_KIND,
  GRANT_KIND,
  SIDECAR_SET,
  PROVIDER_CONFIG,
  ...NODE_MIRROR_KINDS,
]);

/** What is said of each object of a kind. */
function each(
  kind: string,
  judgeObject: (object: KubeObject, manifests: readonly Manifest[]) => readonly ValidationProblem[],
): Check<readonly Manifest[]> {
  return {
    id: kind,
    run: (manifests) =>
      manifests
        .filter(({ object }) => object.kind === kind)
        .flatMap((manifest) =>
          judgeObject(manifest.object, manifests).map((problem) => located(manifest, problem)),
        ),
  };
}

const FILE_CHECKS: readonly Check<readonly Manifest[]>[] = [
  each('Secret', (secret) =>
    secret.apiVersion === 'v1' ? secretProblems(secret as SecretObject) : foreignSecret(secret),
  ),
  each(PROFILE_KIND, profileProblems),
  each(GRANT_KIND, grantProblems),
  // One set may add the container beside which the Secrets of another are injected.
  each(SIDECAR_SET, (set, manifests) =>
    sidecarSetProblems(set).filter(({ code }) => code !== NO_CONTAINERS || !bringsContainer(manifests)),
  ),
  each(PROVIDER_CONFIG, providerProblems),
  { id: 'mirror-sets', run: mirrorsTold },
  { id: 'merge', run: mergeTold },
];

/** All findings of manifests, validated together. Total. */
export function judgeManifests(manifests: readonly Manifest[]): readonly Finding[] {
  return judge(FILE_CHECKS, manifests, { subject: '' });
}

function bringsContainer(manifests: readonly Manifest[]): boolean {
  return manifests.some(({ object }) => object.kind === SIDECAR_SET && readSidecarSet(object).containers > 0);
}

function secretProblems(object: SecretObject): readonly ValidationProblem[] {
  return validateSecret(object, isAdditional(object), new Date()).map(({ position, path, ...rest }) => ({
    ...rest,
    path:
      position === undefined
        ? path
        : `${path} (line ${position.line}, column ${position.column} of the value)`,
  }));
}

/** A kind of the same name in a group of its own is none of ours; the core group has no other version. */
function foreignSecret({ apiVersion }: KubeObject): readonly ValidationProblem[] {
  if (apiVersion.includes('/')) return [];
  const message = 'is not a version of Secret, expected "v1"';
  return [{ severity: 'error', code: 'WrongVersion', path: 'apiVersion', message }];
}

/** The additional pull secret is read whatever its type is. */
function isAdditional({ metadata }: KubeObject): boolean {
  return metadata.namespace === NAMES.namespace && metadata.name === NAMES.additional;
}

function profileProblems(object: KubeObject): readonly ValidationProblem[] {
  const read = readProfile(object);
  if (read.ok) return [];
  return read.problems.map((problem) => {
    const [path = '', ...rest] = problem.split(': ');
    return { severity: 'error', code: 'ProfileInvalid', path, message: rest.join(': ') };
  });
}

/** Which label keys are trusted is the cluster's affair, so that a selector over others is a warning here. */
function grantProblems(object: KubeObject): readonly ValidationProblem[] {
  const selector = (object.spec as { namespaceSelector?: unknown } | undefined)?.namespaceSelector;
  const read = selector === undefined || selector === null ? undefined : readSelector(selector);
  const keys = read?.ok === true ? selectorKeys(read.requirements) : [];
  const grant = readPullSecretGrant(object, [...DEFAULT_TRUSTED_KEYS, ...keys]);
  const strange = keys.filter((key) => !DEFAULT_TRUSTED_KEYS.includes(key));
  return [
    ...grant.problems.map((problem): ValidationProblem => {
      const [path = '', ...rest] = problem.split(': ');
      return { severity: 'error', code: 'GrantInvalid', path, message: rest.join(': ') };
    }),
    ...strange.map((key): ValidationProblem => {
      const message = `uses the label "${key}", which counts only where trustedLabelKeys names it and a policy guards it`;
      return { severity: 'warning', code: 'LabelMustBeTrusted', path: 'spec.namespaceSelector', message };
    }),
    ...patternProblems(grant.patterns, 'spec.namespaces'),
  ];
}

/** An account that may choose namespace names can match a pattern. */
function patternProblems(patterns: readonly string[], path: string): readonly ValidationProblem[] {
  return patterns
    .filter((pattern) => /[*?]/.test(pattern))
    .map((pattern) => ({
      severity: 'warning',
      code: 'PatternIsNoConsent',
      path,
      message: `"${pattern}" is not consent where users choose the names of namespaces: grant by a label that a policy guards, or by names`,
    }));
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

const PROVIDER = z.strictObject({ matchImages: matchImagesSchema.optional() });

function providerProblems(object: KubeObject): readonly ValidationProblem[] {
  const fault = nameFault(object);
  const images = imageProblems(recordOf(object.spec)['matchImages']);
  return [
    ...readValue(object.spec ?? {}, PROVIDER, 'spec').problems.flatMap((problem): ValidationProblem[] => {
      const [path = '', ...rest] = problem.split(': ');
      // What the kubelet refuses is in its own words.
      if (images.some((one) => one.severity === 'error' && one.path === path)) return [];
      return [{ severity: 'error', code: 'RefusedByDefinition', path, message: rest.join(': ') }];
    }),
    ...(fault === undefined ? [] : [{ severity: 'error', code: 'RefusedByDefinition', ...fault } as const]),
    ...images,
  ];
}

function imageProblems(images: unknown): readonly ValidationProblem[] {
  const list: readonly unknown[] = Array.isArray(images) ? images : [];
  return list.flatMap((image, index): readonly ValidationProblem[] => {
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

function located({ object, file, line }: Manifest, { code, ...problem }: ValidationProblem): Told {
  const { position: _position, ...told } = problem;
  const { name, namespace } = object.metadata;
  return {
    ...told,
    check: code,
    file,
    line,
    subject: describeObject({ kind: object.kind, namespace, name }),
  };
}

/** What the merge would leave out, when both pull secrets of a cluster are at hand. */
function mergeTold(manifests: readonly Manifest[]): readonly Told[] {
  return secretsOf(manifests, NAMES.namespace, NAMES.additional).flatMap((additional) => {
    const near = (namespace: string, name: string): Manifest | undefined =>
      nearest(additional, secretsOf(manifests, namespace, name));
    const original = near(NAMES.namespace, NAMES.original) ?? near(NAMES.configNamespace, NAMES.platform);
    return original === undefined ? [] : mergeToldOf(additional, original);
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

function mergeToldOf(additional: Manifest, original: Manifest): readonly Told[] {
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

// Lines of the places within objects: an object's own line helps little where it has a thousand entries.

/** Finds the line of `path` within the object that {@link describeObject} calls `subject`; undefined where the text does not have it. */
export type LineFinder = (subject: string, path: string) => number | undefined;

/**
 * Reads a text of manifests for its lines. A path that goes deeper than the text leads to the last part that is there.
 */
export function lineFinder(text: string): LineFinder {
  const counter = new LineCounter();
  const documents = parseAllDocuments(text, {
    ...KUBERNETES_SCHEMA,
    uniqueKeys: false,
    lineCounter: counter,
    logLevel: 'silent',
    prettyErrors: false,
  });
  const roots = new Map<string, Node>();
  for (const root of Array.isArray(documents)
    ? documents.flatMap(({ contents }) => objectsIn(contents))
    : []) {
    const subject = subjectOf(root);
    if (!roots.has(subject)) roots.set(subject, root);
  }
  return (subject, path) => {
    const root = roots.get(subject);
    const start = root === undefined ? undefined : startOf(root, partsOf(path));
    return start === undefined ? undefined : counter.linePos(start).line;
  };
}

function subjectOf(root: Node): string {
  const namespace = textAt(root, ['metadata', 'namespace']);
  const name = textAt(root, ['metadata', 'name']) ?? '';
  return describeObject({ kind: textAt(root, ['kind']) ?? '', namespace, name });
}

/** The object, or those of a list. */
function objectsIn(node: unknown): readonly Node[] {
  if (!isMap(node)) return [];
  const items = node.get('items', true);
  return isSeq(items) ? items.items.flatMap(objectsIn) : [node];
}

function textAt(node: Node, path: readonly string[]): string | undefined {
  const found = isMap(node) ? node.getIn(path) : undefined;
  return typeof found === 'string' ? found : undefined;
}

/** `spec.list[1].mirrors` and `data[".dockerconfigjson"]`, up to what is not such a part. */
function partsOf(path: string): readonly (string | number)[] {
  const parts: (string | number)[] = [];
  let rest = path;
  for (;;) {
    const found = /^(?:\.?([A-Za-z_][\w-]*)|\[(\d+)\]|\["([^"]*)"\])/.exec(rest);
    if (found === null) return parts;
    const [whole, name, index, key] = found;
    parts.push(index === undefined ? (name ?? key ?? '') : Number(index));
    rest = rest.slice(whole.length);
  }
}

/** Where the last part begins that the text has: its key, or the item. */
function startOf(root: Node, parts: readonly (string | number)[]): number | undefined {
  let node: unknown = root;
  let start = root.range?.[0];
  for (const part of parts) {
    const pair = isMap(node) ? node.items.find(({ key }) => isScalar(key) && key.value === part) : undefined;
    const item = isSeq(node) && typeof part === 'number' ? node.items[part] : undefined;
    const at = pair?.key ?? item;
    if (!isNode(at)) break;
    start = at.range?.[0] ?? start;
    node = pair === undefined ? item : pair.value;
  }
  return start;
}
