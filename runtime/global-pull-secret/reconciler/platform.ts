/**
 * What nodes get of the platform's pull secret: the very bytes where every reader can use all of it, else the part that they
 * can use, with the last good form of what they cannot, and with what a removal that is held would take. Pure.
 */
import type { Problem } from '../../controller/contract.ts';
import {
  type DockerConfig,
  type DockerConfigEntry,
  parseDockerConfig,
} from '../../rules/docker-config/docker-config.ts';
import { AUTHS_MISSING } from '../../rules/docker-config/merge.ts';
import {
  type HeldEntryRemoval,
  heldEntryRemoval,
  judgedMark,
  lostRemoval,
  type RemovalInput,
  UNJUDGED,
} from '../../rules/docker-config/removal-guard.ts';
import { encodeUsable, type UsablePart, usablePart } from '../../rules/docker-config/usable.ts';
import type { JsonNode } from '../../rules/go/json.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import { type Redacted, redact, reveal } from '../../rules/redacted.ts';

/** What decides about a removal besides the documents. */
export type RemovalContext = Pick<RemovalInput, 'release' | 'confirmed' | 'held' | 'options' | 'now'>;

export interface PlatformInput {
  readonly secret: KubeObject | undefined;
  /** Where it is looked for. */
  readonly namespace: string | undefined;
  /** `original-pull-secret` as it is: what nodes have. */
  readonly copy: KubeObject | undefined;
  /** What nodes have of the platform's, where the copy is gone. */
  readonly lastText?: Redacted<string>;
  readonly removal: RemovalContext;
}

/** The platform's part, or why there is none. */
export type PlatformPlan =
  | { readonly ok: false; readonly problem: Problem }
  | {
      readonly ok: true;
      /** The cluster has no pull secret of its own, and never had one: nothing is copied, and the tenant's part stands alone. */
      readonly absent?: true;
      /** The document as the platform has it. */
      readonly text: Redacted<string>;
      /** Base64 of what the copy should hold. */
      readonly value: Redacted<string>;
      /** What the copy holds now. */
      readonly copyText?: Redacted<string>;
      readonly held?: HeldEntryRemoval;
      /** The entries that stay because of it. */
      readonly heldEntries: readonly DockerConfigEntry[];
    };

const NO_ENTRY = '{"auths":{}}';

/** Decides. Never throws. */
export function planPlatform(input: PlatformInput): PlatformPlan {
  // A copy would say that there was one, which is then missed.
  if (input.secret === undefined && input.copy === undefined && isStandalone(input))
    return {
      ok: true,
      absent: true,
      text: redact(NO_ENTRY),
      value: toBase64(redact(NO_ENTRY)),
      heldEntries: [],
    };
  const read = readPlatform(input);
  if ('problem' in read) return { ok: false, problem: read.problem };
  const { text, config, verbatim } = read;
  const copyText = input.copy === undefined ? input.lastText : secretText(input.copy);
  const before = readableEntries(copyText);
  const held = heldOf(input, before, config.entries);
  const heldEntries = before.filter(({ key }) => held?.keys.includes(key.written));
  const part = usablePart(config);
  const asItIs = part.whole && heldEntries.length === 0;
  return {
    ok: true,
    text,
    value: asItIs ? verbatim : composed(part, before, heldEntries),
    ...(copyText === undefined ? {} : { copyText }),
    ...(held === undefined ? {} : { held }),
    heldEntries,
  };
}

function heldOf(
  input: PlatformInput,
  before: readonly DockerConfigEntry[],
  after: readonly DockerConfigEntry[],
): HeldEntryRemoval | undefined {
  const seen = heldEntryRemoval({ before, after, ...input.removal });
  return seen ?? (keepsNothing(input) ? lostRemoval(input.removal) : undefined);
}

/** The copy that held a removal is gone, or was created again without what it held; and there is no merge that has it. */
function keepsNothing({ copy, lastText }: PlatformInput): boolean {
  if (copy === undefined) return lastText === undefined;
  return plainText(copy, NAMES.judgedKey) === UNJUDGED;
}

/** What stands beside a pull secret and is no secret. */
export function plainText(secret: KubeObject | undefined, key: string): string | undefined {
  const value = (secret as SecretObject | undefined)?.data?.[key];
  return value === undefined ? undefined : reveal(fromBase64(value));
}

interface ReadPlatform {
  readonly text: Redacted<string>;
  readonly config: DockerConfig;
  /** The very bytes of the platform's secret, also where they are no UTF-8. */
  readonly verbatim: Redacted<string>;
}

function readPlatform(input: PlatformInput): ReadPlatform | { readonly problem: Problem } {
  if (input.secret === undefined) return { problem: missing(input) };
  const verbatim = dataValue(input.secret);
  const text = secretText(input.secret);
  if (verbatim === undefined || text === undefined || reveal(text) === '')
    return { problem: keyMissing(input) };
  const parsed = parseDockerConfig(text);
  if (!parsed.ok) return { problem: invalid(input, parsed.problem.message) };
  if (!parsed.config.hasAuths) return { problem: invalid(input, AUTHS_MISSING.message) };
  return { text, config: parsed.config, verbatim };
}

/** What can be used, the last good form of what cannot, and what is held. Base64. */
function composed(
  { entries, broken, fields }: UsablePart,
  before: readonly DockerConfigEntry[],
  heldEntries: readonly DockerConfigEntry[],
): Redacted<string> {
  const brokenKeys = new Set(broken.map(({ key }) => key.written));
  const stay = before.filter(({ key }) => brokenKeys.has(key.written));
  const text = encodeUsable(
    [...entries, ...stay, ...heldEntries].map(({ key, value }): [string, JsonNode] => [
      key.written,
      reveal(value),
    ]),
    fields.map(({ key, value }) => [key, value] as const),
  );
  return toBase64(text);
}

function readableEntries(text: Redacted<string> | undefined): readonly DockerConfigEntry[] {
  const parsed = text === undefined ? undefined : parseDockerConfig(text);
  return parsed?.ok ? parsed.config.entries.filter((entry) => entry.readable) : [];
}

/** The document without the entries of these keys, as they are written. */
export function withoutEntries(text: Redacted<string>, keys: readonly string[]): Redacted<string> {
  const out = new Set(keys);
  const stay = readableEntries(text).filter(({ key }) => !out.has(key.written));
  return encodeUsable(
    stay.map(({ key, value }): [string, JsonNode] => [key.written, reveal(value)]),
    [],
  );
}

function placeOf({ secret, namespace }: PlatformInput): string {
  return `Secret/${secret?.metadata.namespace ?? namespace ?? 'control plane namespace'}/${NAMES.platform}`;
}

/** A stand-alone cluster keeps it in `openshift-config`; that of a hosted cluster comes from HyperShift. */
function isStandalone({ secret, namespace }: PlatformInput): boolean {
  return (secret?.metadata.namespace ?? namespace) === NAMES.configNamespace;
}

function remedy(input: PlatformInput): string {
  const fix = isStandalone(input) ? `fix "${placeOf(input)}"` : 'fix spec.pullSecret of the HostedCluster';
  return `Nodes keep the last good pull secret; ${fix}`;
}

function missing(input: PlatformInput): Problem {
  const source = isStandalone(input)
    ? `Create it, of type kubernetes.io/dockerconfigjson, or "${NAMES.additional}", which works without it`
    : 'HyperShift copies it there from spec.pullSecret of the HostedCluster';
  return {
    disposition: 'waiting',
    afterMs: 10_000,
    code: 'OriginalMissing',
    message: `Cannot read "${placeOf(input)}": failed to get original pull secret, it does not exist`,
    hint: `${source}; no pull secret on any node changes until it is there`,
  };
}

function keyMissing(input: PlatformInput): Problem {
  return {
    disposition: 'terminal',
    code: 'OriginalKeyMissing',
    message: `Cannot use "${placeOf(input)}": original pull secret does not contain ${NAMES.dataKey} key`,
    hint: remedy(input),
  };
}

function invalid(input: PlatformInput, fault: string): Problem {
  return {
    disposition: 'terminal',
    code: 'OriginalInvalid',
    message: `Cannot use "${placeOf(input)}": it ${fault}`,
    hint: remedy(input),
  };
}

/** The text under `.dockerconfigjson`, or undefined. */
export function secretText(secret: KubeObject): Redacted<string> | undefined {
  const value = dataValue(secret);
  return value === undefined ? undefined : fromBase64(value);
}

function dataValue(secret: KubeObject): Redacted<string> | undefined {
  return (secret as SecretObject).data?.[NAMES.dataKey];
}

/** What a value of a Secret says. */
export function fromBase64(value: Redacted<string>): Redacted<string> {
  return redact(Buffer.from(reveal(value), 'base64').toString('utf8'));
}

/** A text as Secrets hold it. */
export function toBase64(text: Redacted<string>): Redacted<string> {
  return redact(Buffer.from(reveal(text)).toString('base64'));
}

/** The mark of a document, both as Secrets hold them. */
export function judgedMarkOf(value: Redacted<string>): Redacted<string> {
  return toBase64(redact(judgedMark(fromBase64(value))));
}
