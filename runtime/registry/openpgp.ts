/**
 * As much of OpenPGP (RFC 4880) as the signature of a release needs: RSA keys out of a keyring, and one signed message. Whether a key
 * has expired or was revoked is not looked at; who gives the key says that it counts.
 */
import { createHash, createPublicKey, createVerify, type KeyObject } from 'node:crypto';
import { inflateRawSync, inflateSync } from 'node:zlib';

/** Text that is no such thing, or of a kind that is not known here. */
export class OpenPgpError extends Error {}

export interface SigningKey {
  /** Sixteen hexadecimal digits. */
  readonly id: string;
  readonly key: KeyObject;
}

interface Packet {
  readonly tag: number;
  readonly body: Buffer;
}

const TAG = { signature: 2, publicKey: 6, compressed: 8, literal: 11, publicSubkey: 14 } as const;
const RSA: readonly number[] = [1, 3];
const HASHES: Readonly<Record<number, string>> = { 8: 'sha256', 9: 'sha384', 10: 'sha512' };
/** A signed message of a release has some hundred bytes. */
const MAX_MESSAGE = 1024 * 1024;

/** RSA keys of a keyring, armoured or not; keys of other kinds are skipped. @throws OpenPgpError */
export function signingKeys(keyring: Uint8Array): readonly SigningKey[] {
  return packetsOf(unarmoured(Buffer.from(keyring))).flatMap(({ tag, body }) => {
    if ((tag !== TAG.publicKey && tag !== TAG.publicSubkey) || body[0] !== 4 || !RSA.includes(body[5] ?? 0))
      return [];
    const modulus = integerAt(body, 6);
    const exponent = integerAt(body, modulus.end);
    const key = createPublicKey({
      format: 'jwk',
      key: { kty: 'RSA', n: modulus.bytes.toString('base64url'), e: exponent.bytes.toString('base64url') },
    });
    return [{ id: keyId(body.subarray(0, exponent.end)), key }];
  });
}

export interface SignedMessage {
  readonly content: Buffer;
  /** Key that is said to have signed it. */
  readonly by: string;
  verify(key: KeyObject): boolean;
}

/** A message that is signed as a whole. @throws OpenPgpError */
export function signedMessage(bytes: Uint8Array): SignedMessage {
  const outer = packetsOf(unarmoured(Buffer.from(bytes)));
  const [first] = outer;
  const packets = first?.tag === TAG.compressed ? packetsOf(inflated(first.body)) : outer;
  const literal = packets.find(({ tag }) => tag === TAG.literal)?.body;
  const signature = packets.find(({ tag }) => tag === TAG.signature)?.body;
  if (literal === undefined || signature === undefined)
    throw new OpenPgpError('it is no signed message: it has no content, or no signature');
  // Format, name with its length, four bytes of time.
  const content = literal.subarray(2 + (literal[1] ?? 0) + 4);
  const { by, hash, trailer, value } = signature[0] === 3 ? partsOfThree(signature) : partsOfFour(signature);
  return {
    content,
    by,
    verify: (key) => {
      const size = ((key.asymmetricKeyDetails?.modulusLength ?? 0) + 7) >> 3;
      if (value.length > size) return false;
      const padded = Buffer.concat([Buffer.alloc(size - value.length), value]);
      return createVerify(hash).update(content).update(trailer).verify(key, padded);
    },
  };
}

interface SignatureParts {
  readonly by: string;
  readonly hash: string;
  readonly trailer: Buffer;
  readonly value: Buffer;
}

function partsOfFour(body: Buffer): SignatureParts {
  if (body[0] !== 4) throw new OpenPgpError(`its signature has version ${body[0] ?? 0}, expected 3 or 4`);
  const hashedEnd = 6 + body.readUInt16BE(4);
  const looseEnd = hashedEnd + 2 + body.readUInt16BE(hashedEnd);
  const hashed = body.subarray(0, hashedEnd);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(hashed.length);
  const fields = [body.subarray(6, hashedEnd), body.subarray(hashedEnd + 2, looseEnd)].flatMap(subpacketsOf);
  const issuer = fields.find(({ type }) => type === 16)?.data ?? fields.find(({ type }) => type === 33)?.data;
  return {
    by: (issuer?.subarray(-8) ?? Buffer.alloc(0)).toString('hex').toUpperCase(),
    hash: hashOf(body[2], body[3]),
    trailer: Buffer.concat([hashed, Buffer.from([4, 0xff]), length]),
    value: integerAt(body, looseEnd + 2).bytes,
  };
}

function partsOfThree(body: Buffer): SignatureParts {
  return {
    by: body.subarray(7, 15).toString('hex').toUpperCase(),
    hash: hashOf(body[15], body[16]),
    trailer: body.subarray(2, 7),
    value: integerAt(body, 19).bytes,
  };
}

function hashOf(algorithm: number | undefined, hash: number | undefined): string {
  if (!RSA.includes(algorithm ?? 0)) throw new OpenPgpError('its signature is no RSA signature');
  const name = HASHES[hash ?? 0];
  if (name === undefined)
    throw new OpenPgpError('its signature is over a hash other than SHA-256, SHA-384 and SHA-512');
  return name;
}

function subpacketsOf(area: Buffer): readonly { readonly type: number; readonly data: Buffer }[] {
  const found: { readonly type: number; readonly data: Buffer }[] = [];
  for (let at = 0; at < area.length; ) {
    const { length, start } = lengthAt(area, at);
    found.push({ type: (area[start] ?? 0) & 0x7f, data: area.subarray(start + 1, start + length) });
    at = start + length;
  }
  return found;
}

function keyId(body: Buffer): string {
  const head = Buffer.from([0x99, body.length >> 8, body.length & 0xff]);
  return createHash('sha1')
    .update(Buffer.concat([head, body]))
    .digest()
    .subarray(-8)
    .toString('hex')
    .toUpperCase();
}

function integerAt(body: Buffer, at: number): { readonly bytes: Buffer; readonly end: number } {
  if (at + 2 > body.length) throw new OpenPgpError('it ends within a number');
  const end = at + 2 + ((body.readUInt16BE(at) + 7) >> 3);
  if (end > body.length) throw new OpenPgpError('it ends within a number');
  return { bytes: body.subarray(at + 2, end), end };
}

function packetsOf(bytes: Buffer): readonly Packet[] {
  const packets: Packet[] = [];
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at] ?? 0;
    if ((first & 0x80) === 0) throw new OpenPgpError('it is no OpenPGP data');
    const { tag, parts, end } = (first & 0x40) === 0 ? oldPacket(bytes, at) : newPacket(bytes, at);
    packets.push({ tag, body: Buffer.concat(parts) });
    at = end;
  }
  return packets;
}

interface PacketAt {
  readonly tag: number;
  readonly parts: readonly Buffer[];
  readonly end: number;
}

function oldPacket(bytes: Buffer, at: number): PacketAt {
  const first = bytes[at] ?? 0;
  const tag = (first >> 2) & 0x0f;
  const kind = first & 3;
  // The last packet of a stream may not know its length.
  if (kind === 3) return { tag, parts: [bytes.subarray(at + 1)], end: bytes.length };
  const size = 1 << kind;
  const start = at + 1 + size;
  if (start > bytes.length) throw new OpenPgpError('it is cut off');
  return { tag, ...slice(bytes, start, bytes.readUIntBE(at + 1, size)) };
}

function newPacket(bytes: Buffer, at: number): PacketAt {
  const parts: Buffer[] = [];
  const tag = (bytes[at] ?? 0) & 0x3f;
  for (let next = at + 1; ; ) {
    const { length, start, partial } = lengthAt(bytes, next);
    const { parts: own, end } = slice(bytes, start, length);
    parts.push(...own);
    if (!partial) return { tag, parts, end };
    next = end;
  }
}

function slice(bytes: Buffer, start: number, length: number): Pick<PacketAt, 'parts' | 'end'> {
  const end = start + length;
  if (end > bytes.length) throw new OpenPgpError('it is cut off');
  return { parts: [bytes.subarray(start, end)], end };
}

function lengthAt(
  bytes: Buffer,
  at: number,
): { readonly length: number; readonly start: number; readonly partial: boolean } {
  const first = bytes[at];
  if (first === undefined) throw new OpenPgpError('it is cut off');
  if (first < 192) return { length: first, start: at + 1, partial: false };
  if (first < 224)
    return { length: ((first - 192) << 8) + (bytes[at + 1] ?? 0) + 192, start: at + 2, partial: false };
  if (first < 255) return { length: 1 << (first & 0x1f), start: at + 1, partial: true };
  if (at + 5 > bytes.length) throw new OpenPgpError('it is cut off');
  return { length: bytes.readUInt32BE(at + 1), start: at + 5, partial: false };
}

function inflated(body: Buffer): Buffer {
  const packed = body.subarray(1);
  try {
    if (body[0] === 0) return packed;
    if (body[0] === 1) return inflateRawSync(packed, { maxOutputLength: MAX_MESSAGE });
    if (body[0] === 2) return inflateSync(packed, { maxOutputLength: MAX_MESSAGE });
  } catch {
    throw new OpenPgpError('its content cannot be unpacked');
  }
  throw new OpenPgpError('its content is packed in a way that is not known here');
}

function unarmoured(bytes: Buffer): Buffer {
  if (bytes.subarray(0, 10).toString('latin1') !== '-----BEGIN') return bytes;
  const lines = bytes.toString('latin1').split(/\r?\n/);
  const from = lines.indexOf('') + 1;
  const to = lines.findIndex(
    (line, at) => at >= from && (line.startsWith('=') || line.startsWith('-----END')),
  );
  return Buffer.from(lines.slice(from, to === -1 ? undefined : to).join(''), 'base64');
}
