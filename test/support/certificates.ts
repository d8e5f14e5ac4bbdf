/** Throw-away certificates for servers on loopback, made by openssl: a CA, and what it signs. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificates {
  /** PEM of the CA. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Whether certificates can be made here. */
export function hasOpenssl(): boolean {
  return spawnSync('openssl', ['version']).status === 0;
}

/** A fresh CA and a server certificate for localhost, 127.0.0.1 and ::1. */
export function makeCertificates(
  options: { readonly days?: number; readonly names?: string } = {},
): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'certificates-'));
  const file = (name: string): string => join(folder, name);
  const names = options.names ?? 'DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:::1';
  const days = String(options.days ?? 2);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  try {
    openssl([
      'req',
      '-x509',
      ...key,
      '-days',
      days,
      '-subj',
      '/CN=test-ca',
      '-keyout',
      file('ca.key'),
      '-out',
      file('ca.crt'),
    ]);
    openssl(['req', ...key, '-subj', '/CN=test-server', '-keyout', file('s.key'), '-out', file('s.csr')]);
    writeFileSync(file('ext'), `subjectAltName=${names}\nextendedKeyUsage=serverAuth\n`);
    const signing = [
      '-CA',
      file('ca.crt'),
      '-CAkey',
      file('ca.key'),
      '-CAcreateserial',
      '-extfile',
      file('ext'),
    ];
    openssl(['x509', '-req', '-in', file('s.csr'), ...signing, '-days', days, '-out', file('s.crt')]);
    const text = (name: string): string => readFileSync(file(name), 'utf8');
    return { ca: text('ca.crt'), cert: text('s.crt'), key: text('s.key') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function openssl(args: readonly string[]): void {
  const ran = spawnSync('openssl', args, { encoding: 'utf8' });
  if (ran.status !== 0) throw new Error(`openssl ${args[0]} failed: ${ran.stderr}`);
}
