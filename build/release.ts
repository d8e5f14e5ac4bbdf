/**
 * `npm run release -- --key FILE --image NAME [--to FOLDER] [--builder ADDRESS]`: builds a release into one folder, with
 * checksums, signatures and provenance. Two runs over the same commit give the same bytes, except for ECDSA signatures, which are
 * random. Rejects a tree with changes, a version without a dated section in CHANGELOG.md, and a missing key. `--snapshot` skips
 * these checks, for a trial.
 */
import { hash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { defaultFleet, readFleet, renderBundle, renderChart, writeTree } from '../charts/mod.ts';
import { PullwrightError } from '../runtime/core/errors.ts';
import { defined } from '../runtime/core/record.ts';
import { DEFAULT_IMAGE, VERSION } from '../runtime/core/version.ts';
import { ARCHS, type Arch, readLock } from './base.ts';
import { compile } from './compile.ts';
import { buildImage } from './image/build.ts';
import { basePins, packageUrl } from './image/debian.ts';
import { buildPackages } from './packages.ts';
import { commandPages, manPage } from './reference/cli.ts';
import { lockProblems, releaseProblems, versionBefore } from './release-problems.ts';
import { archive, ROOT, runProgram, runTool, workFolder } from './run-tool.ts';
import { type Artefact, envelope, provenance, signatureOf, signImage, signingKey } from './sign.ts';

/** The signing key, and what it signs for. */
interface Signing {
  /** ECDSA on P-256, PEM. */
  readonly key: string;
  readonly passphrase?: string;
  /** Repository of the image, as nodes pull it. */
  readonly image: string;
  /** @default {'https://pullwright.dev/build/local'} */
  readonly builder?: string;
}

export interface ReleaseOptions {
  /** Output folder; replaced. */
  readonly to: string;
  /** Prebuilt executables by architecture. @default compiled */
  readonly executables?: Readonly<Record<Arch, string>>;
  /** Without it nothing is signed. */
  readonly signing?: Signing;
  readonly say?: (line: string) => void;
}

/** Image repository of an unsigned release. */
const DEFAULT_REPOSITORY = DEFAULT_IMAGE.slice(0, DEFAULT_IMAGE.lastIndexOf(':'));

/** Builds every artefact and `SHA256SUMS`. Returns the file names, sorted. */
export async function buildRelease(options: ReleaseOptions): Promise<readonly string[]> {
  const { to, signing, say = () => undefined } = options;
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  using temporary = workFolder('release');
  const work = temporary.path;
  const name = (what: string): string => join(to, `pullwright-${VERSION}-${what}`);
  const executables = { x64: name('linux-x64'), arm64: name('linux-arm64') };
  for (const arch of ARCHS) {
    const outfile = executables[arch];
    if (options.executables === undefined) compile(arch, outfile);
    else copyFileSync(options.executables[arch], outfile);
    say(outfile);
  }
  const image = buildImage(join(work, 'image'), executables);
  archive(join(work, 'image'), name('image.oci.tar'));
  say(name('image.oci.tar'));
  await buildPackages(to);
  archive(join(ROOT, 'dist/manifests'), name('manifests.tar.gz'));
  writeTree(join(work, 'helm/pullwright'), chart());
  // Helm strips the first folder of each path, and rejects "." as that folder.
  archive(join(work, 'helm'), name('chart.tgz'), 'pullwright');
  writeTree(join(work, 'bundle'), bundle(signing?.image, image.digest));
  archive(join(work, 'bundle'), name('bundle.tar.gz'));
  say(name('bundle.tar.gz'));
  writeFileSync(join(to, 'pullwright.1'), manPage(await commandPages()));
  copyFileSync(join(work, 'image/sbom.spdx.json'), name('sbom.spdx.json'));
  const files = readdirSync(to)
    .sort()
    .map((file) => ({ name: file, sha256: hash('sha256', readFileSync(join(to, file))) }));
  writeFileSync(join(to, 'SHA256SUMS'), files.map((file) => `${file.sha256}  ${file.name}\n`).join(''));
  if (signing !== undefined) signRelease(to, work, files, image.digest, signing);
  return readdirSync(to).sort();
}

/** The built-in fleet, with its other systems switched off. The adapter is missing, because it needs an API. */
function chart(): ReturnType<typeof renderChart> {
  const [cluster] = defaultFleet.clusters;
  const systems = {
    'pull-secret-injection': {},
    'registry-overrides': {},
    'credential-provider': {},
    verify: {},
    ...cluster?.systems,
  };
  const clusters = [{ name: 'default', delivery: 'reconciler' as const, systems }];
  return renderChart(readFleet({ ...defaultFleet, clusters }), Object.keys(cluster?.systems ?? {}));
}

/**
 * The bundle for OLM: the image by the digest of this release, at the repository that is signed. The systems are those of
 * docs/olm.md; together they render the CustomResourceDefinition of every kind of ours.
 */
function bundle(repository: string = DEFAULT_REPOSITORY, digest: string): ReturnType<typeof renderBundle> {
  const systems = { 'global-pull-secret': {}, 'pull-secret-injection': {} };
  const fleet = readFleet({
    image: `${repository}@${digest}`,
    clusters: [{ name: 'bundle', delivery: 'reconciler', systems }],
  });
  return renderBundle(fleet, versionBefore(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), VERSION));
}

/** @throws PullwrightError `NotReleasable`, with all problems that block the release */
export function assertReleasable(): void {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const problems = [
    ...releaseProblems({
      status: runTool(['git', 'status', '--porcelain'], ROOT),
      changelog: readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'),
      version: VERSION,
      packageVersion: version,
    }),
    ...lockProblems(readLock()),
  ];
  if (problems.length > 0)
    throw new PullwrightError(`Cannot release ${VERSION}: ${problems.join('; ')}`, {
      code: 'NotReleasable',
      hint: 'Fix that, or give --snapshot for a trial',
    });
}

/** Signs `SHA256SUMS`, which covers all files, and the image with each platform; writes the provenance. */
function signRelease(
  to: string,
  work: string,
  files: readonly Artefact[],
  image: string,
  signing: Signing,
): void {
  const key = signingKey(signing.key, signing.passphrase);
  const name = (what: string): string => join(to, `pullwright-${VERSION}-${what}`);
  writeFileSync(join(to, 'SHA256SUMS.sig'), signatureOf(key, readFileSync(join(to, 'SHA256SUMS'))));
  const index = readFileSync(join(work, 'image/blobs', image.replace(':', '/')), 'utf8');
  const { manifests } = JSON.parse(index) as { manifests: readonly { digest: string }[] };
  const digests = [image, ...manifests.map(({ digest }) => digest)];
  const statement = provenance({
    version: VERSION,
    commit: runTool(['git', 'rev-parse', 'HEAD'], ROOT).trim(),
    builder: signing.builder ?? 'https://pullwright.dev/build/local',
    subjects: [
      ...files,
      ...digests.map((digest) => ({
        name: signing.image,
        sha256: digest.slice('sha256:'.length),
      })),
    ],
    materials: [
      { name: 'package-lock.json', sha256: hash('sha256', readFileSync(join(ROOT, 'package-lock.json'))) },
      ...basePins().packages.map((pin) => ({ name: packageUrl(pin), sha256: pin.sha256 })),
    ],
  });
  const attestation = envelope(key, statement);
  writeFileSync(name('provenance.intoto.jsonl'), `${attestation}\n`);
  const signatures = join(work, 'signatures');
  signImage(key, { repository: signing.image, digests, attestation }, signatures);
  archive(signatures, name('image-signatures.oci.tar'));
}

function flags() {
  return parseArgs({
    options: {
      to: { type: 'string', default: join(ROOT, 'dist/release') },
      snapshot: { type: 'boolean', default: false },
      key: { type: 'string' },
      image: { type: 'string' },
      builder: { type: 'string' },
    },
  }).values;
}

/** @throws PullwrightError `NotSigned` when the key or the repository is missing */
function signingOf({ key, image, builder, snapshot }: ReturnType<typeof flags>): Signing | undefined {
  if (key === undefined && snapshot) return undefined;
  if (key === undefined || image === undefined)
    throw new PullwrightError(
      `Cannot release without ${key === undefined ? '--key: an unsigned release cannot be verified' : '--image: a signature names the repository that nodes pull from'}`,
      {
        code: 'NotSigned',
        hint: 'Give --key FILE and --image registry.example.com/pullwright/pullwright, or --snapshot for a trial',
      },
    );
  const passphrase = process.env['PULLWRIGHT_KEY_PASSPHRASE'];
  return { key: readFileSync(key, 'utf8'), image, ...defined({ builder, passphrase }) };
}

async function main(): Promise<void> {
  const values = flags();
  if (!values.snapshot) assertReleasable();
  const signing = signingOf(values);
  const to = resolve(values.to);
  const files = await buildRelease({
    to,
    ...defined({ signing }),
    say: (line) => process.stderr.write(`${line}\n`),
  });
  process.stdout.write(`${files.map((file) => join(to, file)).join('\n')}\n`);
}

if (import.meta.main) await runProgram(main);
