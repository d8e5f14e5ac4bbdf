/** What the packages for Node are made with: the compiler, and a manifest. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** As much of `package.json` as the packages take over. */
export interface PackageManifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

const root = new URL('..', import.meta.url).pathname;

/** Compiles `include`, and what it reaches, into `out`, emptied first. */
export function compileInto(out: string, include: readonly string[]): void {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const config = join(out, 'tsconfig.json');
  const options = {
    noEmit: false,
    outDir: out,
    rootDir: root,
    rewriteRelativeImportExtensions: true,
    typeRoots: [join(root, 'node_modules/@types')],
  };
  writeFileSync(
    config,
    JSON.stringify({
      extends: join(root, 'tsconfig.json'),
      compilerOptions: options,
      include: include.map((path) => join(root, path)),
      exclude: [],
    }),
  );
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', config], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  rmSync(config);
}

/** The manifest of this repository. */
export function readManifest(): PackageManifest {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as PackageManifest;
}

/** Writes the manifest of a package. */
export function writeManifest(out: string, manifest: Readonly<Record<string, unknown>>): void {
  writeFileSync(join(out, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}
