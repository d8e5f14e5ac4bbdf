/** Certificates for a test control plane: the few lines of DER that `node:crypto` does not have. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export interface CertificateRequest {
  readonly commonName: string;
  /** Groups, for a client certificate. */
  readonly organizations?: readonly string[];
  /** DNS names, IPv4 addresses and `::1`, for a serving certificate. */
  readonly hosts?: readonly string[];
  readonly authority?: boolean;
  /** @default {an hour ago} */
  readonly notBefore?: Date;
  /** @default {in ten years} */
  readonly notAfter?: Date;
}

export interface Identity {
  readonly certificate: string;
  readonly key: string;
}

/** Signs certificates, as the CA of one control plane. */
export class Authority {
  readonly certificate: string;
  readonly #key: KeyPair;
  readonly #name: string;

  constructor(name: string, validity: Pick<CertificateRequest, 'notBefore' | 'notAfter'> = {}) {
    this.#name = name;
    this.#key = newKey();
    this.certificate = this.#sign({ commonName: name, authority: true, ...validity }, this.#key.publicKey);
  }

  /** A new key with a certificate of this CA, both PEM. */
  issue(request: CertificateRequest): Identity {
    const pair = newKey();
    return { certificate: this.#sign(request, pair.publicKey), key: pemOf(pair.privateKey) };
  }

  #sign(request: CertificateRequest, publicKey: KeyObject): string {
    const tbs = sequence(
      tagged(0xa0, integer(Buffer.from([2]))),
      integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
      SIGNATURE_ALGORITHM,
      distinguishedName(this.#name),
      sequence(
        time(request.notBefore ?? new Date(Date.now() - 3_600_000)),
        time(request.notAfter ?? new Date(Date.now() + 3650 * 86_400_000)),
      ),
      distinguishedName(request.commonName, request.organizations),
      publicKey.export({ type: 'spki', format: 'der' }),
      tagged(0xa3, sequence(...extensions(request))),
    );
    const signature = sign('sha256', tbs, this.#key.privateKey);
    const der = sequence(tbs, SIGNATURE_ALGORITHM, tagged(0x03, Buffer.from([0]), signature));
    const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
    return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
  }
}

/** A P-256 key. */
export function newKey(): KeyPair {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

/** PKCS#8 or SPKI text. */
export function pemOf(key: KeyObject): string {
  return key.export({ type: key.type === 'private' ? 'pkcs8' : 'spki', format: 'pem' }).toString();
}

/** A JSON Web Token signed with `keyPem` (ES256), as the API server signs those of service accounts. */
export function signToken(keyPem: string, claims: Readonly<Record<string, unknown>>): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: 'ES256' })}.${part(claims)}`;
  const key = createPrivateKey(keyPem);
  return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}

function extensions(request: CertificateRequest): Buffer[] {
  const list = [extension('551d0f', true, tagged(0x03, Buffer.from(request.authority ? [1, 6] : [5, 0xa0])))];
  if (request.authority)
    return [...list, extension('551d13', true, sequence(tagged(0x01, Buffer.from([0xff]))))];
  const purpose = request.hosts === undefined ? '2b06010505070302' : '2b06010505070301';
  list.push(extension('551d25', false, sequence(objectId(purpose))));
  if (request.hosts !== undefined)
    list.push(extension('551d11', false, sequence(...request.hosts.map(alternativeName))));
  return list;
}

function alternativeName(host: string): Buffer {
  if (/^\d+(\.\d+){3}$/.test(host)) return tagged(0x87, Buffer.from(host.split('.').map(Number)));
  if (host === '::1') return tagged(0x87, Buffer.concat([Buffer.alloc(15), Buffer.from([1])]));
  return tagged(0x82, Buffer.from(host));
}

function distinguishedName(commonName: string, organizations: readonly string[] = []): Buffer {
  const attribute = (id: string, text: string): Buffer =>
    tagged(0x31, sequence(objectId(id), tagged(0x0c, Buffer.from(text))));
  return sequence(...organizations.map((name) => attribute('55040a', name)), attribute('550403', commonName));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  const flag = critical ? [tagged(0x01, Buffer.from([0xff]))] : [];
  return sequence(objectId(id), ...flag, tagged(0x04, value));
}

function time(date: Date): Buffer {
  return tagged(0x18, Buffer.from(`${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`));
}

function objectId(hex: string): Buffer {
  return tagged(0x06, Buffer.from(hex, 'hex'));
}

function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  if (body.length < 128) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const length = Buffer.from(body.length.toString(16).padStart(body.length < 256 ? 2 : 4, '0'), 'hex');
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body]);
}

/** ecdsa-with-SHA256. */
const SIGNATURE_ALGORITHM: Buffer = sequence(objectId('2a8648ce3d040302'));
