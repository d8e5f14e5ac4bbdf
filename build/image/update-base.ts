/**
 * `npm run base:update [-- --check]`: writes versions and checksums of the newest packages of the base image to
 * `base-packages.json`. Commit the result to ship a fix of a library. `--check` writes nothing, and exits with 1 if there is a
 * newer package.
 *
 * apt verifies the signatures of Debian's package lists with the keys of `debian-archive-keyring`.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PullwrightError } from '../../runtime/core/errors.ts';
import { jsonText } from '../../runtime/core/text.ts';
import { runProgram, runTool, workFolder } from '../run-tool.ts';
import { type BasePins, type DebianArch, debianMirror, PINS, type PinnedPackage } from './debian.ts';

/** Debian release of the base image. */
const RELEASE = 'bookworm';
const PACKAGES: readonly string[] = ['ca-certificates', 'libc6'];
const ARCHITECTURES: readonly DebianArch[] = ['amd64', 'arm64'];
const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * Parses a line of `apt-get download --print-uris`; undefined for other lines.
 *
 * @example
 * ```ts
 * import { pinFrom } from './update-base.ts';
 * import assert from 'node:assert/strict';
 *
 * const line = `'http://deb.debian.org/debian/pool/main/g/glibc/libc6_2.36-9%2bdeb12u14_amd64.deb' libc6_2.36-9+deb12u14_amd64.deb 2759 SHA256:ba4f`;
 * assert.deepEqual(pinFrom(line), {
 *   name: 'libc6',
 *   version: '2.36-9+deb12u14',
 *   architecture: 'amd64',
 *   archive: 'debian',
 *   path: 'pool/main/g/glibc/libc6_2.36-9+deb12u14_amd64.deb',
 *   size: 2759,
 *   sha256: 'ba4f',
 * });
 * assert.equal(pinFrom('Reading package lists'), undefined);
 * ```
 */
export function pinFrom(line: string): PinnedPackage | undefined {
  const [quoted = '', file = '', size = '', sum = ''] = line.split(' ');
  if (!quoted.startsWith("'") || !sum.startsWith('SHA256:')) return undefined;
  const address = decodeURIComponent(quoted.slice(1, -1));
  const pool = address.indexOf('/pool/');
  const [name = '', version = '', architecture = ''] = file.replace(/\.deb$/, '').split('_');
  return {
    name,
    // File names write the colon of an epoch as %3a.
    version: decodeURIComponent(version),
    architecture: architecture as PinnedPackage['architecture'],
    archive: address.slice(0, pool).endsWith('/debian-security') ? 'debian-security' : 'debian',
    path: address.slice(pool + 1),
    size: Number(size),
    sha256: sum.slice('SHA256:'.length),
  };
}

/** The newest packages in Debian's signed package lists. */
function newest(): readonly PinnedPackage[] {
  using work = workFolder('base');
  const pins = ARCHITECTURES.flatMap((arch) =>
    listed(work.path, arch)
      .split('\n')
      .flatMap((line) => pinFrom(line) ?? []),
  );
  // A package for all architectures is listed for each.
  const found = new Map(pins.map((pin) => [`${pin.name} ${pin.architecture}`, pin]));
  return [...found.values()].sort((a, b) =>
    `${a.name} ${a.architecture}` < `${b.name} ${b.architecture}` ? -1 : 1,
  );
}

/** Runs apt with its own state, independent of the machine's packages and sources. */
function listed(work: string, arch: DebianArch): string {
  const state = join(work, arch);
  for (const folder of ['lists/partial', 'cache/archives/partial'])
    mkdirSync(join(state, folder), { recursive: true });
  writeFileSync(join(state, 'status'), '');
  const sources = [
    ['debian', RELEASE],
    ['debian', `${RELEASE}-updates`],
    ['debian-security', `${RELEASE}-security`],
  ].map(([archive, suite]) => `deb [signed-by=${KEYS}] ${debianMirror()}/${archive} ${suite} main\n`);
  writeFileSync(join(state, 'sources.list'), sources.join(''));
  const flags = [
    `APT::Architecture=${arch}`,
    `APT::Architectures=${arch}`,
    `Dir::Etc::sourcelist=${state}/sources.list`,
    'Dir::Etc::sourceparts=-',
    `Dir::State::Lists=${state}/lists`,
    `Dir::Cache=${state}/cache`,
    `Dir::State::status=${state}/status`,
    'APT::Sandbox::User=root',
    'APT::Update::Error-Mode=any',
  ].flatMap((option) => ['-o', option]);
  runTool(['apt-get', ...flags, '-qq', 'update'], state);
  return runTool(['apt-get', ...flags, '-qq', 'download', '--print-uris', ...PACKAGES], state);
}

function main(): void {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  const old = JSON.parse(readFileSync(PINS, 'utf8')) as BasePins;
  const packages = newest();
  if (packages.length < PACKAGES.length * ARCHITECTURES.length - 1)
    throw new PullwrightError(
      `Debian's lists have ${packages.length} packages for the base of the image: expected ${PACKAGES.join(', ')} for ${ARCHITECTURES.join(', ')}`,
      { code: 'BaseIncomplete', hint: 'Is the release still on the mirror?' },
    );
  if (JSON.stringify(packages) === JSON.stringify(old.packages)) {
    process.stdout.write('The base of the image is the newest\n');
    return;
  }
  for (const { name, architecture, version } of packages) {
    const before = old.packages.find((one) => one.name === name && one.architecture === architecture);
    if (before?.version !== version)
      process.stdout.write(`${name} (${architecture}): ${before?.version ?? 'new'} -> ${version}\n`);
  }
  // The first snapshot that has everything published until now.
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  const snapshot = `${tomorrow.slice(0, 10).replaceAll('-', '')}T000000Z`;
  if (values.check) process.exitCode = 1;
  else writeFileSync(PINS, jsonText({ snapshot, packages } satisfies BasePins));
}

if (import.meta.main) await runProgram(main, 2);
