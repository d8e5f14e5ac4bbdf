/**
 * The chain from an image's name to a credential that a registry takes, link by link: the first one that is broken is what to
 * mend first, because everything behind it depends on it.
 */

import { mendAccount, mendProvider } from './doctor-mend.ts';
import type { Explanation } from './explain.ts';
import type { KubeObject } from './kube-object.ts';
import type { PullComplaint } from './pull-complaint.ts';

/** What is looked at. Empty lists where nothing is known. */
export interface DoctorInput {
  readonly namespace: string;
  /** `Pod/web/shop-1` */
  readonly pod: string;
  /** A pod that exists cannot be changed; a template can. */
  readonly isPod: boolean;
  /** The names come from the pod or template itself, and not from its ServiceAccount. */
  readonly ownList: boolean;
  /** The template as it is, for a change of it. */
  readonly template: KubeObject;
  readonly account: {
    readonly name: string;
    readonly object: KubeObject | undefined;
    readonly known: boolean;
  };
  readonly images: readonly DoctorImage[];
  /** Names that profiles and SidecarSets would give a pod like this one, and the pod does not have. */
  readonly notInjected: readonly { readonly secret: string; readonly by: string }[];
  /** What reports trouble in this namespace or on the node: `PullStatus/web/...`. */
  readonly troubles: readonly {
    readonly object: string;
    readonly message: string;
    readonly onNode: boolean;
  }[];
  readonly provider: {
    readonly matchImages: readonly string[];
    readonly present: boolean;
    readonly mayRead: boolean;
  };
  readonly complaint?: { readonly cause: PullComplaint; readonly image?: string };
  /** What could not be read, each with the right that is missing. */
  readonly unread: readonly string[];
}

export interface DoctorImage {
  readonly text: string;
  /** Absent when the image cannot be read; then `fault`. */
  readonly explanation?: Explanation;
  readonly fault?: string;
  /** Secrets of the namespace that the pod does not list, and that hold a credential for the image. */
  readonly elsewhere: readonly string[];
  /** Mirrors without a credential for which a Secret of the namespace has one. */
  readonly mirrors: readonly string[];
}

export const LINKS = [
  'image',
  'places',
  'service-account',
  'injection',
  'secrets-there',
  'secrets-readable',
  'credential',
  'mirror-credential',
  'distribution',
  'node',
  'registry',
] as const;

/** In the order in which they depend on each other. */
export type LinkName = (typeof LINKS)[number];

export interface Link {
  readonly link: LinkName;
  readonly state: 'ok' | 'broken' | 'unknown';
  readonly message: string;
  /** To be applied with `kubectl apply --server-side`. */
  readonly mend?: readonly KubeObject[];
  /** What else to do, in one sentence. */
  readonly advice?: string;
}

type Found = Omit<Link, 'link' | 'state'>;

/** Judges every link, in the order of {@link LINKS}. Total. */
export function doctorChain(input: DoctorInput): readonly Link[] {
  const broken: Readonly<Record<LinkName, (given: DoctorInput) => Found | undefined>> = {
    image: unreadableImage,
    places: noPlace,
    'service-account': accountMissing,
    injection: notInjected,
    'secrets-there': secretMissing,
    'secrets-readable': secretUnreadable,
    credential: noCredential,
    'mirror-credential': mirrorBare,
    distribution: ({ troubles }) => trouble(troubles.find(({ onNode }) => !onNode)),
    node: ({ troubles }) => trouble(troubles.find(({ onNode }) => onNode)),
    registry: refused,
  };
  return LINKS.map((link): Link => {
    const found = broken[link](input);
    if (found !== undefined) return { link, state: 'broken', ...found };
    return input.unread.length > 0 && LINKS.indexOf(link) > LINKS.indexOf('places')
      ? { link, state: 'unknown', message: 'not all could be read' }
      : { link, state: 'ok', message: OK[link] };
  });
}

const OK: Readonly<Record<LinkName, string>> = {
  image: 'every image has a name that can be read',
  places: 'every image has a place to be pulled from',
  'service-account': 'the ServiceAccount is there',
  injection: 'the pod has every Secret that profiles and SidecarSets give it',
  'secrets-there': 'every Secret that is listed exists',
  'secrets-readable': 'every Secret that is listed can be read by the kubelet',
  credential: 'nothing stands between the image and its credentials',
  'mirror-credential': 'mirrors get a credential where there is one for them',
  distribution: 'nothing that brings Secrets here reports trouble',
  node: 'the node reports no trouble',
  registry: 'no event says that a registry refused',
};

/** The first broken link. */
export function firstBroken(links: readonly Link[]): Link | undefined {
  return links.find(({ state }) => state === 'broken');
}

function unreadableImage({ images }: DoctorInput): Found | undefined {
  const bad = images.find(({ fault }) => fault !== undefined);
  if (bad === undefined) return undefined;
  return {
    message: `image "${bad.text}" cannot be read: ${bad.fault}`,
    advice: 'Correct it in the template',
  };
}

function explanations({ images }: DoctorInput): readonly Explanation[] {
  return images.flatMap(({ explanation }) => explanation ?? []);
}

function noPlace(input: DoctorInput): Found | undefined {
  const bad = explanations(input).find(({ places }) => places.length === 0);
  if (bad === undefined) return undefined;
  const [why] = bad.skipped;
  const from = why?.from === undefined ? '' : ` (${why.from})`;
  return {
    message: `"${bad.image}" may be pulled from nowhere${why === undefined ? '' : `: ${why.reference} ${why.why}${from}`}`,
    advice: 'Allow its source in the mirror set, or unblock it in registries.conf',
  };
}

function accountMissing({ account, namespace, isPod }: DoctorInput): Found | undefined {
  if (isPod || !account.known || account.object !== undefined) return undefined;
  return {
    message: `ServiceAccount "${namespace}/${account.name}" does not exist: no pod can be made`,
    mend: [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account.name, namespace } }],
  };
}

function notInjected({ notInjected: missing, isPod }: DoctorInput): Found | undefined {
  const [first] = missing;
  if (first === undefined || !isPod) return undefined;
  return {
    message: `${first.by} gives such pods Secret "${first.secret}", and this one does not list it: it was made before, or while nothing injected`,
    advice: 'Delete the pod: the one that follows it gets the Secret',
  };
}

function secretMissing(input: DoctorInput): Found | undefined {
  const listed = explanations(input)[0]?.secrets ?? [];
  const missing = listed.find(({ state }) => state === 'missing');
  if (missing === undefined || !isNeeded(input)) return undefined;
  const better = input.images.flatMap(({ elsewhere }) => elsewhere)[0];
  const message = `Secret "${missing.name}", listed by ${missing.listedBy}, does not exist`;
  if (better === undefined) return { message, advice: `Create it, or bring it here by a PullSecretProfile` };
  return { message, ...replaced(input, missing.name, better) };
}

/** Another credential may do: then a Secret that is missing stands in nobody's way. */
function isNeeded(input: DoctorInput): boolean {
  return (
    input.complaint?.cause === 'secret-missing' ||
    input.complaint?.cause === 'unauthorized' ||
    explanations(input).some(({ kubelet }) => kubelet.anonymous)
  );
}

function secretUnreadable(input: DoctorInput): Found | undefined {
  const [first] = explanations(input);
  const blocked = first?.kubelet.blockedBy;
  if (blocked !== undefined) {
    const name = blocked.source.split('/').at(-1) ?? '';
    const message = `${blocked.source} ${blocked.why}: one unreadable Secret fails every image of the pod`;
    return { message, ...replaced(input, name, undefined) };
  }
  const ignored = first?.secrets.find(({ state }) => state === 'ignored');
  if (ignored === undefined || !isNeeded(input)) return undefined;
  return {
    message: `Secret "${ignored.name}", listed by ${ignored.listedBy}, is passed over: it has another type than a pull secret, or no data under the key of its type`,
    ...replaced(input, ignored.name, input.images.flatMap(({ elsewhere }) => elsewhere)[0]),
    ...(input.images.some(({ elsewhere }) => elsewhere.length > 0)
      ? {}
      : {
          mend: [],
          advice: 'The type of a Secret cannot be changed: make it anew as kubernetes.io/dockerconfigjson',
        }),
  };
}

function noCredential(input: DoctorInput): Found | undefined {
  for (const { explanation, elsewhere } of input.images) {
    if (explanation?.kubelet.anonymous !== true) continue;
    const [better] = elsewhere;
    const message = `no credential that is listed matches "${explanation.image}"`;
    if (better !== undefined)
      return {
        message: `${message}; Secret "${better}" of the namespace does`,
        ...replaced(input, undefined, better),
      };
    const near = explanation.findings.find((one) => one.severity === 'warning' && one.fix !== undefined);
    // A public image needs none: only with a complaint, or with an entry that nearly matches, is it a fault.
    if (near !== undefined && explanation.kubelet.unused.some((one) => one.near))
      return { message: `${message}: ${near.message}`, advice: near.fix ?? '' };
    if (input.complaint?.cause === 'unauthorized')
      return {
        message: `${message}, and the registry wants one`,
        advice: 'Add an entry for its host to a Secret of the pod',
      };
  }
  return undefined;
}

function mirrorBare(input: DoctorInput): Found | undefined {
  const [mirror] = input.images.flatMap(({ mirrors }) => mirrors);
  if (mirror === undefined) return undefined;
  const { matchImages, mayRead } = input.provider;
  const host = mirror.split('/', 1)[0] ?? mirror;
  const message = `CRI-O asks mirror "${mirror}" without a credential, although a Secret of the namespace has one: pull secrets of pods never reach mirrors`;
  const mend = mendProvider(input, { matchImages, mayRead });
  return {
    message: mayRead ? message : `${message}; the credential provider may not read it`,
    mend,
    advice: `Or put an entry for "${host}" into kube-system/additional-pull-secret`,
  };
}

function trouble(found: DoctorInput['troubles'][number] | undefined): Found | undefined {
  return found === undefined ? undefined : { message: `${found.object}: ${found.message}` };
}

function refused({ complaint }: DoctorInput): Found | undefined {
  if (complaint === undefined) return undefined;
  const { said, advice } = COMPLAINTS[complaint.cause];
  const image = complaint.image === undefined ? '' : ` of "${complaint.image}"`;
  return { message: `the last pull${image} failed: ${said}`, advice };
}

const COMPLAINTS: Readonly<Record<PullComplaint, { readonly said: string; readonly advice: string }>> = {
  'image-name': { said: 'the image has no name that can be read', advice: 'Correct it in the template' },
  'secret-missing': {
    said: 'a Secret that is listed could not be read',
    advice: 'If it is there now, delete the pod',
  },
  'rate-limited': {
    said: 'the registry asks to wait',
    advice: 'Pull with a credential, or through a mirror',
  },
  certificate: {
    said: "the registry's certificate is not trusted by the node",
    advice: 'Add its CA to the nodes: additionalTrustedCA of image.config.openshift.io, or the system store',
  },
  unreachable: {
    said: 'the registry could not be reached',
    advice: 'Look at DNS, proxy and firewall of the node',
  },
  signature: {
    said: 'the signature policy of the node refuses the image',
    advice: 'Look at ClusterImagePolicy and policy.json',
  },
  'not-found': {
    said: 'the image is not there',
    advice: 'Look at its tag; some registries say this instead of "denied"',
  },
  unauthorized: {
    said: 'the registry refused the credential',
    advice: 'Run pullwright verify for the image: it says which credential is refused, and why',
  },
};

function replaced(
  input: DoctorInput,
  bad: string | undefined,
  good: string | undefined,
): Pick<Found, 'mend' | 'advice'> {
  return mendAccount(input, bad, good);
}
