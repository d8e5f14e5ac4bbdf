/** What stands in the way of a pull, what will surprise, and what to change: the findings of an explanation. */

import { type AuthSource, readAuthSource } from '../../core/docker-config/pull-secret.ts';
import { registryKey } from '../../core/docker-config/registry-key.ts';
import { isShortName } from '../../core/image-reference.ts';
import { withoutUserInfo } from '../../core/text.ts';
import type { MirrorFix } from '../../registry-overrides/mirror-sets/fix.ts';
import type {
  ExplainedPlace,
  ExplainInput,
  Explanation,
  Finding,
  KubeletView,
  ListedSecret,
  NodeVersions,
} from '../model/types.ts';

/** All findings, the worst first. */
export function findingsOf(
  input: ExplainInput,
  kubelet: KubeletView,
  { places, skipped, fix }: Pick<Explanation, 'places' | 'skipped'> & { readonly fix: MirrorFix | undefined },
): readonly Finding[] {
  const all = [
    ...blocked(kubelet),
    ...input.secrets.flatMap(listedSecret),
    ...unreadableNode(input),
    ...passedOver(fix, places),
    ...(fix === undefined ? noPlace(places, skipped) : []),
    ...shortName(input, kubelet),
    ...platformProvider(input, kubelet),
    ...anonymousOnly(kubelet),
    ...emptyEntries(kubelet),
    ...doubtful(kubelet),
    ...nearMisses(kubelet, input.image.repository),
    ...mirrorsWithoutCredential(kubelet, places),
    ...rivals(places),
    ...heldBack(input, kubelet, places),
  ];
  const rank = { error: 0, warning: 1, info: 2 } as const;
  return all.toSorted((a, b) => rank[a.severity] - rank[b.severity]);
}

function blocked({ blockedBy }: KubeletView): readonly Finding[] {
  if (blockedBy === undefined) return [];
  return [
    {
      severity: 'error',
      message: `${blockedBy.source} ${blockedBy.why}: one unreadable pull secret fails the pod for every image, public ones too`,
      fix: `Fix ${blockedBy.source}, or take it out of imagePullSecrets`,
    },
  ];
}

/** Why a consumer cannot read `source` at all, as the end of a sentence; shows no value. */
export function unreadableBecause(source: AuthSource): string {
  const parsed = readAuthSource(source);
  if (!parsed.ok) return parsed.problem.message;
  const entry = parsed.config.entries.find((one) => !one.readable);
  if (entry === undefined) return 'has a field that is no map of texts';
  const { line, column } = entry.position;
  return `has an entry "${withoutUserInfo(entry.key.written)}" that ${entry.fault?.message ?? 'cannot be read'} (line ${line}, column ${column})`;
}

function listedSecret({ name, listedBy, state }: ListedSecret): readonly Finding[] {
  if (state === 'found') return [];
  const { said, fix } = NOT_FOUND[state];
  const message = `Secret "${name}", listed by ${listedBy}, ${said}`;
  return [{ severity: 'warning', message, fix: fix.replace('NAME', name) }];
}

const NOT_FOUND = {
  missing: { said: 'does not exist', fix: 'Create Secret "NAME" or take it out of the list' },
  encrypted: {
    said: 'is encrypted by SOPS here, so that nothing is known about what it holds',
    fix: 'Decrypt it first, or look at the cluster',
  },
  ignored: {
    said: 'is skipped: it has another type than a pull secret, or no data under the key of its type',
    fix: 'Use type kubernetes.io/dockerconfigjson with the key .dockerconfigjson',
  },
  unknown: {
    said: 'is not among what could be read, so that nothing is known about it',
    fix: 'Grant the right that is named above, or explain from a dump',
  },
} as const;

function unreadableNode({ node }: ExplainInput): readonly Finding[] {
  if (node === undefined) return [];
  const parsed = readAuthSource(node);
  const fault = parsed.ok ? parsed.config.kubeletFault : parsed.problem.kubeletFault;
  if (fault === undefined) return [];
  return [
    {
      severity: 'error',
      message: `${node.name} ${unreadableBecause(node)}: the kubelet ignores the whole file, with every credential in it`,
      fix: 'Fix or remove the entry',
    },
  ];
}

/** The textbook fault of a disconnected cluster. Where the source can be reached, it costs the mirrors only. */
function passedOver(fix: MirrorFix | undefined, places: readonly ExplainedPlace[]): readonly Finding[] {
  if (fix === undefined) return [];
  const severity = places.length === 0 ? 'error' : 'warning';
  const { message, object } = fix;
  return [{ severity, message, fix: fix.fix, ...(object === undefined ? {} : { object }) }];
}

function noPlace(places: readonly ExplainedPlace[], [why]: Explanation['skipped']): readonly Finding[] {
  if (places.length > 0) return [];
  return [
    {
      severity: 'error',
      message: `The image may be pulled from nowhere${why === undefined ? '' : `: ${why.reference} ${why.why}`}`,
      fix: ALLOW_SOURCE,
    },
  ];
}

/** What to do about an image without a place. */
export const ALLOW_SOURCE =
  'Allow its source in the mirror set and in registrySources of image.config.openshift.io/cluster, under the name that the pod asks for';

/**
 * The kubelet looks for credentials of Docker Hub, and hands CRI-O the name as it is written.
 *
 * Source of the rule: applyDefaultImageTag of the kubelet; CandidatesForPotentiallyShortImageName of CRI-O, whose candidates are
 * all pulled with the credential that the kubelet gave.
 */
function shortName({ written, image }: ExplainInput, { tried }: KubeletView): readonly Finding[] {
  if (written === undefined || !isShortName(written)) return [];
  const carried = tried.some((one) => one.username !== '');
  const leak = carried ? ', each with the credential that the kubelet found for docker.io' : '';
  return [
    {
      severity: carried ? 'warning' : 'info',
      message: `"${written}" names no registry: CRI-O asks those of its unqualified-search-registries (on OpenShift registry.access.redhat.com, then docker.io), or follows an alias${leak}; what is said here about CRI-O holds for docker.io. From 1.34 on it refuses the name when there is more than one such registry`,
      fix: `Write ${image.domain}/${image.path}`,
    },
  ];
}

/** Registries of clouds, whose kubelets mostly have a credential provider for them. */
const CLOUD_REGISTRIES: readonly RegExp[] = [
  /\.dkr[.-]ecr(-fips)?\.[a-z0-9-]+\.(amazonaws\.com(\.cn)?|on\.aws)$/,
  /\.azurecr\.(io|cn|us)$/,
  /(^|\.)gcr\.io$/,
  /-docker\.pkg\.dev$/,
];

/** What a node's kubelet is configured with is not known here. */
function platformProvider({ image }: ExplainInput, { anonymous }: KubeletView): readonly Finding[] {
  if (!anonymous || !CLOUD_REGISTRIES.some((pattern) => pattern.test(image.domain))) return [];
  return [
    {
      severity: 'info',
      message: `"${image.domain}" belongs to a cloud: where the kubelet has that cloud's credential provider, as nodes of its own Kubernetes service do, it asks that first, and an answer takes the place of the anonymous attempt`,
      fix: 'Look at --image-credential-provider-config of the kubelet on the node',
    },
  ];
}

function anonymousOnly({ anonymous, unused }: KubeletView): readonly Finding[] {
  if (!anonymous) return [];
  return [
    {
      severity: unused.some((one) => one.near) ? 'warning' : 'info',
      message:
        'No credential matches for the kubelet: one anonymous attempt is made, which works for public images only',
    },
  ];
}

function doubtful({ tried }: KubeletView): readonly Finding[] {
  return tried.flatMap(({ key, source, doubt }): readonly Finding[] =>
    doubt === undefined ? [] : [{ severity: 'warning', message: `Entry "${key}" of ${source} ${doubt}` }],
  );
}

function emptyEntries({ tried }: KubeletView): readonly Finding[] {
  return tried
    .filter((one) => one.empty && one.doubt === undefined)
    .map((one) => ({
      severity: 'warning' as const,
      message: `Entry "${one.key}" of ${one.source} holds no user and no password; it is tried all the same, and no anonymous attempt follows`,
      fix: 'Give it an "auth" or remove it',
    }));
}

function nearMisses({ unused, tried }: KubeletView, repository: string): readonly Finding[] {
  if (tried.length > 0) return [];
  const [host = '', namespace = ''] = repository.split('/', 2);
  return unused
    .filter((one) => one.near)
    .map((one) => ({
      severity: 'warning' as const,
      message: `Entry "${one.key}" of ${one.source} is about the same registry but does not match: ${one.why}`,
      fix:
        host.toLowerCase() !== host
          ? `Write the image with "${host.toLowerCase()}"`
          : `An entry "${host}" or "${host}/${namespace}" would match`,
    }));
}

function mirrorsWithoutCredential(
  kubelet: KubeletView,
  places: readonly ExplainedPlace[],
): readonly Finding[] {
  const bare = places.filter((place) => place.kind === 'mirror' && place.crio.what === 'nothing');
  if (bare.length === 0) return [];
  const pods = kubelet.tried.some((one) => one.username !== '')
    ? ' A pull secret of the pod never reaches a mirror under CRI-O.'
    : '';
  return bare.map((place) => ({
    severity: 'warning' as const,
    message: `CRI-O asks mirror ${place.reference} without a credential.${pods}`,
    fix: "Put an entry for the mirror's host into the node's file (additional-pull-secret), or let the credential provider serve the namespace",
  }));
}

function rivals(places: readonly ExplainedPlace[]): readonly Finding[] {
  return places.flatMap(({ reference, crio }) =>
    crio.what === 'entry' && crio.rivals.length > 0
      ? [
          {
            severity: 'warning' as const,
            message: `For ${reference} CRI-O takes one of ${[crio.entry.key, ...crio.rivals].map((key) => `"${key}"`).join(', ')} at random: they mean the same host`,
            fix: 'Keep one of them, without a scheme',
          },
        ]
      : [],
  );
}

/**
 * Entries of the additional secret about one of the registries that are asked, and that are not used as they are written. One
 * that is left out is an error where the kubelet has nothing else for the registry of the image: that is why it does not pull.
 */
function heldBack(
  { merge, image }: ExplainInput,
  { anonymous }: KubeletView,
  places: readonly ExplainedPlace[],
): readonly Finding[] {
  if (merge === undefined) return [];
  const own = hostMeaning(image.domain);
  const hosts = new Set(places.map(({ reference }) => hostMeaning(reference)));
  return merge.verdicts
    .filter(
      ({ verdict, subject }) => ['Shadowed', 'Rejected'].includes(verdict) && hosts.has(hostMeaning(subject)),
    )
    .map(({ verdict, subject, message }) => ({
      severity:
        anonymous && verdict === 'Rejected' && hostMeaning(subject) === own
          ? ('error' as const)
          : ('warning' as const),
      message: `Entry "${subject}" of ${merge.additional} is ${verdict.toLowerCase()}: it ${message}`,
    }));
}

function hostMeaning(text: string): string {
  return registryKey(text).meaning.split('/', 1)[0] ?? '';
}

function isBefore(version: string, minor: number): boolean {
  const [, first = '', second = ''] = /^v?(\d+)\.(\d+)\./.exec(version) ?? [];
  return first === '1' && second !== '' && Number(second) < minor;
}

/** What a later pod needs to use the image once it is on the node, from Kubernetes 1.35 on by default. */
export function verificationOf(
  kubelet: KubeletView,
  node: string | undefined,
  { crio, kubelet: version }: NodeVersions = {},
): string {
  const [first] = kubelet.tried;
  const free = 'a pod without the Secret starts from it';
  if (crio !== undefined && isBefore(crio, 36))
    return `Once the image is on the node: ${free}, as CRI-O ${crio} (before 1.36) gives pull verification nothing to go by`;
  if (version !== undefined && isBefore(version, 35))
    return `Once the image is on the node: ${free}, as the kubelet is ${version}, and pull verification is on by default from 1.35`;
  const where =
    crio === undefined
      ? 'Once the image is on a node (pull verification, on by default from Kubernetes 1.35, and not with CRI-O before 1.36)'
      : `Once the image is on the node: unknown, as CRI-O ${crio} does not show whether pull verification is at work; where it is`;
  if (kubelet.blockedBy !== undefined) return `${where}: nothing is pulled`;
  if (first === undefined)
    return `${where}: pulled without a credential, so every pod of the node may use it`;
  if (first.source === node)
    return `${where}: pulled with the node's own credential, so every pod of the node may use it`;
  return `${where}: a pod needs the very Secret that pulled it (same UID) or one with the same user, password and email; rotate ${first.source} in place`;
}
