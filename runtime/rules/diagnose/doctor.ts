/**
 * The chain from an image's name to a credential that a registry takes, link by link: the first one that is broken is what to
 * mend first, because everything behind it depends on it.
 */

import type { KubeObject } from '../kubernetes/object.ts';
import { FAULT_OF } from './doctor-links.ts';
import type { Explanation } from './explain.ts';
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

/** What is wrong with a link. */
export type Fault = Omit<Link, 'link' | 'state'>;

/** Judges every link, in the order of {@link LINKS}. Total. */
export function doctorChain(input: DoctorInput): readonly Link[] {
  return LINKS.map((link): Link => {
    const found = FAULT_OF[link](input);
    if (found !== undefined) return { link, state: 'broken', ...found };
    return input.unread.length > 0 && LINKS.indexOf(link) > LINKS.indexOf('places')
      ? { link, state: 'unknown', message: 'not all could be read' }
      : { link, state: 'ok', message: link === 'injection' ? injectionText(input) : OK[link] };
  });
}

/** What was seen of the list, and not that nothing was missed. */
function injectionText({ images, isPod }: DoctorInput): string {
  const listed = images.flatMap(({ explanation }) => explanation?.secrets ?? []);
  const names = new Set(listed.map(({ name }) => name));
  const who = isPod ? 'the pod' : 'a pod of this template';
  if (names.size === 0) return `${who} lists no Secret, and no profile or SidecarSet gives it one`;
  const injected = new Set(listed.filter(({ listedBy }) => INJECTS.test(listedBy)).map(({ name }) => name));
  const given = injected.size === 0 ? '' : `, ${injected.size} of them by profiles and SidecarSets`;
  return `${who} lists ${names.size} Secrets${given}; nothing that they give is missing`;
}

const INJECTS = /^(PullSecretProfile|SidecarSet)\//;

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
