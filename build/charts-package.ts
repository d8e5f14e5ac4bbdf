/**
 * `@pullwright/charts`: constructs, the fleet with its schema, and test helpers, without what runs in clusters. cdk8s is the
 * user's own (a peer): constructs of two copies of it do not fit together.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fleetSchemaText } from '../charts/fleet-schema.ts';
import { compileInto, type PackageManifest, readManifest, writeManifest } from './package-files.ts';

const root = new URL('..', import.meta.url).pathname;

/** Packages that the user has in one copy. */
const PEERS = ['cdk8s', 'cdk8s-plus-28', 'constructs'];
/** What the compiled files import beside those. */
const DEPENDENCIES = ['@marcbachmann/cel-js', 'smol-toml', 'yaml', 'zod'];

/** The manifest of the package. */
export function chartsManifest(source: PackageManifest): Readonly<Record<string, unknown>> {
  const { version, license, engines, dependencies } = source;
  const of = (names: readonly string[], range: (version: string) => string): object =>
    Object.fromEntries(names.map((name) => [name, range(dependencies[name] ?? '')]));
  return {
    name: '@pullwright/charts',
    version,
    description: 'Pull credentials as code: cdk8s constructs, fleets, and tests for the YAML',
    license,
    type: 'module',
    engines,
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
    peerDependencies: of(PEERS, (exact) => `^${exact}`),
    dependencies: of(DEPENDENCIES, (exact) => exact),
  };
}

/** Compiles into `out`, emptied first. Needs the compiler of this repository. */
export function buildCharts(out: string = join(root, 'dist/charts')): void {
  compileInto(out, ['charts/mod.ts', 'runtime/diagnose/commands/test.ts']);
  bringTypes(out);
  writeFileSync(join(out, 'fleet.schema.json'), fleetSchemaText());
  writeManifest(out, chartsManifest(readManifest()));
  for (const file of ['LICENSE', 'SECURITY.md', 'CHANGELOG.md'])
    copyFileSync(join(root, file), join(out, file));
  copyFileSync(join(root, 'docs/library.md'), join(out, 'README.md'));
}

const MODELS = 'node_modules/@kubernetes/client-node/dist/gen/models';

/**
 * The kinds that cdk8s-plus lacks are typed by client-node, of which nothing is loaded. Their declarations come along, so that the
 * user's compiler needs neither the package nor what it depends on.
 */
function bringTypes(out: string): void {
  const file = join(out, 'runtime/core/kubernetes/objects.d.ts');
  const text = readFileSync(file, 'utf8');
  const names = [...text.matchAll(/import type \{([^}]*)\} from '@kubernetes\/client-node';/g)].flatMap(
    ([, list = '']) =>
      list
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== ''),
  );
  const own = names.map((name) => `import type { ${name} } from './models/${name}.js';`).join('\n');
  writeFileSync(file, text.replace(/import type \{[^}]*\} from '@kubernetes\/client-node';/g, own));
  const to = join(out, 'runtime/core/kubernetes/models');
  mkdirSync(to);
  const done = new Set<string>();
  const bring = (name: string): void => {
    if (done.has(name)) return;
    done.add(name);
    const model = readFileSync(join(root, MODELS, `${name}.d.ts`), 'utf8');
    for (const [, target = ''] of model.matchAll(/from '\.\.\/models\/([^']+)\.js'/g))
      bring(basename(target));
    writeFileSync(join(to, `${name}.d.ts`), model.replaceAll("from '../models/", "from './"));
  };
  for (const name of names) bring(name);
}
