/**
 * A serving certificate from files that somebody else renews (cert-manager, service-ca). A mounted Secret is swapped by a
 * symbolic link, which file watchers miss now and then, so the files are also looked at in intervals. A pair that does not
 * fit together, as between the writes of its two files, is not taken: the old one goes on serving.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { PullwrightError } from '../rules/errors.ts';
import { scalarText } from '../rules/record.ts';

export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
}

/** Texts of a pair that fits together. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** Reads the pair. @throws PullwrightError `CertificateUnusable`, which says which file and why */
export async function readPair(files: CertificateFiles): Promise<CertificatePair> {
  const [cert, key] = await Promise.all([readText(files.certificate), readText(files.key)]);
  const problem = pairProblem(cert, key);
  if (problem === undefined) return { cert, key };
  throw unusable(`"${files.certificate}" and "${files.key}": ${problem}`);
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch {
    throw unusable(`"${file}": it cannot be read`);
  }
}

function unusable(what: string): PullwrightError {
  return new PullwrightError(`Cannot use the certificate ${what}`, {
    code: 'CertificateUnusable',
    hint: 'Expected tls.crt and tls.key of one pair in PEM, as cert-manager and service-ca write them',
  });
}

function notTaken(error: unknown): PullwrightError {
  const why = error instanceof Error ? error.message : scalarText(error);
  return new PullwrightError(`Cannot go on with the new certificate: ${why}`, {
    code: 'CertificateUnusable',
    hint: 'Restart the pod: it starts with the files that are there',
  });
}

function pairProblem(cert: string, key: string): string | undefined {
  try {
    const leaf = new X509Certificate(cert);
    if (!leaf.checkPrivateKey(createPrivateKey(key))) return 'the key is not that of the certificate';
    createSecureContext({ cert, key });
    return undefined;
  } catch {
    return 'they are no PEM certificate and key';
  }
}

/** When the certificate ends. */
export function expiry(pair: CertificatePair): Date {
  return new Date(new X509Certificate(pair.cert).validTo);
}

/** Why nobody takes the certificate now: it is over, or has not begun. */
export function untimely(pair: CertificatePair, now: Date): string | undefined {
  const { validFrom, validTo } = new X509Certificate(pair.cert);
  const [from, to] = [new Date(validFrom), new Date(validTo)];
  if (now >= to)
    return `its certificate ended at ${to.toISOString()}, and the API server does not take it: see to who renews it`;
  return now < from
    ? `its certificate is not valid before ${from.toISOString()}: see to the clocks, and to who made it`
    : undefined;
}

export interface CertificateWatchOptions {
  readonly files: CertificateFiles;
  readonly everyMs: number;
  /** What is served now. */
  readonly present: CertificatePair;
  readonly onChange: (pair: CertificatePair) => void;
  /** Once per kind of failure; the old pair stays. */
  readonly onProblem: (problem: PullwrightError) => void;
}

/** Looks again and again until told to stop. */
export function watchPair(options: CertificateWatchOptions): () => void {
  let { present } = options;
  let said = '';
  let looking = false;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    try {
      const next = await readPair(options.files);
      said = '';
      if (next.cert === present.cert && next.key === present.key) return;
      options.onChange(next);
      present = next;
    } catch (error) {
      // Whatever keeps the new one from being served must not stay unsaid until the old one ends.
      const problem = error instanceof PullwrightError ? error : notTaken(error);
      if (problem.message === said) return;
      said = problem.message;
      options.onProblem(problem);
    } finally {
      looking = false;
    }
  };
  const timer = setInterval(() => void look(), options.everyMs);
  return () => clearInterval(timer);
}
