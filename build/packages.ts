/**
 * `npm run build:npm [-- --to FOLDER]`: packs the two npm packages as tarballs, by default in `dist`. `pullwright` is the command
 * line for laptops: one bundle without dependencies. `@pullwright/charts` is the library: constructs, the fleet with its schema,
 * and test helpers. It is JavaScript with types, because Node strips no types inside `node_modules`.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { build, type Plugin } from 'esbuild';
import { fleetSchemaText } from '../charts/fleet-schema.ts';
import { jsonText } from '../runtime/core/text.ts';
import { VERSION } from '../runtime/core/version.ts';
import { ROOT, runTool, workFolder } from './run-tool.ts';
import { packagePath } from './sbom.ts';

/** Fields of `package.json` that the packages use. */
interface Manifest {
  readonly license: string;
  readonly description: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

/** Builds both packages into `to`. Returns the paths of the tarballs. */
export async function buildPackages(to: string): Promise<readonly string[]> {
  return [await buildCommandLine(to), await buildCharts(to)];
}

/** Builds `pullwright-<version>.tgz` in the folder `to` and returns its path. */
export function buildCommandLine(to: string): Promise<string> {
  return packed(to, `pullwright-${VERSION}.tgz`, async (folder) => {
    const modules = await bundle(folder);
    writeFileSync(join(folder, 'LICENSES-of-dependencies.txt'), licencesOf(modules));
    copyFileSync(join(ROOT, 'build/needs-node.cjs'), join(folder, 'needs-node.cjs'));
    writeFileSync(join(folder, 'pullwright.cjs'), ENTRY);
    copyFileSync(join(ROOT, 'README.md'), join(folder, 'README.md'));
    return {
      name: 'pullwright',
      type: 'module',
      bin: { pullwright: 'pullwright.cjs', 'kubectl-pullwright': 'pullwright.cjs' },
    };
  });
}

const ENTRY = `#!/usr/bin/env node
require('./needs-node.cjs');
require('./lib/main.js').runMain(process.argv.slice(2)).then(function (code) { process.exitCode = code; });
`;

/** Bundles the command line into `folder`: one chunk per command, loaded on demand. Returns the paths of the bundled modules. */
async function bundle(folder: string): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['runtime/commands/main.ts'],
    outdir: join(folder, 'lib'),
    bundle: true,
    minify: true,
    splitting: true,
    metafile: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    legalComments: 'none',
    logLevel: 'error',
    // CommonJS packages call `require` for Node's modules.
    banner: { js: 'import{createRequire as from}from"node:module";const require=from(import.meta.url);' },
    plugins: [imageOnly],
  });
  return Object.keys(metafile.inputs);
}

/** Commands that run in pods and on nodes, from the image. */
const IMAGE_ONLY: Readonly<Record<string, string>> = {
  adapter: 'pull-secret-adapter/adapter',
  agent: 'global-pull-secret/agent',
  'install-provider': 'credential-provider/installer',
  job: 'pull-secret-adapter/job',
  provider: 'credential-provider/plugin',
  sentinel: 'pull-secret-adapter/sentinel',
};

/** Replaces those commands with an error that says where they run. */
const imageOnly: Plugin = {
  name: 'image-only',
  setup(bundler) {
    for (const [name, folder] of Object.entries(IMAGE_ONLY)) {
      bundler.onResolve({ filter: new RegExp(`/${folder}/command\\.ts$`) }, () => ({
        path: name,
        namespace: 'image-only',
      }));
    }
    bundler.onLoad({ filter: /.*/, namespace: 'image-only' }, ({ path }) => ({
      resolveDir: ROOT,
      loader: 'ts',
      contents: `import { NOTHING } from './runtime/cli/command.ts';
        import { PullwrightError } from './runtime/core/errors.ts';
        const text = 'The npm package has no command "${path}": it runs in pods and on nodes, from the image or the executable for Linux';
        const spec = { name: '${path}', about: [text + '.'], flags: {}, examples: [] };
        const run = async () => { throw new PullwrightError(text, { code: 'ImageOnly' }); };
        export const command = { name: '${path}', permissions: NOTHING, spec: async () => spec, run };`,
    }));
  },
};

/** The licences and notices of the packages of these modules. */
function licencesOf(modules: readonly string[]): string {
  const packages = new Set(modules.flatMap((module) => packagePath(module) ?? []));
  return [...packages]
    .sort()
    .flatMap((path) => {
      const files = readdirSync(join(ROOT, path)).filter((file) =>
        /^(licen[cs]e|notice|copying)/i.test(file),
      );
      return files.map((file) => `${path}/${file}\n\n${readFileSync(join(ROOT, path, file), 'utf8')}\n`);
    })
    .join('\n');
}

/** Peer dependencies, because constructs of two copies of cdk8s are incompatible. */
const PEERS = ['cdk8s', 'cdk8s-plus-28', 'constructs'];
/** Other packages that the library imports. */
const DEPENDENCIES = ['@marcbachmann/cel-js', 'smol-toml', 'yaml', 'zod'];

/** Builds `pullwright-charts-<version>.tgz` in the folder `to` and returns its path. */
export function buildCharts(to: string): Promise<string> {
  return packed(to, `pullwright-charts-${VERSION}.tgz`, async (folder, { dependencies }) => {
    compileInto(folder, ['charts/mod.ts', 'runtime/diagnose/commands/test.ts']);
    addTypes(folder);
    writeFileSync(join(folder, 'fleet.schema.json'), fleetSchemaText());
    copyFileSync(join(ROOT, 'docs/library.md'), join(folder, 'README.md'));
    const versions = (names: readonly string[], range = ''): object =>
      Object.fromEntries(names.map((name) => [name, `${range}${dependencies[name] ?? ''}`]));
    return {
      name: '@pullwright/charts',
      description: 'Pull credentials as code: cdk8s constructs, fleets, and tests for the YAML',
      type: 'module',
      exports: {
        '.': { types: './charts/mod.d.ts', default: './charts/mod.js' },
        './testing': {
          types: './runtime/diagnose/commands/test.d.ts',
          default: './runtime/diagnose/commands/test.js',
        },
        './fleet.schema.json': './fleet.schema.json',
        './package.json': './package.json',
      },
      types: './charts/mod.d.ts',
      peerDependencies: versions(PEERS, '^'),
      dependencies: versions(DEPENDENCIES),
    };
  });
}

/** Compiles `include` and its imports into `out`. */
function compileInto(out: string, include: readonly string[]): void {
  const config = join(out, 'tsconfig.json');
  const compilerOptions = {
    noEmit: false,
    outDir: out,
    rootDir: ROOT,
    rewriteRelativeImportExtensions: true,
    typeRoots: [join(ROOT, 'node_modules/@types')],
  };
  const files = include.map((path) => join(ROOT, path));
  writeFileSync(
    config,
    JSON.stringify({ extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: files, exclude: [] }),
  );
  runTool([join(ROOT, 'node_modules/.bin/tsc'), '-p', config], ROOT);
  rmSync(config);
}

/**
 * Replaces the types of client-node with `object`. They type kinds that cdk8s-plus lacks, and no exported type of the library
 * uses them. The user's compiler therefore needs neither client-node nor its dependencies.
 */
function addTypes(out: string): void {
  const file = join(out, 'runtime/core/kubernetes/objects.d.ts');
  const imported = /import type \{([^}]*)\} from '@kubernetes\/client-node';/g;
  const text = readFileSync(file, 'utf8').replace(imported, (_, names: string) =>
    names.replace(/(\w+),?/g, 'type $1 = object;'),
  );
  writeFileSync(file, text);
}

type Fill = (folder: string, manifest: Manifest) => Promise<Readonly<Record<string, unknown>>>;

/** Packs a folder that `fill` writes. `fill` returns the manifest fields that differ between the packages. */
async function packed(to: string, tarball: string, fill: Fill): Promise<string> {
  using temporary = workFolder('package');
  const folder = temporary.path;
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
  const own = await fill(folder, manifest);
  const { description, license, engines } = manifest;
  const text = jsonText({ version: VERSION, description, license, engines, ...own });
  writeFileSync(join(folder, 'package.json'), text);
  for (const file of ['LICENSE', 'SECURITY.md', 'CHANGELOG.md'])
    copyFileSync(join(ROOT, file), join(folder, file));
  mkdirSync(to, { recursive: true });
  runTool(['npm', 'pack', folder, '--pack-destination', resolve(to), '--silent'], folder);
  return join(to, tarball);
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { to: { type: 'string', default: join(ROOT, 'dist') } } });
  process.stdout.write(`${(await buildPackages(resolve(values.to))).join('\n')}\n`);
}
