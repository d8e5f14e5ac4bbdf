/**
 * Asks registries for the manifests of images as this node would pull them: through its own mirrors, with the credentials in its
 * file, trusting the certificates that it trusts. Nothing is pulled. Imported only on a node that shows the others how it goes.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { type ConfFile, readConfFiles, registriesFor } from '../../host/conf-files.ts';
import { type ProbeResult, type ProbeVerdict } from '../../registry/probe.ts';
import { credentialsOf } from '../../registry/token.ts';
import { RegistryTransport } from '../../registry/transport.ts';
import { type Question, questionKey, verifyAll } from '../../registry/verify.ts';
import { parseImageReference } from '../../rules/auth-lookup/image-reference.ts';
import type { AuthSource } from '../../rules/auth-lookup/kubelet.ts';
import { type PullAttempt, pullAttempts } from '../../rules/auth-lookup/pull-attempts.ts';
import { describeError } from '../../rules/errors.ts';
import { redact } from '../../rules/redacted.ts';
import {
  type ImageProbe,
  judgeImages,
  type ProbedImage,
  type ProbedPlace,
} from '../../rules/rollout/image-probe.ts';

export interface ImageQuestionOptions {
  /** The file that the kubelet and CRI-O read. */
  readonly file: string;
  /** The node's `/etc`, as this process sees it. */
  readonly etc: string;
}

/** For one answer; mirrors that are down must not take the time of those that are not. */
const ANSWER_MS = 10_000;
/** For all of them. */
const ALL_MS = 60_000;

/** Asks. Never rejects. */
export async function askForImages(
  images: readonly string[],
  options: ImageQuestionOptions,
  signal?: AbortSignal,
): Promise<ImageProbe> {
  try {
    const node = {
      name: options.file,
      format: 'config.json',
      text: redact(readFileSync(options.file, 'utf8')),
    } as const;
    const conf = readConfFiles(
      {
        registriesConf: join(options.etc, 'containers/registries.conf'),
        registriesConfDirs: ['registries.rootful.conf.d', 'registries.conf.d'].map((folder) =>
          join(options.etc, 'containers', folder),
        ),
      },
      undefined,
    );
    const wanted = await Promise.all(images.map((image) => attemptsFor(image, node, conf)));
    const answers = await answersTo(
      wanted.flatMap(({ attempts }) => attempts),
      options,
      signal,
    );
    return judgeImages(wanted.map(({ image, attempts }) => askedImage(image, attempts, answers)));
  } catch (error) {
    return { state: 'Unanswered', says: `cannot ask registries as this node would: ${describeError(error)}` };
  }
}

interface Wanted {
  readonly image: string;
  readonly attempts: readonly PullAttempt[];
}

async function attemptsFor(image: string, node: AuthSource, conf: readonly ConfFile[]): Promise<Wanted> {
  const parsed = parseImageReference(image);
  if (!parsed.ok) return { image, attempts: [{ reference: image, kind: 'source', notAsked: parsed.goText }] };
  const mirrors = await registriesFor(conf, parsed.reference.repository);
  return { image, attempts: pullAttempts({ image: parsed.reference, secrets: [], node, mirrors }).attempts };
}

async function answersTo(
  attempts: readonly PullAttempt[],
  { etc }: ImageQuestionOptions,
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, ProbeResult>> {
  const enough = AbortSignal.timeout(ALL_MS);
  const transport = new RegistryTransport({ ca: trusted(etc, attempts.map(hostOf)) });
  try {
    return await verifyAll(
      attempts.flatMap((attempt) => questionOf(attempt) ?? []),
      {
        transport,
        timeoutMs: ANSWER_MS,
        concurrency: 4,
        signal: signal === undefined ? enough : AbortSignal.any([signal, enough]),
      },
    );
  } finally {
    transport.close();
  }
}

function questionOf({ reference, credential, notAsked }: PullAttempt): Question | undefined {
  if (notAsked !== undefined) return undefined;
  return { reference, ...(credential === undefined ? {} : { credential: credentialsOf(credential) }) };
}

function askedImage(
  image: string,
  attempts: readonly PullAttempt[],
  answers: ReadonlyMap<string, ProbeResult>,
): ProbedImage {
  const places = attempts.map((attempt): ProbedPlace => {
    const { reference, notAsked } = attempt;
    const question = questionOf(attempt);
    const result = question === undefined ? undefined : answers.get(questionKey(question));
    if (result === undefined) return { reference, answer: 'silent', says: notAsked ?? 'it was not asked' };
    return { reference, answer: ANSWER[result.verdict] ?? 'silent', says: result.message };
  });
  return { image, places };
}

/** What a registry says by itself counts; what is wrong with the way to it is no word about the credential. */
const ANSWER: Partial<Record<ProbeVerdict, ProbedPlace['answer']>> = {
  Valid: 'yes',
  Invalid: 'no',
  Forbidden: 'no',
  NotFound: 'no',
};

function hostOf({ reference }: PullAttempt): string {
  return reference.split('/')[0] ?? '';
}

/** Where distributions have the certificates that a machine trusts: Red Hat's, then Debian's, then SUSE's. */
const BUNDLES = [
  'pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  'ssl/certs/ca-certificates.crt',
  'ssl/ca-bundle.pem',
] as const;

/** What the node trusts: its own bundle, and what it has for these registries. */
function trusted(etc: string, hosts: readonly string[]): readonly string[] {
  const bundle = BUNDLES.map((path) => textIn(join(etc, path))).find((text) => text !== undefined);
  const own = [...new Set(hosts)].flatMap((host) =>
    ['containers/certs.d', 'docker/certs.d'].flatMap((folder) => certificatesIn(join(etc, folder, host))),
  );
  return [...(bundle === undefined ? rootCertificates : [bundle]), ...own];
}

function certificatesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.crt'))
      .flatMap((name) => textIn(join(folder, name)) ?? []);
  } catch {
    return [];
  }
}

function textIn(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
