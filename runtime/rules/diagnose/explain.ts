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

import { type ContainersLookup, lookupForContainers } from '../auth-lookup/containers.ts';
import { formatImageReference, pullTag } from '../auth-lookup/image-reference.ts';
import { kubeletKeyring, lookupForKubelet, type Ring } from '../auth-lookup/kubelet.ts';
import { credentialDoubt } from '../docker-config/expiry.ts';
import { type MirrorFix, mirrorFix } from '../mirrors/fix.ts';
import {
  compileMirrors,
  type MirrorIndex,
  type MirrorRule,
  type Resolution,
  resolveMirrors,
} from '../mirrors/mirrors.ts';
import { redact, sameSecret } from '../redacted.ts';
import type { TextPosition } from '../text/position.ts';
import { findingsOf, unreadableBecause, verificationOf } from './explain-findings.ts';
import { aboutImage, explainMismatch, isAbout } from './explain-mismatch.ts';
import type {
  EntryPlace,
  ExplainedCredential,
  ExplainedPlace,
  ExplainInput,
  Finding,
  KubeletView,
  ListedSecret,
  Sent,
  UnusedEntry,
} from './explain-types.ts';

export interface SkippedPlace {
  readonly reference: string;
  readonly kind: 'mirror' | 'source';
  readonly from?: string;
  readonly why: string;
}

export interface Explanation {
  readonly image: string;
  readonly repository: string;
  readonly secrets: readonly Omit<ListedSecret, 'source'>[];
  readonly node?: string;
  readonly kubelet: KubeletView;
  /** In the order in which CRI-O tries them. */
  readonly places: readonly ExplainedPlace[];
  readonly skipped: readonly SkippedPlace[];
  readonly containerd: Sent;
  readonly verification: string;
  /** What is wrong where no mirror is tried although there are some. */
  readonly mirrorFix?: MirrorFix;
  readonly findings: readonly Finding[];
}

/**
 * Explains. Total.
 *
 * @example
 * ```ts
 * import { explainImage } from './explain.ts';
 * import { parseImageReference } from '../auth-lookup/image-reference.ts';
 * import { redact } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const image = parseImageReference('quay.io/team/app:1');
 * assert.ok(image.ok);
 * const text = redact('{"auths":{"quay.io":{"auth":"bWU6cHc="}}}');
 * const node = { name: '/var/lib/kubelet/config.json', format: 'config.json', text } as const;
 * const explained = explainImage({ image: image.reference, secrets: [], node, mirrors: [] });
 * assert.deepEqual(explained.kubelet.tried.map((one) => one.username), ['me']);
 * assert.equal(explained.kubelet.anonymous, false);
 * ```
 */
export function explainImage(input: ExplainInput): Explanation {
  const { repository } = input.image;
  const tag = pullTag(input.image);
  const image = formatImageReference(tag === undefined ? input.image : { ...input.image, tag });
  const resolution = resolveMirrors(compiled(input.mirrors), image);
  const kubelet = explainKubelet(input);
  const fix = mirrorFix(resolution, { hosted: input.hosted === true });
  const places = resolution.candidates.map(
    ({ reference, kind, origin }): ExplainedPlace => ({
      reference,
      kind,
      ...(origin === undefined ? {} : { from: `${origin.kind}/${origin.name} ${origin.path}` }),
      crio: sentByCrio(input, kubelet, reference),
    }),
  );
  const containerd: Sent =
    kubelet.tried.length > 0
      ? { what: 'kubelet' }
      : { what: 'nothing', why: 'the kubelet has no credential for the image' };
  return {
    image,
    repository,
    secrets: input.secrets.map(({ source: _source, ...rest }) => rest),
    ...(input.node === undefined ? {} : { node: input.node.name }),
    kubelet,
    places,
    skipped: skippedPlaces(resolution),
    containerd,
    verification: verificationOf(kubelet, input.node?.name),
    ...(fix === undefined ? {} : { mirrorFix: fix }),
    findings: findingsOf(input, kubelet, places, fix),
  };
}

/** Rules are those of a cluster, and there may be thousands of images. As long as there are the rules. */
const indexes = new WeakMap<readonly MirrorRule[], MirrorIndex>();

function compiled(rules: readonly MirrorRule[]): MirrorIndex {
  const known = indexes.get(rules);
  if (known !== undefined) return known;
  const made = compileMirrors(rules);
  indexes.set(rules, made);
  return made;
}

function explainKubelet(input: ExplainInput): KubeletView {
  const secrets = input.secrets.flatMap((secret) => secret.source ?? []);
  const keyring = kubeletKeyring({ secrets, ...(input.node === undefined ? {} : { node: input.node }) });
  if (!keyring.ok) {
    const broken = secrets.find((source) => source.name === keyring.source);
    const why = broken === undefined ? 'cannot be read' : unreadableBecause(broken);
    return { blockedBy: { source: keyring.source, why }, tried: [], unused: [], anonymous: false };
  }
  const tried = lookupForKubelet(keyring.rings, input.image.repository);
  const used = new Set(tried.map((one) => `${one.source}\n${one.written}`));
  return {
    tried: tried.map(({ source, written, position, by, credential }): ExplainedCredential => {
      const doubt = credentialDoubt(credential, input.now);
      return {
        ...placeOf(input, source, written, position),
        username: credential.username,
        by,
        empty: credential.username === '' && sameSecret(credential.password, NO_PASSWORD),
        ...(doubt === undefined ? {} : { doubt }),
      };
    }),
    ...unusedEntries(input, keyring.rings, used),
    anonymous: tried.length === 0,
  };
}

const NO_PASSWORD = redact('');

function placeOf(input: ExplainInput, source: string, key: string, position: TextPosition): EntryPlace {
  const fromPull = source === input.pullFile?.source.name ? input.pullFile.origins.get(key) : undefined;
  const origin = fromPull ?? (source === input.node?.name ? input.merge?.origins.get(key) : undefined);
  return { source, key, ...(origin === undefined ? {} : { origin }), position };
}

/** Entries about the same registry first. */
function unusedEntries(
  input: ExplainInput,
  rings: readonly Ring[],
  used: ReadonlySet<string>,
): Pick<KubeletView, 'unused' | 'others'> {
  const { repository } = input.image;
  const image = aboutImage(repository);
  const entries = rings.flatMap((ring) =>
    used.size === 0
      ? ring.entries
      : ring.entries.filter(({ entry }) => !used.has(`${entry.source}\n${entry.written}`)),
  );
  const told = input.brief === true ? entries.filter((entry) => isAbout(entry, image)) : entries;
  const unused = told.map(({ entry }): UnusedEntry => {
    const { near, why } = explainMismatch(entry.written, repository);
    const place = placeOf(input, entry.source, entry.written, entry.position);
    return { ...place, why, near: near === 'host' };
  });
  return {
    unused: [...unused.filter((one) => one.near), ...unused.filter((one) => !one.near)],
    ...(input.brief === true ? { others: entries.length - told.length } : {}),
  };
}

/** The kubelet's credential goes to the image's own host; an empty user name falls through to the file. */
function sentByCrio(input: ExplainInput, kubelet: KubeletView, reference: string): Sent {
  if (kubelet.blockedBy !== undefined)
    return { what: 'failure', why: 'the kubelet does not get as far as a pull' };
  const [host = ''] = reference.split('/', 1);
  const carried = kubelet.tried.some((one) => one.username !== '');
  if (host === input.image.domain && carried) return { what: 'kubelet' };
  const repository = withoutTag(reference);
  const file = input.pullFile?.source ?? input.node;
  const files = file === undefined ? [] : [file];
  return sentFromFile(input, lookupForContainers(files, repository));
}

function sentFromFile(input: ExplainInput, found: ContainersLookup): Sent {
  if (found.found === 'error')
    return { what: 'failure', why: 'the auth file cannot be used for this look-up' };
  if (found.found === 'helper') return { what: 'helper', source: found.source, helper: found.helper };
  if (found.found === 'credential') {
    const { source, written, position, rivals } = found.entry;
    const entry = placeOf(input, source, written, position);
    return { what: 'entry', entry, username: found.credential.username, rivals };
  }
  if (found.stoppedBy === undefined) return { what: 'nothing', why: 'no entry of the auth file matches' };
  return {
    what: 'nothing',
    why: `entry "${found.stoppedBy.written}" of the auth file holds no "auth", and ends the search`,
  };
}

function skippedPlaces({ skipped }: Resolution): readonly SkippedPlace[] {
  return skipped.map(({ reference, kind, origin, message }) => ({
    reference,
    kind,
    ...(origin === undefined ? {} : { from: `${origin.kind}/${origin.name} ${origin.path}` }),
    why: message,
  }));
}

/** `host:5000/a/b:tag@sha256:...` without tag and digest. */
function withoutTag(reference: string): string {
  const [name = ''] = reference.split('@', 1);
  const colon = name.lastIndexOf(':');
  return colon > name.lastIndexOf('/') ? name.slice(0, colon) : name;
}
