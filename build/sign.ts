/**
 * Signs a release with a key on disk, without a service. cosign, nodes (`policy.json` of containers/image) and openssl can verify
 * the signatures.
 *
 * Sources: cosign's signature specification (simple signing, storage by tag), DSSE v1, in-toto Statement v1, SLSA provenance v1.
 */
import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { PullwrightError } from '../runtime/core/errors.ts';
import { ImageLayout, tagged } from './image/layout.ts';

const SIMPLE_SIGNING = 'application/vnd.dev.cosign.simplesigning.v1+json';
const DSSE = 'application/vnd.dsse.envelope.v1+json';
const IN_TOTO = 'application/vnd.in-toto+json';
const PREDICATE = 'https://slsa.dev/provenance/v1';

/** A part of a release, with its digest. */
export interface Artefact {
  readonly name: string;
  readonly sha256: string;
}

/** Input of {@link provenance}. */
export interface ProvenanceInput {
  readonly version: string;
  /** Git commit of the source. */
  readonly commit: string;
  /** Builder id: an address that identifies a build platform and its rules. */
  readonly builder: string;
  readonly subjects: readonly Artefact[];
  /** Resolved dependencies, by package address. */
  readonly materials: readonly Artefact[];
}

/**
 * Returns the provenance of a release: an in-toto statement with SLSA's predicate.
 *
 * @example
 * ```ts
 * import { provenance } from './sign.ts';
 * import assert from 'node:assert/strict';
 *
 * const statement = provenance({ version: '1.0.0', commit: 'c0ffee', builder: 'https://ci.example.com', subjects: [{ name: 'a', sha256: '00' }], materials: [] });
 * assert.deepEqual(statement.subject, [{ name: 'a', digest: { sha256: '00' } }]);
 * assert.equal(statement.predicate.runDetails.builder.id, 'https://ci.example.com');
 * ```
 */
export function provenance({ version, commit, builder, subjects, materials }: ProvenanceInput) {
  const source = { uri: `pkg:generic/pullwright@${version}`, digest: { gitCommit: commit } };
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: subjects.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: PREDICATE,
    predicate: {
      buildDefinition: {
        buildType: 'https://pullwright.dev/build/release/v1',
        externalParameters: { source, version },
        resolvedDependencies: [
          source,
          ...materials.map(({ name, sha256 }) => ({ uri: name, digest: { sha256 } })),
        ],
      },
      runDetails: { builder: { id: builder } },
    },
  };
}

/**
 * Parses a private key whose signatures cosign and nodes can verify: ECDSA on P-256, PEM.
 *
 * @throws PullwrightError `SigningKey` when the text is not such a key
 */
export function signingKey(pem: string, passphrase?: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: pem, ...(passphrase === undefined ? {} : { passphrase }) });
  } catch {
    throw badKey(
      'it is not a private key in PEM, or its passphrase is not the one in PULLWRIGHT_KEY_PASSPHRASE',
    );
  }
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw badKey(`it is ${key.asymmetricKeyType ?? 'something else'}: expected ECDSA on the curve P-256`);
  return key;
}

function badKey(reason: string): PullwrightError {
  return new PullwrightError(`Cannot sign with the key: ${reason}`, {
    code: 'SigningKey',
    hint: 'Make one: openssl ecparam -name prime256v1 -genkey -noout -out release.key',
  });
}

/** ECDSA with SHA-256 over the bytes, as base64, for `cosign verify-blob --signature`. */
export function signatureOf(key: KeyObject, bytes: Uint8Array): string {
  return sign('sha256', bytes, key).toString('base64');
}

/** Signs a statement and returns the DSSE envelope. */
export function envelope(key: KeyObject, statement: object): string {
  const payload = Buffer.from(JSON.stringify(statement));
  // DSSE signs type and payload, each with its length.
  const head = `DSSEv1 ${Buffer.byteLength(IN_TOTO)} ${IN_TOTO} ${payload.length} `;
  const sig = signatureOf(key, Buffer.concat([Buffer.from(head), payload]));
  return JSON.stringify({
    payload: payload.toString('base64'),
    payloadType: IN_TOTO,
    signatures: [{ keyid: '', sig }],
  });
}

/** Input of {@link signImage}. */
export interface ImageToSign {
  /** Name without tag, as nodes pull it. The policies of nodes compare it. */
  readonly repository: string;
  /** Digests of the index and of each platform's image: nodes verify what they run, cosign what a tag names. */
  readonly digests: readonly string[];
  /** DSSE envelope, attached to each digest. */
  readonly attestation: string;
}

/** Writes an OCI layout with the signatures and attestations of an image, under the tags that cosign and nodes read. */
export function signImage(key: KeyObject, image: ImageToSign, to: string): void {
  const layout = new ImageLayout(to);
  const manifests = image.digests.flatMap((digest) => {
    const payload = Buffer.from(
      JSON.stringify({
        critical: {
          identity: { 'docker-reference': image.repository },
          image: { 'docker-manifest-digest': digest },
          type: 'cosign container image signature',
        },
        optional: null,
      }),
    );
    const signed = { 'dev.cosignproject.cosign/signature': signatureOf(key, payload) };
    const attested = { 'dev.cosignproject.cosign/signature': '', predicateType: PREDICATE };
    const attestation = Buffer.from(image.attestation);
    const tag = digest.replace(':', '-');
    return [
      tagged(layout.carrier(SIMPLE_SIGNING, payload, signed), `${tag}.sig`),
      tagged(layout.carrier(DSSE, attestation, attested), `${tag}.att`),
    ];
  });
  layout.index(manifests);
}
