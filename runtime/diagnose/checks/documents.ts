/** Validates all manifests of `pullwright validate` together, because some problems show only in combination. */
import { isMap, isNode, isScalar, isSeq, LineCounter, type Node } from 'yaml';
import { z } from 'zod';
import { matchImageFault, matchImageHint } from '../../core/docker-config/match-images.ts';
import { mergePullSecrets } from '../../core/docker-config/merge.ts';
import { pullSecretOf } from '../../core/docker-config/pull-secret.ts';
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
  listedPullSecrets,
  type SecretObject,
} from '../../core/kubernetes/object.ts';
import { readValue, shapeProblems } from '../../core/kubernetes/read-spec.ts';
import { distinctBy, oncePer, recordOf, scalarText, textOf, valueAt } from '../../core/record.ts';
import { counted } from '../../core/text.ts';
import { matchImagesSchema, nameFault } from '../../credential-provider/kind.ts';
import type { Manifest } from '../../engine/offline/manifests.ts';
import { yamlDocument } from '../../kube/yaml.ts';
import { DEFAULT_TRUSTED_KEYS, GRANT, readPullSecretGrant } from '../../pull-secret-injection/kinds/grant.ts';
import { PROFILE, readProfile } from '../../pull-secret-injection/kinds/profile.ts';
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
import { podSpecIn, WORKLOAD_KINDS } from '../model/pull.ts';
import type { Finding } from '../model/types.ts';
import { problem, type ValidationProblem, validateSecret } from './docker-config.ts';

// Validates mirror sets and image configurations per cluster, as the API server, the operator and the runtime read them.

const MIRROR_KINDS = [...NODE_KINDS, HOSTED_CLUSTER];

/** Kinds that configure the pull sources of nodes. */
export const NODE_MIRROR_KINDS: readonly string[] = MIRROR_KINDS.map(({ kind }) => kind);

/** Whether the object has one of these kinds, and its API group: other groups have kinds with the same names. */
export function isNodeMirrorKind(object: KubeObject): boolean {
  return MIRROR_KINDS.some((kind) => isOf(object, kind));
}

/** Validates mirror sets together, as the nodes of each cluster read them; shared findings are reported once. */
function mirrorsTold(manifests: readonly Manifest[]): readonly Finding[] {
  const sets = manifests.filter(({ object }) => isNodeMirrorKind(object));
  const byObject = new Map(sets.map((manifest) => [manifest.object, manifest]));
  const told = (sets.length === 0 ? [] : clustersIn(sets)).flatMap((cluster) => toldIn(cluster, byObject));
  return distinctBy(told, JSON.stringify);
}

function toldIn(cluster: ClusterObjects, byObject: ReadonlyMap<KubeObject, Manifest>): readonly Finding[] {
  const hosted = cluster.hostedCluster;
  const byName = new Map(
    cluster.objects.map((object) => [`${object.kind}/${object.metadata.name}`, hosted ?? object]),
  );
  return lintMirrors(cluster.objects).flatMap(({ severity, code, origin, message }): readonly Finding[] => {
    const object = byName.get(`${origin.kind}/${origin.name}`);
    const manifest = object === undefined ? undefined : byObject.get(object);
    if (manifest === undefined) return [];
    const own = `${origin.kind}/${origin.name} ${origin.path} `;
    const text = message.startsWith(own) ? message.slice(own.length) : message;
    const path = hosted === undefined ? origin.path : hostedPath(origin.path);
    return [located(manifest, problem(severity, code, path, text))];
  });
}

// SidecarSet settings that keep its pull secrets from pods.

/** The set adds no container: Kruise injects nothing, unless another set adds one. */
const NO_CONTAINERS = 'NoContainers';

const SELECTORS = ['selector', 'namespaceSelector', 'updateStrategy.selector'];
const ANNOTATION = `metadata.annotations["${SOURCE_NAMESPACE_ANNOTATION}"]`;
const LIST = 'spec.imagePullSecrets';

/**
 * Errors: Kruise's definition or webhook rejects the object, or it cannot be applied. Warnings: accepted, but no effect on pods.
 * A set without pull secrets and source namespace is ignored.
 *
 * Source of the rule: Kruise's definition and webhook, and the conditions of the reconciler.
 */
export function sidecarSetProblems({ apiVersion, metadata, spec }: KubeObject): readonly ValidationProblem[] {
  const from = metadata.annotations?.[SOURCE_NAMESPACE_ANNOTATION];
  const { imagePullSecrets, selector, namespace, namespaceSelector } = recordOf(spec);
  const listed: unknown = imagePullSecrets ?? [];
  const names = Array.isArray(listed) ? (listed as readonly unknown[]) : undefined;
  if (from === undefined && names?.length === 0) return [];
  const broken = SELECTORS.flatMap((path) => brokenSelector(spec, path));
  const selected = readSelector(selector ?? {});
  const selectsNone = selected.ok && selected.requirements.length === 0;
  return [
    ...wrongVersion(apiVersion, 'SidecarSet', SIDECAR_SET_API_VERSIONS),
    ...broken,
    ...warningIf(
      selectsNone && !broken.some(({ path }) => path.startsWith('spec.selector')),
      'SelectorEmpty',
      'spec.selector',
      'selects no pod: in a SidecarSet an absent or empty selector means none, not all',
    ),
    ...warningIf(
      textOf(namespace) !== '' && namespaceSelector !== undefined,
      'NamespaceWins',
      'spec.namespaceSelector',
      `is ignored if spec.namespace is set; remove spec.namespace and select by ${NAMESPACE_NAME_LABEL}`,
    ),
    ...(names?.flatMap(wrongName) ?? [problem('error', 'SecretNameInvalid', LIST, 'must be a list')]),
    ...sourceProblems(from, names),
    ...warningIf(
      readContent(spec).containers === 0 && names !== undefined && names.length > 0,
      NO_CONTAINERS,
      'spec.containers',
      'is empty: pull secrets are injected only into pods that get a container from a SidecarSet; add one, set withoutContainers in the fleet, or use a PullSecretProfile',
    ),
  ];
}

function sourceProblems(from: unknown, names: readonly unknown[] | undefined): readonly ValidationProblem[] {
  if (from === undefined) return [];
  if (!isNamespaceName(from)) {
    const message = `${shown(from)} is not the name of a namespace`;
    return [problem('error', 'SourceNamespaceInvalid', ANNOTATION, message)];
  }
  const message = 'has no effect: spec.imagePullSecrets lists no Secret';
  return warningIf(names?.length === 0, 'NoSecretListed', ANNOTATION, message);
}

function warningIf(is: boolean, code: string, path: string, message: string): readonly ValidationProblem[] {
  return is ? [problem('warning', code, path, message)] : [];
}

const shown = (text: unknown): string => JSON.stringify(scalarText(text).slice(0, 80));

function wrongVersion(apiVersion: string, kind: string, versions: readonly string[]) {
  if (versions.includes(apiVersion)) return [];
  const expected = versions.map((one) => `"${one}"`).join(' or ');
  return [
    problem('error', 'WrongVersion', 'apiVersion', `is not a version of ${kind}, expected ${expected}`),
  ];
}

/** Splits `path: message`. */
function parted(text: string): readonly [path: string, message: string] {
  const [path = '', ...rest] = text.split(': ');
  return [path, rest.join(': ')];
}

/** The API server drops a misspelled field, and the selector then matches everything. */
function brokenSelector(spec: unknown, path: string): readonly ValidationProblem[] {
  const value = valueAt(spec, path);
  const shape = shapeProblems(value, labelSelectorSchema(), `spec.${path}`);
  const read = shape.length === 0 ? readSelector(value ?? {}) : undefined;
  const texts = read?.ok === false ? [`spec.${path}: ${read.problem}`] : shape;
  return texts.map((text) => problem('error', 'SelectorInvalid', ...parted(text)));
}

function wrongName(entry: unknown, at: number): readonly ValidationProblem[] {
  const { name } = recordOf(entry);
  if (isObjectName(name)) return [];
  const what = typeof name === 'string' ? shown(name) : 'the value';
  return [
    problem('error', 'SecretNameInvalid', `${LIST}[${at}].name`, `${what} is not the name of a Secret`),
  ];
}

/** The kind of Kruise, in any version. */
export const SIDECAR_SET = 'SidecarSet';

type Judge = (
  object: KubeObject,
  manifests: readonly Manifest[],
  listed: ReadonlySet<string>,
) => readonly ValidationProblem[];

/** Validators by kind. */
const PROBLEMS: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ['Secret', (secret, _, listed) => secretProblems(secret, listed)],
  [PROFILE.kind, profileProblems],
  [GRANT.kind, grantProblems],
  [
    SIDECAR_SET,
    // Another set may add the container that injection requires.
    (set, manifests) =>
      sidecarSetProblems(set).filter(({ code }) => code !== NO_CONTAINERS || !bringsContainer(manifests)),
  ],
  ['CRIOCredentialProviderConfig', providerProblems],
]);

/** Kinds that `pullwright validate` supports. */
export const VALIDATED_KINDS: ReadonlySet<string> = new Set([...PROBLEMS.keys(), ...NODE_MIRROR_KINDS]);

/** Kinds whose objects may list pull secrets. */
export const LISTING_KINDS: readonly string[] = ['ServiceAccount', ...WORKLOAD_KINDS.map(({ kind }) => kind)];

/**
 * All findings for manifests, validated together. Never throws.
 *
 * @param others may list pull secrets: listed Secrets are validated regardless of their type
 */
export function judgeManifests(manifests: readonly Manifest[], others: readonly KubeObject[] = []) {
  const listed = new Set(
    others.flatMap((object) =>
      [...listedPullSecrets(object), ...listedPullSecrets(podSpecIn(object))].map((name) =>
        describeObject({ kind: 'Secret', namespace: object.metadata.namespace, name }),
      ),
    ),
  );
  return [
    ...manifests.flatMap((manifest) => {
      const { object } = manifest;
      const problems = PROBLEMS.get(object.kind)?.(object, manifests, listed) ?? [];
      return problems.map((one) => located(manifest, one));
    }),
    ...mirrorsTold(manifests),
    ...mergeTold(manifests),
  ];
}

function bringsContainer(manifests: readonly Manifest[]): boolean {
  return manifests.some(({ object }) => object.kind === SIDECAR_SET && readSidecarSet(object).containers > 0);
}

function secretProblems(secret: KubeObject, listed: ReadonlySet<string>): readonly ValidationProblem[] {
  const { apiVersion, metadata } = secret;
  // Other API groups may define a kind named Secret; the core group has only v1.
  if (apiVersion !== 'v1') return apiVersion.includes('/') ? [] : wrongVersion(apiVersion, 'Secret', ['v1']);
  // The additional pull secret is read regardless of its type.
  const isAdditional = metadata.namespace === NAMES.namespace && metadata.name === NAMES.additional;
  const isListed = listed.has(describeObject(secret));
  return validateSecret(secret as SecretObject, isAdditional || isListed, new Date());
}

function profileProblems(object: KubeObject): readonly ValidationProblem[] {
  const read = readProfile(object);
  return read.ok ? [] : read.problems.map((text) => problem('error', 'ProfileInvalid', ...parted(text)));
}

/** Trusted label keys are configured per cluster, so a selector on other keys is only a warning here. */
function grantProblems(object: KubeObject): readonly ValidationProblem[] {
  const read = readSelector(recordOf(object.spec)['namespaceSelector']);
  const keys = read.ok ? selectorKeys(read.requirements) : [];
  const { problems, patterns } = readPullSecretGrant(object, [...DEFAULT_TRUSTED_KEYS, ...keys]);
  return [
    ...problems.map((text) => problem('error', 'GrantInvalid', ...parted(text))),
    ...keys.flatMap((key) =>
      warningIf(
        !DEFAULT_TRUSTED_KEYS.includes(key),
        'LabelMustBeTrusted',
        'spec.namespaceSelector',
        `uses the label "${key}", which is trusted only if trustedLabelKeys lists it and a policy protects it`,
      ),
    ),
    // An account that may choose namespace names can match a pattern.
    ...patterns.flatMap((pattern) =>
      warningIf(
        /[*?]/.test(pattern),
        'PatternIsNoConsent',
        'spec.namespaces',
        `"${pattern}" is not consent if users choose the names of namespaces: grant by a label that a policy protects, or by names`,
      ),
    ),
  ];
}

/**
 * Notes how many of the given namespaces each profile selects, because a selector that matches all or none may be unintended.
 */
export function selectionNotes(manifests: readonly Manifest[], namespaces: readonly KubeObject[]) {
  return manifests.flatMap(({ object }) => {
    const read = object.kind === PROFILE.kind ? readProfile(object) : undefined;
    if (read?.ok !== true) return [];
    const { name, namespaceSelector, selector, injects } = read.profile;
    const pods = injects && selector.length === 0 ? ', all pods of them' : '';
    const subject = `note: ${PROFILE.kind}/${name} selects`;
    const { length } = namespaces;
    if (namespaceSelector.length === 0)
      return `${subject} every namespace: ${length} among these files, and every future one${pods}`;
    if (length === 0) return [];
    const selected = namespaces.filter(({ metadata }) =>
      selects(namespaceSelector, { ...metadata.labels, [NAMESPACE_NAME_LABEL]: metadata.name }),
    ).length;
    const all = counted(length, 'namespace');
    return `${subject} ${selected} of ${all} among these files${selected > 0 ? pods : ''}`;
  });
}

const PROVIDER = z.strictObject({ matchImages: matchImagesSchema.optional() });

function providerProblems(object: KubeObject): readonly ValidationProblem[] {
  const { path = '', message } = nameFault(object) ?? {};
  const images = imageProblems(recordOf(object.spec)['matchImages']);
  const refused = readValue(object.spec ?? {}, PROVIDER, 'spec').problems;
  return [
    ...refused
      .map((text) => problem('error', 'RefusedByDefinition', ...parted(text)))
      // For these entries, the kubelet's own message is reported instead.
      .filter((one) => !images.some(({ severity, path }) => severity === 'error' && path === one.path)),
    ...(message === undefined ? [] : [problem('error', 'RefusedByDefinition', path, message)]),
    ...images,
  ];
}

function imageProblems(images: unknown): readonly ValidationProblem[] {
  const list: readonly unknown[] = Array.isArray(images) ? images : [];
  return list.flatMap((image, index): readonly ValidationProblem[] => {
    const path = `spec.matchImages[${index}]`;
    if (typeof image !== 'string') return [];
    const fault = matchImageFault(image);
    if (fault !== undefined) return [problem('error', 'KubeletRefuses', path, fault)];
    const hint = matchImageHint(image);
    return warningIf(hint !== undefined, 'NotMeant', path, `"${image}": ${hint}`);
  });
}

function located(manifest: Manifest, { code: check, position, path, ...told }: ValidationProblem): Finding {
  const { object, file } = manifest;
  const subject = describeObject(object);
  const inValue = position && ` (line ${position.line}, column ${position.column} of the value)`;
  return { ...told, check, file, line: lineOf(manifest, path), subject, path: `${path}${inValue ?? ''}` };
}

/** Entries that the merge would ignore, if both pull secrets of a cluster are given. */
function mergeTold(manifests: readonly Manifest[]): readonly Finding[] {
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

/** In a repository of many clusters, picks the Secret of the same cluster: the one that shares the longest path prefix. */
function nearest(to: Manifest, among: readonly Manifest[]): Manifest | undefined {
  const parts = to.file.split('/');
  const shared = ({ file }: Manifest): number => {
    const others = file.split('/');
    const end = parts.findIndex((part, index) => part !== others[index]);
    return end < 0 ? parts.length : end;
  };
  return among.toSorted((a, b) => shared(b) - shared(a))[0];
}

function mergeToldOf(additional: Manifest, original: Manifest): readonly Finding[] {
  const [ofPlatform, ofTenant] = [pullSecretOf(original.object), pullSecretOf(additional.object)];
  const merged = mergePullSecrets({ original: ofPlatform.text, additional: ofTenant.text });
  return (merged.ok ? merged.verdicts : [])
    .filter(({ verdict }) => verdict === 'Shadowed')
    .map(({ reason, subject, message }) => {
      const path = `data["${NAMES.dataKey}"]: auths[${JSON.stringify(subject)}]`;
      return located(additional, problem('warning', reason, path, message));
    });
}

/** Line of `path` in the text of an object, or of its deepest existing parent. */
export function lineOf({ line, document, at = [] }: Manifest, path: string): number {
  if (path === '' || document === undefined) return line;
  const { contents, lines } = parsedOnce(document);
  const start = startOf(contents, [...at, ...partsOf(path)]);
  return start === undefined ? line : document.line + lines.linePos(start).line - 1;
}

const parsedOnce = oncePer(({ text }: NonNullable<Manifest['document']>) => {
  const lines = new LineCounter();
  return { contents: yamlDocument(text, lines).contents, lines };
});

/** Splits `spec.list[1].mirrors` or `data[".dockerconfigjson"]` into parts, up to the first text with another syntax. */
function partsOf(path: string): readonly (string | number)[] {
  return [...path.matchAll(/\.?([A-Za-z_][\w-]*)|\[(\d+)\]|\["([^"]*)"\]/gy)].map(
    ([, name, index, key = '']) => (index === undefined ? (name ?? key) : Number(index)),
  );
}

/** Offset of the deepest existing part: of its key, or of the list item. */
function startOf(root: Node | null, parts: readonly (string | number)[]): number | undefined {
  let node: unknown = root;
  let start = root?.range?.[0];
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
