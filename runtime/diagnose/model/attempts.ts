/**
 * Explains which credentials are tried for an image at each pull source, in order: by the kubelet, which selects them, and by
 * CRI-O and containerd, which send them.
 *
 * - The kubelet tries every credential whose key matches. Without a match it makes one anonymous attempt.
 * - CRI-O sends the kubelet's credential to the image's own host only. For a mirror on another host, containers/image selects one
 *   credential from the node's file, never from the pod's secrets.
 * - containerd sends the kubelet's credential to every host. It has no mirror sets, and reads no auth file.
 * Source of the rule: CRI-O's use of containers/image; containerd's `ParseAuth`, which checks no host without a server address.
 */

import { type ContainersLookup, lookupForContainers } from '../../core/docker-config/containers-keyring.ts';
import { credentialDoubt, type ExpiringCredential } from '../../core/docker-config/expiry.ts';
import { kubeletKeyring, lookupForKubelet, type Ring } from '../../core/docker-config/kubelet-keyring.ts';
import { parseSchemelessUrl, type SchemelessUrl } from '../../core/docker-config/match-images.ts';
import { type AuthSource, helperOf, readAuthSource } from '../../core/docker-config/pull-secret.ts';
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
import { defined, oncePer } from '../../core/record.ts';
import { redact, sameSecret } from '../../core/redacted.ts';
import { type TextPosition, withoutUserInfo } from '../../core/text.ts';
import { mirrorFix } from '../../registry-overrides/mirror-sets/fix.ts';
import { resolveOnNode } from '../../registry-overrides/planes.ts';
import { documentFault } from '../checks/docker-config.ts';
import { judgeImage, verificationOf } from '../checks/pull.ts';
import type {
  EntryPlace,
  ExplainedCredential,
  ExplainInput,
  Explanation,
  KubeletView,
  ListedSecret,
  Sent,
  UnusedEntry,
} from './types.ts';

// Reasons why the kubelet does not use an entry for an image.

/** Parts of a key or an image that are compared to match registries; without a `url` nothing matches. */
type About = Pick<Ring[number], 'registry' | 'url'>;

function aboutImage(repository: string): About {
  const target = parseSchemelessUrl(repository);
  const [host = ''] = repository.split('/', 1);
  return { registry: registryKey(host).meaning, url: target.ok ? target.value : undefined };
}

/** Reports whether a key is, or was probably meant, for the registry of an image. */
function isAbout({ registry, url: key }: About, { registry: own, url: target }: About): boolean {
  if (key === undefined || target === undefined) return false;
  const [host, imageHost] = [hostOf(key), hostOf(target)];
  // Only one of the two has a port.
  const isWithoutPort = host === imageHost && (key.port === '') !== (target.port === '');
  // `*.example.com` was probably meant to match a deeper subdomain or the domain too.
  const suffix = host.slice(host.lastIndexOf('*') + 1);
  const isMeant = host.includes('*') && suffix.includes('.') && `.${imageHost}`.endsWith(suffix);
  return registry === own || isWithoutPort || isMeant;
}

function hostOf({ labels }: SchemelessUrl): string {
  return fromByteText(labels.join('.'));
}

/** Explains why a key does not match an image. */
function difference({ url: key }: About, { url: target }: About, near: boolean): string {
  if (key === undefined || target === undefined)
    return 'the key is not a host with an optional path, so the kubelet ignores it';
  const host = hostOf(key);
  const imageHost = hostOf(target);
  if (host.includes('*') && key.labels.length !== target.labels.length)
    return `a star matches one label of a host name, so the number of labels must be equal: "${host}" does not match "${imageHost}"`;
  const spelling = near && !host.includes('*') ? hostDifference(host, imageHost, key.path) : undefined;
  if (spelling !== undefined) return spelling;
  if (key.port !== target.port)
    return `ports are compared as written: the key has ${key.port || 'none'}, the image ${target.port || 'none'}`;
  return near ? `the image is not under "${fromByteText(key.path)}"` : 'another registry';
}

/** Explains how two spellings of a host differ; undefined if they are equal. */
function hostDifference(host: string, imageHost: string, path: string): string | undefined {
  if (host === imageHost) return undefined;
  if (host === 'index.docker.io' && path === '')
    return 'it matches Docker Hub only if no other key of the same list matches';
  if (host.toLowerCase() !== imageHost.toLowerCase())
    return `"${host}" is an alias of Docker Hub, which the kubelet does not match with "${imageHost}"`;
  return `hosts are compared as written: "${host}" is not "${imageHost}"`;
}

/** Formats the reference as the runtime pulls it, with a default tag. */
export function fullImage(reference: ImageReference): string {
  const tag = pullTag(reference);
  return formatImageReference(tag === undefined ? reference : { ...reference, tag });
}

/** Explains the pull of an image. Never throws. */
export function explainImage(input: ExplainInput): Explanation {
  const { repository } = input.image;
  const image = fullImage(input.image);
  const resolution = resolveOnNode(compiled(input.mirrors), image, input.policy);
  const kubelet = explainKubelet(input);
  const fix = mirrorFix(resolution, input.hosted === true);
  const places = resolution.candidates.map((one) => {
    return { ...namedPlace(one), crio: sentByCrio(input, kubelet, one.reference) };
  });
  const skipped = resolution.skipped.map((one) => ({ ...namedPlace(one), why: one.message }));
  const none: Sent = { what: 'nothing', why: 'the kubelet has no credential for the image' };
  const containerd: Sent = kubelet.tried.length > 0 ? { what: 'kubelet' } : (unknownIn(kubelet) ?? none);
  const explained = {
    image,
    repository,
    secrets: input.secrets.map(({ source: _source, ...rest }) => rest),
    ...defined({ node: input.node?.name, runtime: input.versions?.runtime }),
    kubelet,
    places,
    skipped,
    containerd,
    verification: verificationOf(kubelet, input.node?.name, input.versions),
    ...(fix === undefined ? {} : { mirrorFix: fix }),
  };
  return { ...explained, findings: judgeImage({ ...explained, input }) };
}

/** A pull source, with the object and field of the rule that names it. */
export function namedPlace({ reference, kind, origin }: Candidate, place = originText) {
  return { reference, kind, ...(origin && { from: place(origin) }) };
}

/** Cached, because thousands of images share the rules of a cluster. */
const compiled = oncePer((rules: readonly MirrorRule[]) => compileMirrors(rules));

const UNREAD: readonly ListedSecret['state'][] = ['encrypted', 'pending', 'unknown'];

function unknownIn({ unknown: why }: KubeletView): Sent | undefined {
  return why === undefined ? undefined : { what: 'unknown', why };
}

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
  const unread = input.secrets.find(({ state }) => tried.length === 0 && UNREAD.includes(state));
  return {
    tried: tried.map(({ source, written, position, by, credential }): ExplainedCredential => {
      const empty = credential.username === '' && sameSecret(credential.password, NO_PASSWORD);
      const doubt = empty
        ? emptiness([...secrets, input.node], source, written)
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
    anonymous: tried.length === 0 && unread === undefined,
    ...(unread && { unknown: `the content of Secret "${unread.name}" is unknown` }),
  };
}

const NO_PASSWORD = redact('');

/** Why an entry has no user and no password: a credential helper has them, or what `validate` says. */
function emptiness(sources: readonly (AuthSource | undefined)[], name: string, key: string) {
  const source = sources.find((one) => one?.name === name);
  const parsed = source === undefined ? undefined : readAuthSource(source);
  if (parsed?.ok !== true) return undefined;
  const entry = parsed.config.entries.find((one) => one.key.written === key);
  return helperOf(parsed.config, key) ?? entry?.fault?.message;
}

function placeOf(input: ExplainInput, source: string, key: string, position: TextPosition): EntryPlace {
  const fromPull = source === input.pullFile?.source.name ? input.pullFile.origins.get(key) : undefined;
  const origin = fromPull ?? (source === input.node?.name ? input.merge?.origins.get(key) : undefined);
  return { source, key: withoutUserInfo(key), ...(origin === undefined ? {} : { origin }), position };
}

/** Maximum number of unused entries with `brief`. */
const MOST_UNUSED = 6;

/** Lists unused entries, those for the same registry first. */
function unusedEntries(input: ExplainInput, rings: readonly Ring[], used: ReadonlySet<string>) {
  const image = aboutImage(input.image.repository);
  const entries = rings.flat().filter(({ source, written }) => !used.has(`${source}\n${written}`));
  const unused = entries.flatMap((key): readonly UnusedEntry[] => {
    const near = isAbout(key, image);
    if (input.brief === true && !near) return [];
    const { source, written, position } = key;
    return [{ ...placeOf(input, source, written, position), why: difference(key, image, near), near }];
  });
  const ordered = [...unused.filter((one) => one.near), ...unused.filter((one) => !one.near)];
  const shown = input.brief === true ? ordered.slice(0, MOST_UNUSED) : ordered;
  return { unused: shown, ...(input.brief && { others: entries.length - shown.length }) };
}

/** CRI-O sends the kubelet's credential to the image's own host. For other hosts or an empty user name it uses the auth file. */
function sentByCrio(input: ExplainInput, kubelet: KubeletView, reference: string): Sent {
  if (kubelet.blockedBy !== undefined) return { what: 'failure', why: 'the kubelet fails before the pull' };
  const isCarried = kubelet.tried.some((one) => one.username !== '');
  const carried = isCarried ? ({ what: 'kubelet' } as const) : unknownIn(kubelet);
  if (carried !== undefined && reference.split('/', 1)[0] === input.image.domain) return carried;
  const files = [input.pullFile?.source ?? input.node ?? []].flat();
  return sentFromFile(input, lookupForContainers(files, withoutTagAndDigest(reference)));
}

function sentFromFile(input: ExplainInput, found: ContainersLookup): Sent {
  if (found.found === 'error') return { what: 'failure', why: 'the auth file cannot be read' };
  if (found.found === 'helper') return { what: 'helper', source: found.source, helper: found.helper };
  if (found.found === 'credential') {
    const { source, written, position, rivals } = found.entry;
    const entry = placeOf(input, source, written, position);
    credentials.set(entry, found.credential);
    return { what: 'entry', entry, username: found.credential.username, rivals: rivals.map(withoutUserInfo) };
  }
  if (found.stoppedBy === undefined) return { what: 'nothing', why: 'no entry of the auth file matches' };
  const stop = withoutUserInfo(found.stoppedBy.written);
  return { what: 'nothing', why: `entry "${stop}" of the auth file has no "auth", and stops the search` };
}

// The attempts of an explanation: the credential for each pull source, so that `verify` can probe the registries. They are
// derived from the explanation only.

/** One credential (or none) at one pull source. */
export interface PullAttempt extends Pick<Candidate, 'reference' | 'kind'> {
  /** The entry that is sent; absent for an anonymous attempt. */
  readonly entry?: EntryPlace;
  readonly credential?: ExpiringCredential | undefined;
  /** Why the registry is not probed: a credential helper, an unreadable Secret. */
  readonly notAsked?: string;
}

/** Credentials of entries, stored apart so that explanations contain none. */
const credentials = new WeakMap<EntryPlace, ExpiringCredential>();

/** All attempts of an explanation, in the order in which CRI-O makes them. */
export function pullAttempts({ places, kubelet }: Explanation): readonly PullAttempt[] {
  return places.flatMap(({ reference, kind, crio }) =>
    sentTo(crio, kubelet).map((sent): PullAttempt => ({ reference, kind, ...sent })),
  );
}

function sentTo(sent: Sent, { tried }: KubeletView): readonly Omit<PullAttempt, 'reference' | 'kind'>[] {
  if (sent.what === 'nothing') return [{}];
  if (sent.what === 'failure' || sent.what === 'unknown') return [{ notAsked: sent.why }];
  if (sent.what === 'helper')
    return [{ notAsked: `the credential helper "${sent.helper}" of the node cannot run here` }];
  // CRI-O does not send an entry without a user name: it falls through to the auth file.
  const entries = sent.what === 'entry' ? [sent.entry] : tried.filter(({ username }) => username !== '');
  return entries.map((entry) => ({ entry, credential: credentials.get(entry) }));
}
