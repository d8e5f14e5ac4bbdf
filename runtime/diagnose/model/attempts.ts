/**
 * Which credentials are tried for an image, in which order, at every place that it is pulled from: for the kubelet, which
 * chooses them, and for CRI-O and containerd, which send them.
 *
 * - The kubelet tries every credential whose key matches; none means one anonymous attempt.
 * - CRI-O sends the kubelet's credential to the image's own host only. A mirror on another host gets the one credential that
 *   containers/image finds in the node's file, never one of the pod's secrets.
 * - containerd sends the kubelet's credential wherever it pulls from; it knows no mirror sets, and reads no auth file.
 * Source of the rule: auth-lookup, mirrors.ts; CRI-O's use of both; containerd's `ParseAuth`, which checks no host.
 */

import { type ContainersLookup, lookupForContainers } from '../../core/docker-config/containers-keyring.ts';
import { credentialDoubt, type ExpiringCredential } from '../../core/docker-config/expiry.ts';
import { kubeletKeyring, lookupForKubelet, type Ring } from '../../core/docker-config/kubelet-keyring.ts';
import { parseSchemelessUrl, type SchemelessUrl } from '../../core/docker-config/match-images.ts';
import {
  type AuthSource,
  helperOf,
  readAuthSource,
  withHelper,
} from '../../core/docker-config/pull-secret.ts';
import { registryKey } from '../../core/docker-config/registry-key.ts';
import { fromByteText } from '../../core/go/text.ts';
import { formatImageReference, type ImageReference, pullTag } from '../../core/image-reference.ts';
import {
  type Candidate,
  compileMirrors,
  type MirrorRule,
  originText,
  withoutTagAndDigest,
} from '../../core/mirrors/resolve.ts';
import { oncePer } from '../../core/record.ts';
import { redact, sameSecret } from '../../core/redacted.ts';
import { type TextPosition, withoutUserInfo } from '../../core/text.ts';
import { mirrorFix } from '../../registry-overrides/mirror-sets/fix.ts';
import { resolveOnNode } from '../../registry-overrides/planes.ts';
import { documentFault } from '../checks/docker-config.ts';
import { judgeImage, verificationOf } from '../checks/pull.ts';
import type {
  EntryPlace,
  ExplainedCredential,
  ExplainedPlace,
  ExplainInput,
  Explanation,
  KubeletView,
  Sent,
  SkippedPlace,
  UnusedEntry,
} from './types.ts';

// Why the kubelet does not use an entry for an image, in words: what an answer to "why does this not pull?" consists of.

/** What is compared of a key and of an image to know whether they are about one registry; without a `url` nothing can match. */
type About = Pick<Ring['entries'][number], 'registry' | 'url'>;

function aboutImage(repository: string): About {
  const target = parseSchemelessUrl(repository);
  const [host = ''] = repository.split('/', 1);
  return { registry: registryKey(host).meaning, url: target.ok ? target.url : undefined };
}

/** Whether a key is about the registry of an image, so that it is worth showing first. */
function isAbout({ registry, url: key }: About, { registry: own, url: target }: About): boolean {
  if (key === undefined || target === undefined) return false;
  const [host, imageHost] = [hostOf(key), hostOf(target)];
  // One of the two names a port and the other none.
  const isWithoutPort = host === imageHost && (key.port === '') !== (target.port === '');
  // `*.example.com` was probably meant for this host too: a deeper one, or the domain itself.
  const suffix = host.slice(host.lastIndexOf('*') + 1);
  const isMeant = host.includes('*') && suffix.includes('.') && `.${imageHost}`.endsWith(suffix);
  return registry === own || isWithoutPort || isMeant;
}

function hostOf({ labels }: SchemelessUrl): string {
  return fromByteText(labels.join('.'));
}

/** Why a key that does not match an image does not. */
function difference({ url: key }: About, { url: target }: About, near: boolean): string {
  if (key === undefined || target === undefined)
    return 'the key is not a host with an optional path, so the kubelet ignores it';
  const host = hostOf(key);
  const imageHost = hostOf(target);
  if (host.includes('*') && key.labels.length !== target.labels.length)
    return `a star stands for one part of a host name, so the number of parts must be the same: "${host}" is not for "${imageHost}"`;
  const spelling = near && !host.includes('*') ? hostDifference(host, imageHost, key.path) : undefined;
  if (spelling !== undefined) return spelling;
  if (key.port !== target.port)
    return `ports are compared as they are written: the key has ${key.port || 'none'}, the image ${target.port || 'none'}`;
  return near ? `the image is not below "${fromByteText(key.path)}"` : 'another registry';
}

/** What differs between two spellings of one host. */
function hostDifference(host: string, imageHost: string, path: string): string | undefined {
  if (host === imageHost) return undefined;
  if (host === 'index.docker.io' && path === '') {
    return 'it counts for Docker Hub only when no other key of the same list matches';
  }
  if (host.toLowerCase() !== imageHost.toLowerCase()) {
    return `"${host}" is another name of Docker Hub, which the kubelet does not take for "${imageHost}"`;
  }
  return `the host is compared as it is written: "${host}" is not "${imageHost}"`;
}

/** The image as the runtime sees it. */
export function fullImage(reference: ImageReference): string {
  const tag = pullTag(reference);
  return formatImageReference(tag === undefined ? reference : { ...reference, tag });
}

/**
 * Explains. Total.
 */
export function explainImage(input: ExplainInput): Explanation {
  const { repository } = input.image;
  const image = fullImage(input.image);
  const resolution = resolveOnNode(compiled(input.mirrors), image, input.policy);
  const kubelet = explainKubelet(input);
  const fix = mirrorFix(resolution, input.hosted === true);
  const named = ({ reference, kind, origin }: Candidate): Omit<ExplainedPlace, 'crio'> => ({
    reference,
    kind,
    ...(origin === undefined ? {} : { from: originText(origin) }),
  });
  const places = resolution.candidates.map(
    (one): ExplainedPlace => ({ ...named(one), crio: sentByCrio(input, kubelet, one.reference) }),
  );
  const skipped = resolution.skipped.map((one): SkippedPlace => ({ ...named(one), why: one.message }));
  const containerd: Sent =
    kubelet.tried.length > 0
      ? { what: 'kubelet' }
      : { what: 'nothing', why: 'the kubelet has no credential for the image' };
  return {
    image,
    repository,
    secrets: input.secrets.map(({ source: _source, ...rest }) => rest),
    ...(input.node === undefined ? {} : { node: input.node.name }),
    ...(input.versions?.runtime === undefined ? {} : { runtime: input.versions.runtime }),
    kubelet,
    places,
    skipped,
    containerd,
    verification: verificationOf(kubelet, input.node?.name, input.versions),
    ...(fix === undefined ? {} : { mirrorFix: fix }),
    findings: judgeImage({ input, image, kubelet, places, skipped, mirrorFix: fix }),
  };
}

/** Rules are those of a cluster, and there may be thousands of images. */
const compiled = oncePer((rules: readonly MirrorRule[]) => compileMirrors(rules));

function explainKubelet(input: ExplainInput): KubeletView {
  const secrets = input.secrets.flatMap((secret) => secret.source ?? []);
  const keyring = kubeletKeyring({ secrets, ...(input.node === undefined ? {} : { node: input.node }) });
  if (!keyring.ok) {
    const broken = secrets.find((source) => source.name === keyring.source);
    const why = broken === undefined ? 'cannot be read' : documentFault(broken);
    return { blockedBy: { source: keyring.source, why }, tried: [], unused: [], anonymous: false };
  }
  const tried = lookupForKubelet(keyring.rings, input.image.repository);
  const used = new Set(tried.map((one) => `${one.source}\n${one.written}`));
  return {
    tried: tried.map(({ source, written, position, by, credential }): ExplainedCredential => {
      const empty = credential.username === '' && sameSecret(credential.password, NO_PASSWORD);
      const doubt = empty
        ? elsewhere([...secrets, input.node], source, written)
        : credentialDoubt(credential, input.now);
      const entry = {
        ...placeOf(input, source, written, position),
        username: credential.username,
        by,
        empty,
        ...(doubt === undefined ? {} : { doubt }),
      };
      credentials.set(entry, credential);
      return entry;
    }),
    ...unusedEntries(input, keyring.rings, used),
    anonymous: tried.length === 0,
  };
}

const NO_PASSWORD = redact('');

/** Where the password of an entry is, if its document says so. */
function elsewhere(
  sources: readonly (AuthSource | undefined)[],
  name: string,
  key: string,
): string | undefined {
  const source = sources.find((one) => one?.name === name);
  const parsed = source === undefined ? undefined : readAuthSource(source);
  const helper = parsed?.ok === true ? helperOf(parsed.config, key) : undefined;
  return helper === undefined ? undefined : withHelper(helper);
}

function placeOf(input: ExplainInput, source: string, key: string, position: TextPosition): EntryPlace {
  const fromPull = source === input.pullFile?.source.name ? input.pullFile.origins.get(key) : undefined;
  const origin = fromPull ?? (source === input.node?.name ? input.merge?.origins.get(key) : undefined);
  return { source, key: withoutUserInfo(key), ...(origin === undefined ? {} : { origin }), position };
}

/** Entries that are not used are listed up to here, where it is to be brief. */
const MOST_UNUSED = 6;

/** Entries about the same registry first. */
function unusedEntries(
  input: ExplainInput,
  rings: readonly Ring[],
  used: ReadonlySet<string>,
): Pick<KubeletView, 'unused' | 'others'> {
  const image = aboutImage(input.image.repository);
  const entries = rings.flatMap((ring) =>
    used.size === 0
      ? ring.entries
      : ring.entries.filter(({ entry }) => !used.has(`${entry.source}\n${entry.written}`)),
  );
  const unused = entries.flatMap((key): readonly UnusedEntry[] => {
    const near = isAbout(key, image);
    if (input.brief === true && !near) return [];
    const { source, written, position } = key.entry;
    return [{ ...placeOf(input, source, written, position), why: difference(key, image, near), near }];
  });
  const ordered = [...unused.filter((one) => one.near), ...unused.filter((one) => !one.near)];
  const shown = input.brief === true ? ordered.slice(0, MOST_UNUSED) : ordered;
  return { unused: shown, ...(input.brief === true ? { others: entries.length - shown.length } : {}) };
}

/** The kubelet's credential goes to the image's own host; an empty user name falls through to the file. */
function sentByCrio(input: ExplainInput, kubelet: KubeletView, reference: string): Sent {
  if (kubelet.blockedBy !== undefined)
    return { what: 'failure', why: 'the kubelet does not get as far as a pull' };
  const [host = ''] = reference.split('/', 1);
  const carried = kubelet.tried.some((one) => one.username !== '');
  if (host === input.image.domain && carried) return { what: 'kubelet' };
  const file = input.pullFile?.source ?? input.node;
  const files = file === undefined ? [] : [file];
  return sentFromFile(input, lookupForContainers(files, withoutTagAndDigest(reference)));
}

function sentFromFile(input: ExplainInput, found: ContainersLookup): Sent {
  if (found.found === 'error')
    return { what: 'failure', why: 'the auth file cannot be used for this look-up' };
  if (found.found === 'helper') return { what: 'helper', source: found.source, helper: found.helper };
  if (found.found === 'credential') {
    const { source, written, position, rivals } = found.entry;
    const entry = placeOf(input, source, written, position);
    credentials.set(entry, found.credential);
    return { what: 'entry', entry, username: found.credential.username, rivals: rivals.map(withoutUserInfo) };
  }
  if (found.stoppedBy === undefined) return { what: 'nothing', why: 'no entry of the auth file matches' };
  return {
    what: 'nothing',
    why: `entry "${withoutUserInfo(found.stoppedBy.written)}" of the auth file holds no "auth", and ends the search`,
  };
}

// The attempts behind an explanation: which credential goes to which place, with the credential itself, so that a registry can
// be tested with each.
// Source of the rule: explain.ts, which says who sends what where; nothing is decided here a second time.

/** One credential (or none) at one place. */
export interface PullAttempt {
  /** Where: host, path, tag or digest. */
  readonly reference: string;
  readonly kind: 'mirror' | 'source';
  /** The entry that is sent; absent for an anonymous attempt. */
  readonly entry?: EntryPlace;
  readonly credential?: ExpiringCredential | undefined;
  /** Why there is nothing to try: a credential helper, an unreadable Secret. */
  readonly notAsked?: string;
}

/** What the entries of explanations hold, which no explanation does itself. */
const credentials = new WeakMap<EntryPlace, ExpiringCredential>();

/** All attempts of an explanation, in the order in which CRI-O makes them. */
export function pullAttempts({ places, kubelet }: Explanation): readonly PullAttempt[] {
  return places.flatMap(({ reference, kind, crio }) =>
    sentTo(crio, kubelet).map((sent): PullAttempt => ({ reference, kind, ...sent })),
  );
}

function sentTo(sent: Sent, { tried }: KubeletView): readonly Omit<PullAttempt, 'reference' | 'kind'>[] {
  if (sent.what === 'nothing') return [{}];
  if (sent.what === 'failure') return [{ notAsked: sent.why }];
  if (sent.what === 'helper')
    return [{ notAsked: `the credential helper "${sent.helper}" of the node cannot be run from here` }];
  // An entry without a user falls through to the file, which has an attempt of its own.
  const entries = sent.what === 'entry' ? [sent.entry] : tried.filter(({ username }) => username !== '');
  return entries.map((entry) => ({ entry, credential: credentials.get(entry) }));
}
