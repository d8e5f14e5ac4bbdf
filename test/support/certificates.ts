/** Throw-away certificates for servers on loopback: a CA, and what it signs. */
import { Authority } from '../control-plane/x509.ts';

export interface Certificates {
  /** PEM of the CA. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** A fresh CA and a server certificate, for localhost, 127.0.0.1 and ::1 unless said otherwise. */
export function makeCertificates(
  options: {
    readonly hosts?: readonly string[];
    readonly notAfter?: Date;
    /** Expiry of the CA. */
    readonly caNotAfter?: Date;
  } = {},
): Certificates {
  const { caNotAfter } = options;
  const authority = new Authority('test-ca', caNotAfter === undefined ? {} : { notAfter: caNotAfter });
  const { certificate, key } = authority.issue({
    commonName: 'test-server',
    hosts: options.hosts ?? ['localhost', '127.0.0.1', '::1'],
    ...(options.notAfter === undefined ? {} : { notAfter: options.notAfter }),
  });
  return { ca: authority.certificate, cert: certificate, key };
}
