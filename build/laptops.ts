/**
 * What package managers of laptops want: an archive for each platform, a manifest for krew and a formula for Homebrew.
 *
 * Source of the shapes: krew's `docs/CUSTOM_INDEXES`, `internal/index/validation` and Homebrew's Formula Cookbook.
 */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { VERSION } from '../runtime/rules/version.ts';
import { archive } from './archive.ts';
import type { Platform } from './base.ts';
import { sha256 } from './sign.ts';

/** Everything that executables are made for. */
export const PLATFORMS: readonly Platform[] = (['linux', 'darwin', 'windows'] as const).flatMap((os) =>
  (['x64', 'arm64'] as const).map((arch) => ({ os, arch })),
);

/** An archive that lies where it can be fetched. */
export interface Archive extends Platform {
  readonly sha256: string;
}

/** A release, and where its files are fetched from. */
export interface Published {
  readonly version: string;
  /** Address of the folder that holds the files, without a slash at its end. */
  readonly downloads: string;
  readonly archives: readonly Archive[];
}

/**
 * @example
 * ```ts
 * import { archiveName, programFile } from './laptops.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(archiveName('1.2.0', { os: 'darwin', arch: 'arm64' }), 'pullwright-1.2.0-darwin-arm64.tar.gz');
 * assert.equal(programFile('windows'), 'pullwright.exe');
 * ```
 */
export function archiveName(version: string, { os, arch }: Platform): string {
  return `pullwright-${version}-${os}-${arch}.tar.gz`;
}

/** What the program is called in an archive. */
export function programFile(os: Platform['os']): string {
  return os === 'windows' ? 'pullwright.exe' : 'pullwright';
}

/** At most 50 characters, as krew's index wants it. */
const SHORT = 'Explain, check and declare image pull credentials';

/** The manifest that `kubectl krew install --manifest-url` takes, and an index of one's own holds. */
export function krewManifest({ version, downloads, archives }: Published): string {
  const platforms = archives.map(({ os, arch, sha256 }) => ({
    selector: { matchLabels: { os, arch: arch === 'x64' ? 'amd64' : arch } },
    uri: `${downloads}/${archiveName(version, { os, arch })}`,
    sha256,
    bin: programFile(os),
    files: [programFile(os), 'LICENSE'].map((from) => ({ from, to: '.' })),
  }));
  return stringify(
    {
      apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
      kind: 'Plugin',
      metadata: { name: 'pullwright' },
      spec: {
        version: `v${version}`,
        homepage: 'https://pullwright.dev',
        shortDescription: SHORT,
        description: [
          'Says which credential is tried for which image at which mirror, for a pod, a',
          'namespace or a fleet (explain, doctor, status, report); judges pull secrets and',
          'mirror sets before they are applied (validate, test); and renders a fleet for a',
          'GitOps repository (synth). What runs on nodes and in pods is in the image.',
          '',
        ].join('\n'),
        platforms,
      },
    },
    { lineWidth: 0 },
  );
}

/** The formula: macOS and Linux, as Homebrew is for both. */
export function homebrewFormula(published: Published): string {
  const { version, archives } = published;
  const section = (os: 'darwin' | 'linux'): string[] => {
    const own = archives.filter((archive) => archive.os === os);
    if (own.length === 0) return [];
    const name = os === 'darwin' ? 'macos' : 'linux';
    return [`  on_${name} do`, ...own.flatMap((archive) => source(published, archive)), '  end', ''];
  };
  return [
    'class Pullwright < Formula',
    `  desc "${SHORT}"`,
    '  homepage "https://pullwright.dev"',
    `  version "${version}"`,
    '  license "Apache-2.0"',
    '',
    ...section('darwin'),
    ...section('linux'),
    '  def install',
    '    bin.install "pullwright"',
    '    bin.install_symlink "pullwright" => "kubectl-pullwright"',
    '    man1.install "pullwright.1"',
    '    generate_completions_from_executable(bin/"pullwright", "completion")',
    '    (buildpath/"kubectl_complete-pullwright").write Utils.safe_popen_read(bin/"pullwright", "completion", "kubectl")',
    '    chmod 0755, "kubectl_complete-pullwright"',
    '    bin.install "kubectl_complete-pullwright"',
    '  end',
    '',
    '  test do',
    '    assert_equal "pullwright #{version}\\n", shell_output("#{bin}/pullwright --version")',
    '  end',
    'end',
    '',
  ].join('\n');
}

function source({ version, downloads }: Published, { sha256, ...platform }: Archive): readonly string[] {
  return [
    `    on_${platform.arch === 'arm64' ? 'arm' : 'intel'} do`,
    `      url "${downloads}/${archiveName(version, platform)}"`,
    `      sha256 "${sha256}"`,
    '    end',
  ];
}

interface Places {
  /** For what is only packed. */
  readonly work: string;
  readonly to: string;
  /** Text of the man page. */
  readonly manual: string;
  readonly downloads: string;
  readonly platforms: readonly Platform[];
}

/**
 * Writes an archive for each platform, and `pullwright.yaml` and `pullwright.rb`, by which krew and Homebrew know them.
 *
 * @param place puts the executable of a platform to a path
 * @returns paths of the archives
 */
export function writeLaptops(
  { work, to, manual, downloads, platforms }: Places,
  place: (platform: Platform, file: string) => void,
): readonly string[] {
  const archives = platforms.map((platform) => {
    const folder = join(work, archiveName(VERSION, platform));
    const program = join(folder, programFile(platform.os));
    mkdirSync(folder);
    place(platform, program);
    chmodSync(program, 0o755);
    copyFileSync(resolve(import.meta.dirname, '../LICENSE'), join(folder, 'LICENSE'));
    writeFileSync(join(folder, 'pullwright.1'), manual);
    const file = join(to, archiveName(VERSION, platform));
    archive(folder, file, ['--use-compress-program=gzip -n']);
    rmSync(folder, { recursive: true });
    return { ...platform, file, sha256: sha256(readFileSync(file)) };
  });
  const published = { version: VERSION, downloads, archives };
  writeFileSync(join(to, 'pullwright.yaml'), krewManifest(published));
  writeFileSync(join(to, 'pullwright.rb'), homebrewFormula(published));
  return archives.map(({ file }) => file);
}
