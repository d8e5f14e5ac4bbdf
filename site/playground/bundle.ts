/** Makes the playground: one page that holds its script, its worker, its style and the examples, so that it has nothing to ask for. */
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { PAGE_SCRIPT, PAGE_STYLE } from '../../runtime/diagnose/views/page.ts';
import { sourceHash } from '../policy.ts';
import type { HeldFile } from './messages.ts';

const HERE = import.meta.dirname;
const ROOT = resolve(HERE, '../..');

/** Node modules and their replacements in the page; an import of a missing name fails the build. */
const IN_PAGE: readonly (readonly [RegExp, string])[] = [
  [/^node:fs(\/promises)?$/, 'node/fs.ts'],
  [/^node:path$/, 'node/path.ts'],
  [/^node:crypto$/, 'node/crypto.ts'],
  [/^node:util$/, 'node/util.ts'],
  [/^node:zlib$/, 'node/zlib.ts'],
  [/^node:buffer$/, 'node/buffer.ts'],
];
/** Modules that a page cannot support (cluster, registry, broker, disk, chart rendering); their replacement reports that. */
const ABSENT =
  /^node:|^(cdk8s|cdk8s-plus-28|constructs|prom-client|rabbitmq-client|google-auth-library|dbus-next|@google-cloud\/.*|@kubernetes\/.*)$|\/kube\/(http-client|kubeconfig)\.ts$|\/registry\/probe\.ts$|\/live\.ts$|\/output-folder\.ts$|\/node\/[\w-]+\.ts$|\/addresses\.ts$/;

/** Every name that a source imports from another file or package: one of them is what an absent module gives. */
function importedNames(): readonly string[] {
  const texts = globSync('{runtime,charts}/**/*.ts', { cwd: ROOT }).map((file) =>
    readFileSync(join(ROOT, file), 'utf8'),
  );
  const lists = texts.flatMap((text) =>
    [...text.matchAll(/^import \{([^}]*)\} from/gm)].map(([, list = '']) => list),
  );
  const names = lists
    .flatMap((list) => list.split(','))
    .map((name) => name.trim().split(' as ')[0] ?? '')
    .filter((name) => /^\w+$/.test(name) && name !== 'default');
  return [...new Set(names)];
}

/** Puts the table into force for what is bundled. */
const inPage: Plugin = {
  name: 'in-page',
  setup(bundler) {
    for (const [filter, file] of IN_PAGE)
      bundler.onResolve({ filter }, ({ importer }) =>
        importer.includes('/site/playground/') ? undefined : { path: join(HERE, file) },
      );
    bundler.onResolve({ filter: ABSENT }, ({ path, importer }) =>
      `${importer} ${path}`.includes('/site/playground/')
        ? undefined
        : { path: 'absent', namespace: 'absent', sideEffects: false },
    );
    bundler.onLoad({ filter: /.*/, namespace: 'absent' }, () => ({
      contents: `import { absent } from ${JSON.stringify(join(HERE, 'node/absent.ts'))};
        export default absent;
        export { ${importedNames()
          .map((name) => `absent as ${name}`)
          .join(', ')} };`,
      resolveDir: HERE,
    }));
  },
};

/** Bundles a file, or source text in a folder, into one script for browsers, with Node's `Buffer`. */
export async function bundleForPage(
  entry: string | { readonly contents: string; readonly folder: string },
): Promise<string> {
  const { outputFiles } = await build({
    ...(typeof entry === 'string'
      ? { entryPoints: [entry] }
      : { stdin: { contents: entry.contents, resolveDir: entry.folder, loader: 'ts' as const } }),
    absWorkingDir: ROOT,
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: ['chrome120', 'firefox128', 'safari17'],
    charset: 'ascii',
    legalComments: 'none',
    inject: [join(HERE, 'node/globals.ts')],
    plugins: [inPage],
    define: { global: 'globalThis' },
    tsconfigRaw: {},
    logLevel: 'silent',
  });
  return outputFiles[0]?.text ?? '';
}

/** Folders of `examples/` that the page offers, with what is to be seen in each. */
const EXAMPLES: Readonly<Record<string, string>> = {
  troubled: 'A fleet in trouble',
  fleet: 'A fleet with two faults',
  'credential-provider': 'Credentials of namespaces',
  'credential-tests': 'A shop and its tests',
};

/** An example. */
export interface Example {
  readonly name: string;
  readonly title: string;
  readonly files: readonly HeldFile[];
}

/** Every example, with its manifests. */
export function examples(): readonly Example[] {
  return Object.entries(EXAMPLES).map(([name, title]) => ({
    name,
    title,
    files: globSync(`examples/${name}/**/*.yaml`, { cwd: ROOT })
      .filter((path) => !path.includes('/manifests/') || name === 'credential-tests')
      .filter((path) => !path.endsWith('.test.yaml'))
      .sort()
      .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') })),
  }));
}

/** The page. */
export async function playgroundPage(): Promise<string> {
  const [script, worker, style] = await Promise.all([
    bundleForPage(join(HERE, 'page.ts')),
    bundleForPage(join(HERE, 'worker.ts')),
    bundleForPage(join(HERE, 'style.css')),
  ]);
  const policy = [
    "default-src 'none'",
    // The report page runs in a frame, under the policy of this page.
    `script-src ${sourceHash(script)} ${sourceHash(PAGE_SCRIPT)}`,
    `style-src ${sourceHash(style)} ${sourceHash(PAGE_STYLE)}`,
    'worker-src blob:',
    'img-src data:',
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return readFileSync(join(HERE, 'page.html'), 'utf8')
    .replace('%POLICY%', policy)
    .replace('%STYLE%', () => style)
    .replace('%EXAMPLES%', () => inert(JSON.stringify(examples())))
    .replace('%WORKER%', () => inert(JSON.stringify(worker)))
    .replace('%SCRIPT%', () => script);
}

/** JSON that cannot close the element that contains it. */
function inert(json: string): string {
  return json.replaceAll('<', '\\u003c');
}
