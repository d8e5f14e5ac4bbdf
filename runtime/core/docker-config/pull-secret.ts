/**
 * Decodes the document of a pull secret like the Go programs that consume it, error texts included.
 *
 * Source of the rule: DockerConfigJSON of k8s.io/kubernetes/pkg/credentialprovider 1.36 (kubelet, and the validation of the
 * hosted cluster operator), dockerConfigFile of go.podman.io/image v5.42 (CRI-O, podman), encoding/json of Go 1.26.
 */

import { decodeGoBase64 } from '../go/base64.ts';
import { firstHugeNumber, type JsonMember, type JsonNode, parseGoJson } from '../go/json.ts';
import { decodeUtf8, type GoResult } from '../go/text.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../kubernetes/hypershift.ts';
import { describeObject, type KubeObject, type SecretObject } from '../kubernetes/object.ts';
import { oncePer } from '../record.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import { positionsOf, type TextPosition, trimEndOf, trimStartOf } from '../text.ts';
import { unusableDigest, usableDigest } from './encode.ts';
import {
  type DockerConfigFormat,
  decodedAuth,
  entryMembers,
  fieldOf,
  readTexts,
  type Texts,
  wrongTextField,
} from './fields.ts';
import { registryKey } from './registry-key.ts';

/** User name and password as the kubelet passes them to the container runtime. */
export interface KubeletCredential {
  readonly username: string;
  readonly password: Redacted<string>;
  readonly email: string;
}

/** What containers/image reads from an entry. All empty: it continues without a credential. */
export interface ContainersCredential {
  readonly username: string;
  readonly password: Redacted<string>;
  readonly identityToken: Redacted<string>;
}

interface TypeFault {
  readonly value: string;
  readonly struct: string;
  readonly path: readonly string[];
  readonly type: string;
}

const COLON_MISSING = 'unable to parse auth field, must be formatted as base64(username:password)';

/** The structs that a Go program decodes a document into. */
interface Consumer {
  readonly struct: string;
  readonly type: string;
  readonly mapType: string;
  /** The other typed field: an object with string values. */
  readonly textMap: string;
  readonly entryType: string;
  /** Whether Go stops at an invalid entry; otherwise it continues and reports the first fault at the end. */
  readonly stops: boolean;
  readonly entryFault: (node: JsonNode, struct: string, path: readonly string[]) => string | undefined;
}

const KUBELET: Consumer = {
  struct: 'DockerConfigJSON',
  type: 'credentialprovider.DockerConfigJSON',
  mapType: 'credentialprovider.DockerConfig',
  textMap: 'HttpHeaders',
  entryType: 'credentialprovider.dockerConfigEntryWithAuth',
  stops: true,
  entryFault: (node, struct, path) => {
    const { wrong, texts } = readTexts(node, ['username', 'password', 'email', 'auth']);
    if (wrong !== undefined) return textFault(wrong, struct || 'dockerConfigEntryWithAuth', path);
    const credential = kubeletCredential(texts);
    return credential.ok ? undefined : credential.goText;
  },
};

/** Base64 is decoded only when the entry is used. */
const CONTAINERS: Consumer = {
  struct: 'dockerConfigFile',
  type: 'config.dockerConfigFile',
  mapType: 'map[string]config.dockerAuthConfig',
  textMap: 'credHelpers',
  entryType: 'config.dockerAuthConfig',
  stops: false,
  entryFault: (node, _struct, path) => {
    const { wrong } = readTexts(node, ['auth', 'identitytoken']);
    return wrong && textFault(wrong, 'dockerAuthConfig', path);
  },
};

/** Why a consumer rejects the whole document, in Go's wording: the fault that stops it, otherwise the first one. */
function faultFor(consumer: Consumer, document: JsonNode, format: DockerConfigFormat): string | undefined {
  const [struct, path] = format === 'dockercfg' ? ['', []] : [consumer.struct, ['auths']];
  let saved: string | undefined;
  let aborted: string | undefined;
  const membersOf = (node: JsonNode, at: Omit<TypeFault, 'value'>): readonly JsonMember[] => {
    if (node.kind === 'object') return node.members;
    if (node.kind !== 'null') saved ??= typeFaultText({ value: node.kind, ...at });
    return [];
  };
  const readEntries = (node: JsonNode): void => {
    for (const { value } of membersOf(node, { struct, path, type: consumer.mapType })) {
      const fault = entryFault(consumer, value, struct, path);
      if (consumer.stops) aborted ??= fault;
      else saved ??= fault;
    }
  };
  const readTextMap = (node: JsonNode): void => {
    const at = { struct, path: [consumer.textMap] };
    for (const { value } of membersOf(node, { ...at, type: 'map[string]string' }))
      if (value.kind !== 'string' && value.kind !== 'null')
        saved ??= typeFaultText({ value: value.kind, ...at, type: 'string' });
  };
  if (format === 'dockercfg') readEntries(document);
  else
    for (const { key, value } of membersOf(document, { struct: '', path: [], type: consumer.type })) {
      const name = fieldOf(key, ['auths', consumer.textMap]);
      if (name === 'auths') readEntries(value);
      else if (name !== undefined) readTextMap(value);
    }
  return aborted ?? saved;
}

/** The fault of one entry. `struct` and `path` locate it in the error text. */
function entryFault(
  consumer: Consumer,
  node: JsonNode,
  struct: string,
  path: readonly string[],
): string | undefined {
  if (node.kind === 'object' || node.kind === 'null') return consumer.entryFault(node, struct, path);
  return typeFaultText({ value: node.kind, struct, path, type: consumer.entryType });
}

function textFault(wrong: NonNullable<Texts['wrong']>, struct: string, path: readonly string[]): string {
  return typeFaultText({ value: wrong.kind, struct, path: [...path, wrong.field], type: 'string' });
}

/** Decodes one entry like the kubelet. */
function kubeletEntry(node: JsonNode): GoResult<KubeletCredential> {
  const goText = entryFault(KUBELET, node, '', []);
  if (goText !== undefined) return { ok: false, goText };
  return kubeletCredential(readTexts(node, ['username', 'password', 'email', 'auth']).texts);
}

function kubeletCredential(texts: Texts['texts']): GoResult<KubeletCredential> {
  const { username = '', password = '', email = '', auth = '' } = texts;
  if (auth === '') return { ok: true, value: { username, password: redact(password), email } };
  const decoded = decodedAuth(auth);
  if (!decoded.ok) return decoded;
  const pair = pairOf(decoded.value);
  if (pair === undefined) return { ok: false, goText: COLON_MISSING };
  return { ok: true, value: { username: pair.username, password: redact(pair.password), email } };
}

/** User name and password, which the first colon separates; undefined without one. */
function pairOf(bytes: Uint8Array): { readonly username: string; readonly password: string } | undefined {
  const colon = bytes.indexOf(0x3a);
  if (colon < 0) return undefined;
  return {
    username: decodeUtf8(bytes.subarray(0, colon)),
    password: decodeUtf8(bytes.subarray(colon + 1)),
  };
}

/** Decodes an entry like containers/image. */
export function containersCredential(node: JsonNode): GoResult<ContainersCredential> {
  const { auth = '', identitytoken = '' } = readTexts(node, ['auth', 'identitytoken']).texts;
  const decoded = decodeGoBase64(auth, 'padded');
  if (!decoded.ok) return decoded;
  const pair = pairOf(decoded.value);
  const { username = '', password = '' } = pair ?? {};
  return {
    ok: true,
    value: {
      username,
      password: redact(trimStartOf(trimEndOf(password, '\0'), '\0')),
      identityToken: redact(pair === undefined ? '' : identitytoken),
    },
  };
}

function typeFaultText({ value, struct, path, type }: TypeFault): string {
  const target = struct === '' ? 'Go value' : `Go struct field ${[struct, ...path].join('.')}`;
  return `json: cannot unmarshal ${value} into ${target} of type ${type}`;
}

// One entry of `auths`: what each consumer reads from it, and why it is unusable.
// Source of the rule: how the kubelet and containers/image decode it (above). An entry is valid if both can read it and at least
// the kubelet finds a credential.

/** Why an entry is unusable. */
export interface EntryFault {
  readonly reason:
    | 'KeyInvalid'
    | 'EntryNotObject'
    | 'FieldNotText'
    | 'AuthNotBase64'
    | 'AuthWithoutColon'
    | 'NoCredential';
  /** Completes a sentence about the entry: `has an "auth" that is not base64`. Contains no value. */
  readonly message: string;
}

/** One entry; the last of duplicate keys, as in Go. */
export type DockerConfigEntry = Readonly<ReturnType<typeof judgeEntry>>;

/** Validates an entry of `auths`. */
function judgeEntry(member: JsonMember, position: TextPosition) {
  const key = registryKey(member.key);
  const kubelet = kubeletEntry(member.value);
  const containers = containersCredential(member.value);
  const fault: EntryFault | undefined =
    key.fault === undefined
      ? valueFault(member.value, kubelet)
      : { reason: 'KeyInvalid', message: key.fault };
  return {
    key,
    position,
    value: redact(member.value),
    /** False if a consumer would reject the whole document for this entry. */
    readable: kubelet.ok && wrongTextField(member.value) === undefined,
    /** Absent if the entry is valid. */
    ...(fault === undefined ? {} : { fault }),
    /** What the kubelet would use; absent if it cannot read the entry. */
    ...(kubelet.ok ? { kubelet: kubelet.value } : {}),
    /** What containers/image would use; absent if it cannot read the entry, empty if it continues without a credential. */
    ...(containers.ok ? { containers: containers.value } : {}),
  };
}

function valueFault(node: JsonNode, kubelet: ReturnType<typeof kubeletEntry>): EntryFault | undefined {
  if (node.kind !== 'object' && node.kind !== 'null') {
    return { reason: 'EntryNotObject', message: `is ${describeKind(node.kind)}, expected an object` };
  }
  const wrong = wrongTextField(node);
  if (wrong !== undefined) {
    const message = `has "${wrong.field}" as ${describeKind(wrong.kind)}, expected a string`;
    return { reason: 'FieldNotText', message };
  }
  if (!kubelet.ok) return authFault(kubelet.goText);
  if (kubelet.value.username === '' && reveal(kubelet.value.password) === '') {
    const { identitytoken = '' } = readTexts(node, ['identitytoken']).texts;
    return identitytoken === ''
      ? { reason: 'NoCredential', message: 'has no "auth" with a user name or a password' }
      : { reason: 'NoCredential', message: 'has only an "identitytoken", which the kubelet does not read' };
  }
  return undefined;
}

function authFault(goText: string): EntryFault {
  const byte = /input byte (\d+)$/.exec(goText)?.[1];
  if (byte === undefined) {
    return {
      reason: 'AuthWithoutColon',
      message: 'has an "auth" without a colon, expected base64(user:password)',
    };
  }
  const hint = 'expected base64(user:password) in the standard alphabet, without blanks';
  return { reason: 'AuthNotBase64', message: `has an "auth" that is not base64 at byte ${byte}, ${hint}` };
}

/** `an array`, `a number`, `null`. */
export function describeKind(kind: JsonNode['kind']): string {
  if (kind === 'null') return 'null';
  if (kind === 'string') return 'a string';
  return kind === 'array' || kind === 'object' ? `an ${kind}` : `a ${kind}`;
}

// Validates the document of a pull secret entry by entry.
// The kubelet rejects a whole document for one invalid entry, and CRI-O for one field of the wrong type. Here, every entry gets
// its own verdict: an invalid one is skipped and reported, and the others are used.
// Source of the rule: the consumers' treatment of the whole document, at the top of this file.

/** Why a document is unusable as a whole. */
export interface ConfigProblem {
  readonly reason:
    | 'Empty'
    | 'Encrypted'
    | 'Masked'
    | 'NotJson'
    | 'NotAnObject'
    | 'AuthsMissing'
    | 'AuthsNotAnObject';
  /** Completes a sentence without content of the document: `has no "auths"`. */
  readonly message: string;
  readonly position?: TextPosition;
  /** Why the kubelet rejects the document, in its wording, which may quote one character; undefined if it accepts it. */
  readonly kubeletFault: string | undefined;
  /** The same for containers/image. */
  readonly containersFault: string | undefined;
}

export type DockerConfig = Readonly<Extract<DockerConfigResult, { ok: true }>['config']>;

export type DockerConfigResult = Readonly<ReturnType<typeof parseText>>;

/** Each text is parsed once, however many images are looked up in it. */
const read = {
  'config.json': oncePer((text: Redacted<string>) => parseText(reveal(text), 'config.json')),
  dockercfg: oncePer((text: Redacted<string>) => parseText(reveal(text), 'dockercfg')),
};

/**
 * Parses the document of a pull secret. Never throws, and returns the same result for the same `text`.
 *
 * @param text the decoded value of `.dockerconfigjson` (or `.dockercfg`)
 * @param format @default {'config.json'}
 */
export function parseDockerConfig(
  text: Redacted<string>,
  format: DockerConfigFormat = 'config.json',
): DockerConfigResult {
  return read[format](text);
}

function parseText(plain: string, format: DockerConfigFormat) {
  const parsed = parseGoJson(plain);
  if (!parsed.ok) {
    const { plainText, goText, at } = parsed.fault;
    const [reason, message] = notJson(plain) ?? ['NotJson', `is not JSON: ${plainText}`];
    const position = positionsOf(plain)(at);
    return refused({ reason, message, position, kubeletFault: goText, containersFault: goText });
  }
  return readDocument(plain, parsed.value, format);
}

function refused(problem: ConfigProblem) {
  return { ok: false as const, problem };
}

/** Prefix of values that SOPS encrypted. */
const ENCRYPTED = /^ENC\[[A-Z0-9_]+,data:/;

/** Recognizes common values that are not a document: empty, encrypted or masked. */
function notJson(plain: string): readonly [ConfigProblem['reason'], string] | undefined {
  const text = plain.trim();
  if (text === '') return ['Empty', 'is empty'];
  if (ENCRYPTED.test(text))
    return ['Encrypted', 'is encrypted by SOPS: its content cannot be validated before it is decrypted'];
  if (text === '**SOPS**')
    return ['Masked', 'is "**SOPS**", which flux build prints instead of a SOPS-encrypted value'];
  return undefined;
}

/** Whether a value of a Secret, in base64 or as SOPS wrote it, is encrypted. */
export function isEncrypted(value: Redacted<string>): boolean {
  return ENCRYPTED.test(reveal(secretDataText(value)));
}

/**
 * Message about an entry whose password a credential helper keeps on a workstation; completes a sentence. No kubelet runs a
 * helper, nor does a runtime for a Secret.
 */
export function helperOf({ fields }: DockerConfig, key: string): string | undefined {
  const members = reveal(fields);
  const field = (name: string) => members.findLast((one) => fieldOf(one.key, [name]) !== undefined);
  const helpers = field('credHelpers')?.value;
  const own = helpers?.kind === 'object' ? helpers.members.findLast((one) => one.key === key) : undefined;
  const found = own?.value ?? field('credsStore')?.value;
  if (found?.kind !== 'string' || found.value === '') return undefined;
  const name = /^[\w.-]{1,40}$/.test(found.value) ? ` "${found.value}"` : '';
  const helper = `${own === undefined ? 'credsStore' : 'credHelpers'}${name}`;
  return `has no password: ${helper} keeps it on the machine that wrote the file, which nodes cannot access. Create the entry with kubectl create secret docker-registry`;
}

function readDocument(plain: string, document: JsonNode, format: DockerConfigFormat) {
  const positions = positionsOf(plain);
  const refusedAt = ({ at }: JsonNode, reason: ConfigProblem['reason'], message: string) =>
    refused({ reason, message, position: positions(at), ...faults(document, format) });
  if (document.kind !== 'object') {
    const message = `is ${describeKind(document.kind)}, expected a JSON object`;
    return refusedAt(document, 'NotAnObject', message);
  }
  const found = entryMembers(document.members, format);
  if (found.wrong !== undefined) {
    const message = `has "auths" as ${describeKind(found.wrong.kind)}, expected an object`;
    return refusedAt(found.wrong, 'AuthsNotAnObject', message);
  }
  const entries = [...found.entries.values()].map((member) => judgeEntry(member, positions(member.at)));
  const { fields } = found;
  // Decoding again like the consumers is needed only if one of them may reject something.
  const clean =
    fields.length === 0 && found.warnings.length === 0 && entries.every((entry) => entry.readable);
  return {
    ok: true as const,
    config: {
      format,
      /** In document order. */
      entries,
      /** Whether there is an `auths` object (always true for `dockercfg`). */
      hasAuths: found.present,
      /** Whether a field is named exactly `auths`, as HyperShift's node agent requires (always true for `dockercfg`). */
      spelled: format === 'dockercfg' || document.members.some(({ key }) => key === 'auths'),
      /** Top-level fields other than `auths`, including duplicates. */
      fields: redact(fields),
      warnings: found.warnings,
      /** Why the kubelet and containers/image discard the whole document, in their wording; undefined if they do not. */
      ...(clean ? NO_FAULTS : faults(document, format)),
    },
  };
}

const NO_FAULTS = { kubeletFault: undefined, containersFault: undefined };

function faults(document: JsonNode, format: DockerConfigFormat) {
  return {
    kubeletFault: faultFor(KUBELET, document, format),
    containersFault: faultFor(CONTAINERS, document, format),
  };
}

// The part of a pull secret that may be written to the file of the kubelet and CRI-O: every entry and field that both accept. For
// one invalid `auth`, the kubelet rejects the whole file with every credential in it.
// Source of the rule: DockerConfigJSON of the kubelet 1.36 and dockerConfigFile of containers/image, as decoded above.

/**
 * Top-level fields that may be written: without those that make a consumer reject the whole document.
 *
 * @returns the fields to write, and the names of those omitted
 */
export function usableFields(config: Pick<DockerConfig, 'fields'>) {
  const all = [...new Map(reveal(config.fields).map((member) => [member.key, member])).values()];
  return {
    fields: all.filter(isUsableField),
    leftOut: all.filter((member) => !isUsableField(member)).map((member) => member.key),
  };
}

/** Both typed fields must be objects with string values. */
function isUsableField({ key, value }: JsonMember): boolean {
  if (fieldOf(key, ['credHelpers', 'HttpHeaders']) === undefined || value.kind === 'null') return true;
  return value.kind === 'object' && value.members.every((one) => ['string', 'null'].includes(one.value.kind));
}

/** Splits a document into what may be written and what may not. */
export function usablePart(config: DockerConfig) {
  const broken = config.entries.filter((entry) => !entry.readable);
  return {
    /** Whether the document may be written unchanged: nothing is omitted, and both consumers accept all of it. */
    // A fault without a broken entry: of a field, or of an earlier duplicate key.
    whole: broken.length === 0 && config.kubeletFault === undefined && config.containersFault === undefined,
    entries: config.entries.filter((entry) => entry.readable),
    /** Entries that make a consumer reject the whole document. */
    broken,
    ...usableFields(config),
  };
}

/** A parsed Secret with a docker config under `.dockerconfigjson`. */
export type PullSecret = ReturnType<typeof pullSecretOf>;

/** Parses each `secret` object once. */
export const pullSecretOf = oncePer((object: KubeObject) => {
  const secret = object as SecretObject;
  const value = secret.data?.[NAMES.dataKey];
  const text = value === undefined ? redact('') : secretDataText(value);
  const parsed = parseDockerConfig(text);
  const config = parsed.ok ? parsed.config : undefined;
  const problem = parsed.ok ? undefined : parsed.problem;
  return {
    secret,
    /** Base64, the exact bytes of the Secret even if they are not UTF-8; undefined without the key. */
    value,
    /** Empty without the key. */
    text,
    /** Undefined if there is a problem. */
    config,
    entries: config?.entries ?? [],
    problem,
    kubeletFault: (config ?? problem)?.kubeletFault,
  };
});

/** Digest of what the document means to its consumers, for comparing nodes; undefined if they can use none of it. */
export const readersDigest = oncePer(({ config, text }: PullSecret): string | undefined => {
  if (config?.spelled !== true) return undefined;
  const part = usablePart(config);
  if (part.entries.length === 0 && part.broken.length > 0) return undefined;
  return part.whole
    ? usableDigest(
        part.entries.map(({ key, value }) => ({ key: key.written, value: reveal(value) })),
        part.fields,
      )
    : unusableDigest(Buffer.from(reveal(text)));
});

/** Encodes a text as Secrets store it. */
export function toBase64(text: Redacted<string>): Redacted<string> {
  return redact(Buffer.from(reveal(text)).toString('base64'));
}

/** A document with credentials. */
export interface AuthSource {
  /** For messages: `Secret/team/pull`, `/var/lib/kubelet/config.json`. */
  readonly name: string;
  readonly format: DockerConfigFormat;
  readonly text: Redacted<string>;
}

/** Parses the document of `source`. */
export function readAuthSource({ text, format }: AuthSource): DockerConfigResult {
  return parseDockerConfig(text, format);
}

// Validation of a docker config by HyperShift's node agent: Pullwright never writes a document that the agent rejects.
// Source of the rule: HyperShift `sync-global-pullsecret` (validateDockerConfigJSON).

export const MISSING_AUTHS = "missing 'auths' key";

/** Why HyperShift's node agent rejects the content of a pull secret: it requires an object with the exact key `auths`. */
export function upstreamAgentFault(content: Redacted<string>): string | undefined {
  const read = unmarshalMap(content);
  if (!read.ok) return read.goText;
  return read.value.some((member) => member.key === 'auths') ? undefined : MISSING_AUTHS;
}

/** json.Unmarshal into map[string]any: null is an empty map. */
export function unmarshalMap(text: Redacted<string>): GoResult<readonly JsonMember[]> {
  const parsed = parseGoJson(reveal(text));
  if (!parsed.ok) return { ok: false, goText: parsed.fault.goText };
  const { value } = parsed;
  if (value.kind !== 'object' && value.kind !== 'null') {
    const goText = `json: cannot unmarshal ${value.kind} into Go value of type map[string]interface {}`;
    return { ok: false, goText };
  }
  const huge = firstHugeNumber(value);
  if (huge !== undefined) {
    return { ok: false, goText: `json: cannot unmarshal number ${huge} into Go value of type float64` };
  }
  return { ok: true, value: value.kind === 'object' ? value.members : [] };
}

// A Secret as a source of credentials: which key holds the document, and whether the API server accepts it.
// Source of the rule: MakeDockerKeyring of the kubelet 1.36, ValidateSecret of the API server 1.36.

/** The data key of each type of pull secret. */
const PULL_SECRET_KEYS: ReadonlyMap<unknown, string> = new Map([
  ['kubernetes.io/dockerconfigjson', '.dockerconfigjson'],
  ['kubernetes.io/dockercfg', '.dockercfg'],
]);

/** The data key for `type`; undefined if `type` is not that of a pull secret. */
export function pullSecretKey(type: unknown): string | undefined {
  return PULL_SECRET_KEYS.get(type);
}

/** Decodes a base64 value of a Secret. Invalid UTF-8 becomes U+FFFD, as in Go. */
export function secretDataText(value: Redacted<string>): Redacted<string> {
  const plain = reveal(value);
  return ENCRYPTED.test(plain) ? value : redact(decodeUtf8(Buffer.from(plain, 'base64')));
}

/** The source that the kubelet reads from a listed Secret; undefined for a skipped one: another type, or no data. */
export function pullSecretSource(secret: SecretObject): AuthSource | undefined {
  const key = pullSecretKey(secret.type);
  const value = key === undefined ? undefined : secret.data?.[key];
  if (value === undefined) return undefined;
  const text = secretDataText(value);
  if (reveal(text) === '') return undefined;
  return {
    name: describeObject(secret),
    format: key === '.dockercfg' ? 'dockercfg' : 'config.json',
    text,
  };
}

/** A Secret with decoded data. */
export interface SecretContent {
  readonly type: string;
  readonly data: Readonly<Record<string, Redacted<string>>>;
}

/** Why the API server rejects a pull secret, in its wording; undefined if it accepts it, or for another type. */
export function apiServerSecretFault({ type, data }: SecretContent): string | undefined {
  const key = pullSecretKey(type);
  if (key === undefined) return undefined;
  const text = Object.hasOwn(data, key) ? data[key] : undefined;
  if (text === undefined) return `data[${key}]: Required value`;
  const read = unmarshalMap(text);
  if (read.ok) return undefined;
  return `data[${key}]: Invalid value: "<secret contents redacted>": ${read.goText}`;
}
