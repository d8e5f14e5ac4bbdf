/** Findings of a pull explanation: what blocks the pull, what behaves unexpectedly, and how to fix it. */

import { readAuthSource } from '../../core/docker-config/pull-secret.ts';
import { registryKey } from '../../core/docker-config/registry-key.ts';
import { isShortName } from '../../core/image-reference.ts';
import { minorOf } from '../../registry-overrides/olm-catalogs.ts';
import type { ExplainInput, Explanation, Finding, KubeletView, NodeVersions } from '../model/types.ts';
import { documentFault } from './docker-config.ts';
import { bySeverity, type Check, judge, type Told, warning } from './findings.ts';

/** Input of the checks of an explanation. */
interface Explained extends Omit<Explanation, 'findings'> {
  readonly input: ExplainInput;
}

/** The pull sources of an image, and the skipped ones. */
type Places = Pick<Explained, 'image' | 'skipped' | 'mirrorFix'> & { readonly places: readonly unknown[] };

const PLACES_CHECK = { id: 'pull-sources', run: noPlace };

/** Checks of one image. Checks that `doctor` also runs have the same id. */
const IMAGE_CHECKS: readonly Check<Explained>[] = [
  { id: 'secrets-readable', run: blocked },
  { id: 'secrets-exist', run: listedSecrets },
  { id: 'node-file', run: unreadableNode },
  PLACES_CHECK,
  { id: 'short-name', run: shortName },
  { id: 'cloud-provider', run: platformProvider },
  { id: 'credential', run: anonymousOnly },
  { id: 'entry/doubtful', run: doubtful },
  { id: 'entry/near', run: nearMisses },
  { id: 'mirror-credential', run: mirrorsWithoutCredential },
  { id: 'entry/ambiguous', run: rivals },
  { id: 'entry/held-back', run: heldBack },
];

/** All findings of an image, the worst first. */
export function judgeImage(explained: Explained): readonly Finding[] {
  return judge(IMAGE_CHECKS, explained, explained.image).toSorted(bySeverity);
}

/** Findings about the pull sources of an image, which apply to every consumer. */
export function judgePlaces(places: Places): readonly Finding[] {
  return judge([PLACES_CHECK], places, places.image);
}

function blocked({ kubelet: { blockedBy } }: Explained): Told | undefined {
  if (blockedBy === undefined) return undefined;
  const { source, why } = blockedBy;
  return {
    about: source.split('/').at(-1) ?? '',
    message: `${source} ${why}`,
    advice: `Fix ${source}, or remove it from imagePullSecrets`,
  };
}

function listedSecrets({ input, kubelet: { unknown } }: Explained): readonly Told[] {
  return input.secrets.flatMap(({ name, listedBy, state, why, maker, retype }): Told | [] => {
    if (state === 'found') return [];
    const [said, general] = NOT_FOUND[state];
    const { type = 'kubernetes.io/dockerconfigjson', key = '.dockerconfigjson' } = retype ?? {};
    const own = `The type of a Secret is immutable: recreate it as ${type}, with the key ${key}`;
    const advice = retype === undefined ? general.replace('NAME', name) : own;
    const isSure = unknown === undefined || state === 'missing' || state === 'ignored';
    return {
      severity: isSure ? 'warning' : 'unknown',
      message: `Secret "${name}", listed by ${listedBy}, ${said}${why === undefined ? '' : `: ${why}`}`,
      advice:
        maker === undefined ? advice : `Correct ${maker}, which writes it, to type ${type} and key ${key}`,
      check: state === 'ignored' || state === 'encrypted' ? 'secrets-readable' : 'secrets-exist',
      about: name,
    };
  });
}

const NOT_FOUND = {
  missing: ['does not exist', 'Create Secret "NAME", or remove it from the list'],
  encrypted: ['is encrypted with SOPS, so its content is unknown', 'Decrypt it first, or read the cluster'],
  pending: ['has no value in the input, so its content is unknown', 'Read the cluster, or a dump of it'],
  ignored: ['is skipped', 'Recreate it with kubectl create secret docker-registry'],
  unknown: [
    'could not be read, so its content is unknown',
    'Grant the permission named above, or explain from a dump',
  ],
} as const;

function unreadableNode({ input: { node } }: Explained): Told | undefined {
  if (node === undefined) return undefined;
  const parsed = readAuthSource(node);
  const fault = parsed.ok ? parsed.config.kubeletFault : parsed.problem.kubeletFault;
  if (fault === undefined) return undefined;
  return {
    message: `${node.name} ${documentFault(node)}: the kubelet ignores the whole file, with every credential in it`,
    advice: 'Fix or remove the entry',
  };
}

/** No usable pull source, typical of disconnected clusters; or only the mirrors are skipped. */
function noPlace({ mirrorFix, places, skipped: [why], image }: Places): Told | undefined {
  if (mirrorFix !== undefined) {
    // Mirrors are configured but not tried: report what enables them.
    const { code, message, fix: advice, object } = mirrorFix;
    const severity = places.length === 0 ? 'error' : 'warning';
    return { code, message, advice, fix: object && [object], severity };
  }
  if (places.length > 0) return undefined;
  const from = why?.from === undefined ? '' : ` (${why.from})`;
  return {
    message: `no usable pull source for "${image}"${why === undefined ? '' : `: ${why.reference} is not tried: ${why.why}${from}`}`,
    advice:
      'Allow its source in the mirror set and in registrySources of image.config.openshift.io/cluster, under the name that the image is written with',
  };
}

/**
 * The kubelet looks up credentials for Docker Hub, but passes the short name to CRI-O as written.
 *
 * Source of the rule: applyDefaultImageTag of the kubelet; CandidatesForPotentiallyShortImageName of CRI-O. CRI-O pulls every
 * candidate with the credential from the kubelet.
 */
function shortName({ input, kubelet: { tried } }: Explained): Told | undefined {
  const { written, image, versions, search } = input;
  if (written === undefined || !isShortName(written) || versions?.runtime === 'containerd') return undefined;
  const template =
    'its unqualified-search-registries (on OpenShift registry.access.redhat.com, then docker.io)';
  const known = search === undefined ? template : search.join(', then ');
  const carried = tried.some((one) => one.username !== '');
  const leak = carried ? ', each with the credential that the kubelet found for docker.io' : '';
  return {
    severity: carried ? 'warning' : 'info',
    message: `"${written}" has no registry: CRI-O tries ${known}, or follows an alias${leak}; the CRI-O part is for docker.io. From 1.34, CRI-O rejects the name when there is more than one such registry`,
    advice: `Write ${search === undefined ? `${image.domain}/${image.path}` : `its registry too, such as ${search[0]}/${written}`}`,
  };
}

/** Cloud registries, for which kubelets on that cloud usually have a credential provider. */
const CLOUD_REGISTRIES: readonly RegExp[] = [
  /\.dkr[.-]ecr(-fips)?\.[a-z0-9-]+\.(amazonaws\.com(\.cn)?|on\.aws)$/,
  /\.azurecr\.(io|cn|us)$/,
  /(^|\.)gcr\.io$/,
  /-docker\.pkg\.dev$/,
];

/** The kubelet's credential provider configuration is unknown here, so this only informs. */
function platformProvider({ input: { image }, kubelet }: Explained): Told | undefined {
  if (!kubelet.anonymous || !CLOUD_REGISTRIES.some((pattern) => pattern.test(image.domain))) return undefined;
  return {
    severity: 'info',
    message: `"${image.domain}" is a cloud registry: a kubelet with the cloud's credential provider, as in its managed Kubernetes, uses that first, and its credential replaces the anonymous attempt`,
    advice: 'Check --image-credential-provider-config of the kubelet on the node',
  };
}

function anonymousOnly({ kubelet: { anonymous, unused } }: Explained): Told | undefined {
  if (!anonymous) return undefined;
  return {
    severity: unused.some((one) => one.near) ? 'warning' : 'info',
    message:
      'The kubelet has no matching credential and makes one anonymous attempt, which works for public images only',
  };
}

function doubtful({ kubelet: { tried } }: Explained): readonly Told[] {
  return tried.flatMap(({ key, source, doubt }) =>
    doubt === undefined
      ? []
      : warning(`Entry "${key}" of ${source} ${doubt}`, `Renew the entry in ${source}`),
  );
}

function nearMisses({ kubelet: { unused, tried }, input }: Explained): readonly Told[] {
  if (tried.length > 0) return [];
  const [host = '', namespace = ''] = input.image.repository.split('/', 2);
  const lower = host.toLowerCase();
  const advice =
    lower === host
      ? `An entry "${host}" or "${host}/${namespace}" would match`
      : `Write the image with "${lower}"`;
  return unused
    .filter((one) => one.near)
    .map(({ key, source, why }) =>
      warning(`Entry "${key}" of ${source} is for the same registry but does not match: ${why}`, advice),
    );
}

function mirrorsWithoutCredential({ kubelet, places }: Explained): readonly Told[] {
  const pods = kubelet.tried.some((one) => one.username !== '')
    ? ' A pull secret of the pod never reaches a mirror under CRI-O.'
    : '';
  return places
    .filter(({ kind, crio }) => kind === 'mirror' && crio.what === 'nothing')
    .map(({ reference }) =>
      warning(
        `CRI-O contacts mirror ${reference} without a credential.${pods}`,
        `Put an entry for ${reference.split('/')[0]} into the pull secret of the cluster, or enable the credential provider for the namespace`,
      ),
    );
}

function rivals({ places }: Explained): readonly Told[] {
  return places.flatMap(({ reference, crio }) => {
    if (crio.what !== 'entry' || crio.rivals.length === 0) return [];
    const keys = [crio.entry.key, ...crio.rivals].map((key) => `"${key}"`).join(', ');
    return warning(
      `For ${reference} CRI-O uses one of ${keys} at random: they are for the same host`,
      'Keep one of them, without a scheme',
    );
  });
}

/**
 * Entries of the additional pull secret for a contacted registry that are not used as written. A rejected entry is an error
 * if the kubelet has no other credential for the image's registry, because the pull then fails.
 */
function heldBack({ input: { merge, image }, kubelet, places }: Explained): readonly Told[] {
  if (merge === undefined) return [];
  const own = hostMeaning(image.domain);
  const hosts = new Set(places.map(({ reference }) => hostMeaning(reference)));
  return merge.verdicts
    .filter(
      ({ verdict, subject }) => ['Shadowed', 'Rejected'].includes(verdict) && hosts.has(hostMeaning(subject)),
    )
    .map(({ verdict, subject, message }) => ({
      severity:
        kubelet.anonymous && verdict === 'Rejected' && hostMeaning(subject) === own ? 'error' : 'warning',
      message: `Entry "${subject}" of ${merge.additional} is ${verdict.toLowerCase()}: it ${message}`,
    }));
}

function hostMeaning(text: string): string {
  return registryKey(text).meaning.split('/', 1)[0] ?? '';
}

function isBefore(version: string | undefined, minor: number): boolean {
  return version !== undefined && (minorOf(version)?.minor ?? minor) < minor;
}

/** Describes which pods may use the image once it is on the node: pull verification, on by default from Kubernetes 1.35. */
export function verificationOf(
  kubelet: KubeletView,
  node: string | undefined,
  { crio, kubelet: version }: NodeVersions = {},
): string {
  const [first] = kubelet.tried;
  const free = 'a pod without the Secret can use it';
  if (isBefore(crio, 36))
    return `Once the image is on the node: ${free}, as CRI-O ${crio} (before 1.36) does not support pull verification`;
  if (isBefore(version, 35))
    return `Once the image is on the node: ${free}, as the kubelet is ${version}, and pull verification is on by default from 1.35`;
  const where =
    crio === undefined
      ? 'Once the image is on a node (pull verification, on by default from Kubernetes 1.35, and not with CRI-O before 1.36)'
      : `Once the image is on the node: unknown, as CRI-O ${crio} does not show whether pull verification is on; if it is`;
  if (kubelet.blockedBy !== undefined) return `${where}: nothing is pulled`;
  if (kubelet.unknown !== undefined) return `${where}: unknown, as ${kubelet.unknown}`;
  if (first === undefined)
    return `${where}: pulled without a credential, so every pod of the node may use it`;
  if (first.source === node)
    return `${where}: pulled with the node's own credential, so every pod of the node may use it`;
  return `${where}: a pod needs the Secret that pulled it (same UID), or one with the same user, password and email; rotate ${first.source} in place`;
}
