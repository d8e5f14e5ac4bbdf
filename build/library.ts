/**
 * `npm run build:lib`: the command line as a package for Node, `dist/lib`, and the constructs as one of their own, `dist/charts`:
 * JavaScript and types, since Node strips no types inside `node_modules`. What only this repository needs (the runtimes, the
 * tools) is left out.
 */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildCharts } from './charts-package.ts';
import { compileInto, type PackageManifest, readManifest, writeManifest } from './package-files.ts';

const root = new URL('..', import.meta.url).pathname;

/** The manifest of the package. */
export function libraryManifest(source: PackageManifest): Readonly<Record<string, unknown>> {
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

/** Compiles the package of the command line into `out`, emptied first. Needs the compiler of this repository. */
export function buildLibrary(out: string = join(root, 'dist/lib')): void {
  compileInto(out, ['charts', 'runtime', 'main.ts']);
  writeManifest(out, libraryManifest(readManifest()));
  for (const file of ['LICENSE', 'README.md', 'SECURITY.md', 'CHANGELOG.md'])
    copyFileSync(join(root, file), join(out, file));
}

if (import.meta.main) {
  buildLibrary();
  buildCharts();
  process.stdout.write('dist/lib, dist/charts: pack them with "npm pack ./dist/lib ./dist/charts"\n');
}
