/** Judges the manifests that `pullwright validate` is given, together: some problems show only when two of them meet. */
import type { Manifest } from '../../controller/manifests.ts';
import { matchImageFault, matchImageHint } from '../../rules/auth-lookup/match-images.ts';
import { nameFault } from '../../rules/credential-provider/name.ts';
import { mergePullSecrets } from '../../rules/docker-config/merge.ts';
import { secretDataText } from '../../rules/docker-config/secret-text.ts';
import { validateSecret } from '../../rules/docker-config/validate.ts';
import { PROFILE_KIND, readProfile } from '../../rules/injection/profile.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import {
  describeObject,
  isSecret,
  type KubeObject,
  type SecretObject,
} from '../../rules/kubernetes/object.ts';
import { MIRROR_SET_KINDS } from '../../rules/mirrors/collect.ts';
import { lintMirrors } from '../../rules/mirrors/lint.ts';

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

const MIRROR_KINDS = new Set(MIRROR_SET_KINDS.map(({ kind }) => kind));
const PROVIDER_CONFIG = 'CRIOCredentialProviderConfig';

/** Kinds that can be judged. */
export const VALIDATED_KINDS: ReadonlySet<string> = new Set([
  'Secret',
  PROFILE_KIND,
  PROVIDER_CONFIG,
  ...MIRROR_KINDS,
]);

type Judged = Omit<FileProblem, 'file' | 'line' | 'subject'>;

/** All problems, in the order of the manifests. */
export function judgeManifests(manifests: readonly Manifest[]): readonly FileProblem[] {
  const each = manifests.flatMap((manifest) =>
    judgeObject(manifest.object).map((problem) => located(manifest, problem)),
  );
  return [...each, ...mirrorProblems(manifests), ...mergeProblems(manifests)];
}

function judgeObject(object: KubeObject): readonly Judged[] {
  switch (object.kind) {
    case 'Secret':
      if (object.apiVersion !== 'v1') return foreignSecret(object);
      return validateSecret(object as SecretObject, isAdditional(object)).map(
        ({ position, path, ...rest }) => ({
          ...rest,
          path:
            position === undefined
              ? path
              : `${path} (line ${position.line}, column ${position.column} of the value)`,
        }),
      );
    case PROFILE_KIND:
      return profileProblems(object);
    case PROVIDER_CONFIG:
      return providerProblems(object);
    default:
      return [];
  }
}

/** A kind of the same name in a group of its own is none of ours; the core group has no other version. */
function foreignSecret({ apiVersion }: KubeObject): readonly Judged[] {
  if (apiVersion.includes('/')) return [];
  const message = 'is no version of a Secret, wanted "v1"';
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

function providerProblems(object: KubeObject): readonly Judged[] {
  const fault = nameFault(object);
  return [
    ...(fault === undefined ? [] : [{ severity: 'error', code: 'RefusedByDefinition', ...fault } as const]),
    ...imageProblems((object.spec as { matchImages?: unknown } | undefined)?.matchImages),
  ];
}

function imageProblems(images: unknown): readonly Judged[] {
  const list: readonly unknown[] = Array.isArray(images) ? images : [];
  return list.flatMap((image, index): readonly Judged[] => {
    const path = `spec.matchImages[${index}]`;
    if (typeof image !== 'string')
      return [{ severity: 'error', code: 'WrongType', path, message: 'is no text' }];
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

/** Mirror sets are judged together, as the nodes read them. */
function mirrorProblems(manifests: readonly Manifest[]): readonly FileProblem[] {
  const sets = manifests.filter(({ object }) => MIRROR_KINDS.has(object.kind));
  return lintMirrors(sets.map(({ object }) => object)).flatMap(({ severity, code, origin, message }) => {
    const place = sets.find(
      ({ object }) => object.kind === origin.kind && object.metadata.name === origin.name,
    );
    return place === undefined ? [] : [located(place, { severity, code, path: origin.path, message })];
  });
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
