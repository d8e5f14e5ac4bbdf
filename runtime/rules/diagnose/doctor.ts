/**
 * The chain from an image's name to a credential that a registry takes, link by link: the first one that is broken is what to
 * fix first, because everything behind it depends on it.
 */

import { counted } from '../text/counted.ts';
import { FAULT_OF } from './doctor-links.ts';
import type { DoctorInput, Link, LinkName, NodeEvidence } from './doctor-types.ts';
import { LINKS } from './doctor-types.ts';

/** Judges every link, in the order of {@link LINKS}. Total. */
export function doctorChain(input: DoctorInput): readonly Link[] {
  return LINKS.map((link): Link => {
    const found = FAULT_OF[link](input);
    if (found !== undefined) return { link, state: 'broken', ...found };
    return input.unread.length > 0 && LINKS.indexOf(link) > LINKS.indexOf('places')
      ? { link, state: 'unknown', message: 'not all could be read' }
      : { link, state: 'ok', message: TEXT[link]?.(input) ?? OK[link] };
  });
}

/** Links whose text says what was seen. */
const TEXT: Readonly<Partial<Record<LinkName, (input: DoctorInput) => string | undefined>>> = {
  injection: injectionText,
  'secrets-there': missingText,
  credential: credentialText,
  distribution: notBroughtText,
  node: ({ node }) => (node === undefined ? undefined : nodeText(node)),
  registry: registryText,
};

/** That nothing matches is no fault of a public image, and no credential either. */
function credentialText({ images }: DoctorInput): string | undefined {
  const bare = images.find(({ explanation }) => explanation?.kubelet.anonymous === true);
  return bare === undefined
    ? undefined
    : `no credential that is listed matches "${bare.text}": it is pulled without one, which works where it is public`;
}

/** A template was never pulled itself. */
function registryText({ isPod, pods }: DoctorInput): string | undefined {
  if (isPod) return undefined;
  return pods === 0
    ? 'not judged: no pod of this template was found, so nobody has asked a registry'
    : `no event of its ${pods === 1 ? 'pod' : `${pods} pods`} says that a pull failed`;
}

/** What is known of the node, and what is not. */
function nodeText({ name, agent, behind }: NodeEvidence): string {
  if (agent === 'unknown') return `not judged: nothing here tells of the agent of node "${name}"`;
  const has = `the agent of node "${name}" is ready`;
  return behind === undefined
    ? `${has}; it does not report what the node's file holds (agent.report)`
    : `${has}, and reports the pull secret that is there`;
}

/** What was seen of the list, and not that nothing was missed. */
function injectionText({ images, isPod }: DoctorInput): string {
  const listed = images.flatMap(({ explanation }) => explanation?.secrets ?? []);
  const names = new Set(listed.map(({ name }) => name));
  const who = isPod ? 'the pod' : 'a pod of this template';
  if (names.size === 0) return `${who} lists no Secret, and no profile or SidecarSet gives it one`;
  const injected = new Set(listed.filter(({ listedBy }) => INJECTS.test(listedBy)).map(({ name }) => name));
  const given = injected.size === 0 ? '' : `, ${injected.size} of them by profiles and SidecarSets`;
  return `${who} lists ${counted(names.size, 'Secret')}${given}; nothing that ${names.size === 1 ? 'it gives' : 'they give'} is missing`;
}

/** A Secret that is listed and missing, where the chain holds without it. */
function missingSecret({ images }: DoctorInput): { name: string; listedBy: string } | undefined {
  return images
    .flatMap(({ explanation }) => explanation?.secrets ?? [])
    .find(({ state }) => state === 'missing');
}

function missingText(input: DoctorInput): string | undefined {
  const missing = missingSecret(input);
  if (missing === undefined) return undefined;
  return `Secret "${missing.name}", listed by ${missing.listedBy}, does not exist, and does not stand in the way: the image is tried with other credentials`;
}

function notBroughtText(input: DoctorInput): string | undefined {
  const missing = missingSecret(input);
  const giver = input.givers.find(({ secret }) => secret === missing?.name);
  if (giver === undefined) return undefined;
  const { by, secret, says = 'it is Ready, so the copy is on its way or was refused here' } = giver;
  return `${by} has not brought Secret "${secret}", which does not stand in the way: ${says}`;
}

const INJECTS = /^(PullSecretProfile|SidecarSet)\//;

const OK: Readonly<Record<LinkName, string>> = {
  image: 'every image has a name that can be read',
  places: 'every image has a place to be pulled from',
  'service-account': 'the ServiceAccount is there',
  injection: 'the pod has every Secret that profiles and SidecarSets give it',
  'secrets-there': 'every Secret that is listed exists',
  'secrets-readable': 'every Secret that is listed and there can be read by the kubelet',
  credential: 'nothing stands between the image and its credentials',
  'mirror-credential': 'mirrors get a credential where there is one for them',
  distribution: 'nothing that brings Secrets here reports trouble',
  node: 'the node reports no trouble',
  registry: 'neither the status nor an event says that a pull failed',
};

/** The first broken link. */
export function firstBroken(links: readonly Link[]): Link | undefined {
  return links.find(({ state }) => state === 'broken');
}
