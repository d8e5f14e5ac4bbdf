/**
 * `npm run build:lib`: the construct library and the command line as a package for Node, `dist/lib`: JavaScript and types, since
 * Node strips no types inside `node_modules`. What only this repository needs (the runtimes, the tools) is left out.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

const root = new URL('..', import.meta.url).pathname;

/** The manifest of the package. */
export function libraryManifest(source: Manifest): Readonly<Record<string, unknown>> {
  const { name, version, description, license, engines, dependencies } = source;
  return {
    name,
    version,
    description,
    license,
    type: 'module',
    engines,
    bin: { pullwright: 'main.js', 'kubectl-pullwright': 'main.js' },
    exports: {
      '.': { types: './charts/mod.d.ts', default: './charts/mod.js' },
      './package.json': './package.json',
    },
    types: './charts/mod.d.ts',
    files: [
      'main.js',
      'main.d.ts',
      'charts',
      'runtime',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'CHANGELOG.md',
    ],
    dependencies,
  };
}

/** Compiles into `out`, emptied first. Needs the compiler of this repository. */
export function buildLibrary(out: string = join(root, 'dist/lib')): void {
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
      include: [join(root, 'charts'), join(root, 'runtime'), join(root, 'main.ts')],
      exclude: [],
    }),
  );
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', config], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  rmSync(config);
  const manifest = libraryManifest(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest);
  writeFileSync(join(out, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const file of ['LICENSE', 'README.md', 'SECURITY.md', 'CHANGELOG.md'])
    copyFileSync(join(root, file), join(out, file));
}

if (import.meta.main) {
  buildLibrary();
  process.stdout.write('dist/lib: pack it with "npm pack ./dist/lib"\n');
}
