/**
 * `npm run release [-- --to FOLDER] [-- --snapshot]`: everything of a release in one folder, with checksums. Two runs over the
 * same commit give the same bytes. Refuses a tree with changes and a version without a dated section in CHANGELOG.md;
 * `--snapshot` builds all the same, for a trial.
 */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { describeError, PullwrightError } from '../runtime/rules/errors.ts';
import { VERSION } from '../runtime/rules/version.ts';
import type { Arch } from './base.ts';
import { buildCharts } from './charts-package.ts';
import { commandPages, manPage } from './cli-reference.ts';
import { compile } from './compile.ts';
import { buildImage } from './image/build.ts';
import { buildLibrary } from './library.ts';
import { releaseProblems } from './release-problems.ts';
import { runTool } from './run-tool.ts';
import { billDifferences, billOfMaterials } from './sbom.ts';

const ROOT = resolve(import.meta.dirname, '..');
const ARCHS: readonly Arch[] = ['x64', 'arm64'];

export interface ReleaseOptions {
  /** Replaced. */
  readonly to: string;
  /** Executables that are there already; those that are missing are compiled. */
  readonly executables?: Readonly<Partial<Record<Arch, string>>>;
  readonly say?: (line: string) => void;
}

/** Builds every artefact and `SHA256SUMS`. Gives the names of the files, sorted. */
export async function buildRelease({
  to,
  executables = {},
  say = () => undefined,
}: ReleaseOptions): Promise<readonly string[]> {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'pullwright-release-'));
  const name = (what: string): string => join(to, `pullwright-${VERSION}-${what}`);
  try {
    const built = Object.fromEntries(
      ARCHS.map((arch) => {
        const file = name(`linux-${arch}`);
        const present = executables[arch];
        if (present === undefined) compile({ root: ROOT, arch, outfile: file });
        else copyFileSync(present, file);
        say(file);
        return [arch, file];
      }),
    );
    buildImage({ to: join(work, 'image'), executables: built });
    archive(join(work, 'image'), name('image.oci.tar'), []);
    say(name('image.oci.tar'));
    library(work, to);
    archive(join(ROOT, 'dist/manifests'), name('manifests.tar.gz'), ['--use-compress-program=gzip -n']);
    writeFileSync(join(to, 'pullwright.1'), manPage(await commandPages()));
    const bill = billOfMaterials(ROOT);
    assertBill(bill);
    writeFileSync(name('sbom.spdx.json'), bill);
    const files = readdirSync(to).sort();
    writeFileSync(
      join(to, 'SHA256SUMS'),
      files.map((file) => `${sha256(join(to, file))}  ${file}\n`).join(''),
    );
    return [...files, 'SHA256SUMS'].sort();
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** @throws PullwrightError `NotReleasable`, with everything that stands in the way */
export function assertReleasable(root: string = ROOT): void {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const problems = releaseProblems({
    status: runTool(['git', 'status', '--porcelain'], root),
    changelog: readFileSync(join(root, 'CHANGELOG.md'), 'utf8'),
    version: VERSION,
    packageVersion: version,
  });
  if (problems.length > 0)
    throw new PullwrightError(`Cannot release ${VERSION}: ${problems.join('; ')}`, {
      code: 'NotReleasable',
      hint: 'Fix that, or give --snapshot for a trial',
    });
}

function library(work: string, to: string): void {
  const folder = join(work, 'lib');
  buildLibrary(folder);
  runTool(['npm', 'pack', folder, '--pack-destination', work, '--silent'], work);
  copyFileSync(join(work, `pullwright-${VERSION}.tgz`), join(to, `pullwright-${VERSION}-library.tgz`));
  const charts = join(work, 'charts');
  buildCharts(charts);
  runTool(['npm', 'pack', charts, '--pack-destination', to, '--silent'], work);
}

function assertBill(bill: Uint8Array): void {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Parameters<
    typeof billDifferences
  >[1];
  const document = JSON.parse(Buffer.from(bill).toString('utf8')) as Parameters<typeof billDifferences>[0];
  const differences = billDifferences(document, lock, 'pullwright');
  if (differences.length > 0)
    throw new PullwrightError(
      `The bill of materials is not that of the lock file: ${differences.join('; ')}`,
      {
        code: 'BillDiffers',
      },
    );
}

/** Sorted, without times and owners: the same bytes for the same files. */
function archive(folder: string, file: string, more: readonly string[]): void {
  const flags = ['--sort=name', '--format=ustar', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  runTool(['tar', ...flags, '--mode=u+rw,go-w,a+rX', ...more, '-cf', file, '-C', folder, '.'], folder);
}

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      to: { type: 'string', default: join(ROOT, 'dist/release') },
      snapshot: { type: 'boolean', default: false },
    },
  });
  if (!values.snapshot) assertReleasable();
  const to = resolve(values.to);
  const files = await buildRelease({ to, say: (line) => process.stderr.write(`${line}\n`) });
  process.stdout.write(`${files.map((file) => join(to, file)).join('\n')}\n`);
}

if (import.meta.main) {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`${describeError(error)}\n`);
    process.exitCode = 1;
  }
}
