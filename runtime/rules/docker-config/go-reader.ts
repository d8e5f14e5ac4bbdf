/**
 * What the Go programs make of the document of a pull secret, error texts included.
 *
 * Source of the rule: DockerConfigJSON of k8s.io/kubernetes/pkg/credentialprovider 1.36 (kubelet, and the validation of the
 * hosted cluster operator), dockerConfigFile of go.podman.io/image v5.42 (CRI-O, podman), encoding/json of Go 1.26.
 */
import { isUtf8 } from 'node:buffer';
import { type Base64Result, decodeGoBase64 } from '../go/base64.ts';
import { decodeUtf8 } from '../go/bytes.ts';
import type { JsonNode } from '../go/json.ts';
import { type Redacted, redact } from '../redacted.ts';
import { type DockerConfigFormat, fieldOf, readTexts, type Texts } from './fields.ts';

/** User name and password as the kubelet hands them to the container runtime. */
export interface KubeletCredential {
  readonly username: string;
  readonly password: Redacted<string>;
  readonly email: string;
  /** `user:password` when it is no UTF-8: the texts above hold U+FFFD then, and no container runtime can be told it. */
  readonly notUtf8?: Redacted<Uint8Array>;
}

/** What containers/image takes from an entry. Both empty: it goes on without a credential. */
export interface ContainersCredential {
  readonly username: string;
  readonly password: Redacted<string>;
  readonly identityToken: Redacted<string>;
}

/** A value, or an error in Go's words. `abort`: Go stops at it; else it goes on and reports the first one at the end. */
export type Decoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly goText: string; readonly abort: boolean };

/** Result for a whole document. */
export type DecodedFile<T> =
  | { readonly ok: true; readonly entries: ReadonlyMap<string, T> }
  | { readonly ok: false; readonly goText: string };

interface TypeFault {
  readonly value: string;
  readonly struct: string;
  readonly path: readonly string[];
  readonly type: string;
}

const COLON_MISSING = 'unable to parse auth field, must be formatted as base64(username:password)';

/**
 * Reads a document as the kubelet does: every entry must be good, or all is lost.
 *
 * @example
 * ```ts
 * import { decodeForKubelet } from './go-reader.ts';
 * import { parseGoJson } from '../go/json.ts';
 * import assert from 'node:assert/strict';
 *
 * const json = parseGoJson('{"auths":{"quay.io":{"auth":"!!"}}}');
 * assert.ok(json.ok);
 * const decoded = decodeForKubelet(json.value, 'config.json');
 * assert.equal(!decoded.ok && decoded.goText, 'illegal base64 data at input byte 0');
 * ```
 */
export function decodeForKubelet(
  document: JsonNode,
  format: DockerConfigFormat,
): DecodedFile<KubeletCredential> {
  if (format === 'dockercfg') {
    const file = new File<KubeletCredential>('', []);
    file.addEntries(document, 'credentialprovider.DockerConfig', (node) => kubeletEntry(node));
    return file.result();
  }
  const file = new File<KubeletCredential>('DockerConfigJSON', ['auths']);
  file.walk(document, 'credentialprovider.DockerConfigJSON', {
    auths: (node) =>
      file.addEntries(node, 'credentialprovider.DockerConfig', (entry) =>
        kubeletEntry(entry, 'DockerConfigJSON', ['auths']),
      ),
    HttpHeaders: (node) => file.checkTextMap(node, ['HttpHeaders']),
  });
  return file.result();
}

/** Reads a document as containers/image does. Base64 is looked at only when the entry is used. */
export function decodeForContainers(document: JsonNode, format: DockerConfigFormat): DecodedFile<JsonNode> {
  const mapType = 'map[string]config.dockerAuthConfig';
  if (format === 'dockercfg') {
    const file = new File<JsonNode>('', []);
    file.addEntries(document, mapType, (node) => containersEntry(node, []));
    return file.result();
  }
  const file = new File<JsonNode>('dockerConfigFile', ['auths']);
  file.walk(document, 'config.dockerConfigFile', {
    auths: (node) => file.addEntries(node, mapType, (entry) => containersEntry(entry, ['auths'])),
    credHelpers: (node) => file.checkTextMap(node, ['credHelpers']),
  });
  return file.result();
}

/** Collects entries and the first fault, in the order in which Go meets them. */
class File<T> {
  readonly #struct: string;
  readonly #path: readonly string[];
  #entries = new Map<string, T>();
  #saved: string | undefined;
  #aborted: string | undefined;

  constructor(struct: string, path: readonly string[]) {
    this.#struct = struct;
    this.#path = path;
  }

  /** Goes through the fields of the outermost struct. */
  walk(document: JsonNode, type: string, fields: Readonly<Record<string, (node: JsonNode) => void>>): void {
    if (document.kind === 'null') return;
    if (document.kind !== 'object') return this.#save({ value: document.kind, struct: '', path: [], type });
    for (const member of document.members) {
      const name = fieldOf(member.key, Object.keys(fields));
      if (name !== undefined && this.#aborted === undefined) fields[name]?.(member.value);
    }
  }

  addEntries(node: JsonNode, type: string, read: (entry: JsonNode) => Decoded<T>): void {
    if (node.kind === 'null') return this.#entries.clear();
    if (node.kind !== 'object') {
      return this.#save({ value: node.kind, struct: this.#struct, path: this.#path, type });
    }
    for (const member of node.members) {
      if (this.#aborted !== undefined) return;
      const decoded = read(member.value);
      // Go makes the key even where the value is wrong.
      if (decoded.ok) this.#entries.set(member.key, decoded.value);
      else if (decoded.abort) this.#aborted = decoded.goText;
      else this.#saved ??= decoded.goText;
    }
  }

  checkTextMap(node: JsonNode, path: readonly string[]): void {
    if (node.kind === 'null') return;
    if (node.kind !== 'object') {
      return this.#save({ value: node.kind, struct: this.#struct, path, type: 'map[string]string' });
    }
    for (const member of node.members) {
      const { kind } = member.value;
      if (kind !== 'string' && kind !== 'null') {
        this.#save({ value: kind, struct: this.#struct, path, type: 'string' });
      }
    }
  }

  #save(fault: TypeFault): void {
    this.#saved ??= typeFaultText(fault);
  }

  result(): DecodedFile<T> {
    const goText = this.#aborted ?? this.#saved;
    return goText === undefined ? { ok: true, entries: this.#entries } : { ok: false, goText };
  }
}

/** One entry for the kubelet. `struct` and `path` say where it stands, for the error text. */
export function kubeletEntry(
  node: JsonNode,
  struct = '',
  path: readonly string[] = [],
): Decoded<KubeletCredential> {
  const type = 'credentialprovider.dockerConfigEntryWithAuth';
  if (node.kind !== 'object' && node.kind !== 'null') return abort({ value: node.kind, struct, path, type });
  const { wrong, texts } = readTexts(node, ['username', 'password', 'email', 'auth']);
  if (wrong !== undefined) {
    const inner = struct === '' ? 'dockerConfigEntryWithAuth' : struct;
    return abort({ value: wrong.kind, struct: inner, path: [...path, wrong.field], type: 'string' });
  }
  return kubeletCredential(texts);
}

function kubeletCredential(texts: Texts['texts']): Decoded<KubeletCredential> {
  const { username = '', password = '', email = '', auth = '' } = texts;
  if (auth === '') return { ok: true, value: { username, password: redact(password), email } };
  const decoded = decodeKubeletAuth(auth);
  return decoded.ok ? { ok: true, value: { ...decoded.value, email } } : decoded;
}

// strings.TrimSpace knows other blanks than String.trim.
const ENDS_PADDED = /=[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/;

/** The bytes of an `auth` field as the kubelet decodes it: with padding if it ends in `=`, else without. */
export function decodedAuth(auth: string): Base64Result {
  return decodeGoBase64(auth, ENDS_PADDED.test(auth) ? 'padded' : 'raw');
}

function decodeKubeletAuth(auth: string): Decoded<Omit<KubeletCredential, 'email'>> {
  const decoded = decodedAuth(auth);
  if (!decoded.ok) return { ok: false, goText: decoded.goText, abort: true };
  const colon = decoded.bytes.indexOf(0x3a);
  if (colon < 0) return { ok: false, goText: COLON_MISSING, abort: true };
  return {
    ok: true,
    value: {
      username: decodeUtf8(decoded.bytes.subarray(0, colon)),
      password: redact(decodeUtf8(decoded.bytes.subarray(colon + 1))),
      ...(isUtf8(decoded.bytes) ? {} : { notUtf8: redact(decoded.bytes) }),
    },
  };
}

function containersEntry(node: JsonNode, path: readonly string[]): Decoded<JsonNode> {
  const type = 'config.dockerAuthConfig';
  const struct = path.length === 0 ? '' : 'dockerConfigFile';
  if (node.kind !== 'object' && node.kind !== 'null') {
    return { ok: false, goText: typeFaultText({ value: node.kind, struct, path, type }), abort: false };
  }
  const { wrong } = readTexts(node, ['auth', 'identitytoken']);
  if (wrong === undefined) return { ok: true, value: node };
  const fault = {
    value: wrong.kind,
    struct: 'dockerAuthConfig',
    path: [...path, wrong.field],
    type: 'string',
  };
  return { ok: false, goText: typeFaultText(fault), abort: false };
}

/** What containers/image makes of the entry it has chosen. */
export function containersCredential(node: JsonNode): Decoded<ContainersCredential> {
  const none = { username: '', password: redact(''), identityToken: redact('') };
  const { auth = '', identitytoken = '' } = readTexts(node, ['auth', 'identitytoken']).texts;
  const decoded = decodeGoBase64(auth, 'padded');
  if (!decoded.ok) return { ok: false, goText: decoded.goText, abort: true };
  const colon = decoded.bytes.indexOf(0x3a);
  if (colon < 0) return { ok: true, value: none };
  return {
    ok: true,
    value: {
      username: decodeUtf8(decoded.bytes.subarray(0, colon)),
      password: redact(trimNul(decodeUtf8(decoded.bytes.subarray(colon + 1)))),
      identityToken: redact(identitytoken),
    },
  };
}

/** strings.Trim(text, "\x00"). */
function trimNul(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && text.charCodeAt(start) === 0) start += 1;
  while (end > start && text.charCodeAt(end - 1) === 0) end -= 1;
  return text.slice(start, end);
}

function abort(fault: TypeFault): { readonly ok: false; readonly goText: string; readonly abort: true } {
  return { ok: false, goText: typeFaultText(fault), abort: true };
}

function typeFaultText({ value, struct, path, type }: TypeFault): string {
  const target = struct === '' ? 'Go value' : `Go struct field ${[struct, ...path].join('.')}`;
  return `json: cannot unmarshal ${value} into ${target} of type ${type}`;
}
