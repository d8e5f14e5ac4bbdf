/** Reads the import statements of every source file and holds them against the directions that the design allows. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { suite } from '../support/suite.ts';

const test = suite('import directions');
const root = new URL('../..', import.meta.url).pathname;

const SYSTEMS = [
  'global-pull-secret',
  'pull-secret-injection',
  'registry-overrides',
  'pull-secret-adapter',
  'credential-provider',
];
const CORE = [
  'rules',
  'http',
  'kube',
  'controller',
  'host',
  'node',
  'telemetry',
  'webhook',
  'brokers',
  'registry',
];

/** The system whose folder a file lies in. A shelf of the rules has the name of a system and is none. */
function systemOf(file: string): string | undefined {
  const [top, folder] = file.split('/');
  return top === 'runtime' || top === 'charts' ? SYSTEMS.find((system) => system === folder) : undefined;
}

/** Folder (the longest match wins) to the folders and packages it may import. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  'runtime/rules': ['runtime/rules'],
  'runtime/telemetry': ['runtime/rules', 'prom-client'],
  'runtime/http': ['runtime/rules'],
  'runtime/kube': [
    'runtime/rules',
    'runtime/http',
    'runtime/telemetry',
    '@kubernetes/client-node',
    'openid-client',
    'yaml',
  ],
  'runtime/host': ['runtime/rules', 'dbus-next', 'smol-toml'],
  'runtime/node': ['runtime/rules', 'runtime/host', 'runtime/telemetry', 'runtime/kube'],
  'runtime/registry': ['runtime/rules', 'runtime/http', 'runtime/telemetry'],
  'runtime/webhook': ['runtime/rules', 'runtime/host', 'runtime/telemetry', 'runtime/kube'],
  'runtime/brokers': ['runtime/rules', 'runtime/telemetry', 'rabbitmq-client', '@google-cloud/pubsub'],
  'runtime/controller': ['runtime/http', 'runtime/kube', 'runtime/telemetry', 'runtime/rules', 'yaml'],
  'runtime/uninstall': ['runtime/rules', 'runtime/kube', 'runtime/controller', 'runtime/host'],
  charts: [
    'charts',
    'runtime/rules',
    'runtime/kube/yaml.ts',
    // Expressions are compiled when a fleet is rendered, so that no pod ends with one that is wrong.
    'runtime/pull-secret-adapter/sentinel',
    'cdk8s',
    'cdk8s-plus-28',
    // Types of kinds that cdk8s-plus-28 lacks.
    '@kubernetes/client-node',
    'constructs',
    'yaml',
    'zod',
  ],
};

function sources(): string[] {
  const found = globSync(['main.ts', 'charts/**/*.ts', 'runtime/**/*.ts', 'build/**/*.ts'], {
    cwd: root,
  }).sort();
  assert.ok(found.includes('runtime/rules/errors.ts'), 'the sources are not found');
  return found;
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
  const found = text.matchAll(
    /^(?:import|export)\b[^'"`;]*?from\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)|^import\s+['"]([^'"]+)['"]/gm,
  );
  return [...found]
    .map((match) => match[1] ?? match[2] ?? match[3] ?? '')
    .map((target) => (target.startsWith('.') ? normalize(join(dirname(file), target)) : target));
}

/** What is loaded with a file. A command that is loaded when it is asked for makes no circle. */
function staticImportsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
  return [...text.matchAll(/^(?:import|export)\b[^'"`;]*?from\s*'(\.[^']+)'/gm)].map((match) =>
    normalize(join(dirname(file), match[1] ?? '')),
  );
}

function allowedFor(file: string): readonly string[] | undefined {
  const folder = Object.keys(ALLOWED)
    .filter((name) => file.startsWith(`${name}/`))
    .sort((a, b) => b.length - a.length)[0];
  if (folder === undefined) return undefined;
  // Plain object functions are shared with the runtime, so they must not bring cdk8s with them.
  if (/^charts\/.*\/objects\.ts$/.test(file))
    return ['runtime/rules', 'charts/shared/objects.ts', 'charts/shared/kubernetes.ts', `${dirname(file)}/`];
  return [folder, ...(ALLOWED[folder] ?? [])];
}

function within(target: string, allowed: readonly string[]): boolean {
  if (target.startsWith('node:')) return true;
  return allowed.some(
    (name) =>
      target === name || target.startsWith(`${name}/`) || (name.endsWith('/') && target.startsWith(name)),
  );
}

test('each folder imports only what its row allows', () => {
  const wrong: string[] = [];
  for (const file of sources()) {
    const allowed = allowedFor(file);
    if (allowed === undefined) continue;
    for (const target of importsOf(file))
      if (!within(target, allowed)) wrong.push(`${file} imports ${target}`);
  }
  assert.deepEqual(wrong, []);
});

test('rules import no side effect: nothing of Node but what is pure', () => {
  const pure = new Set(['node:crypto', 'node:buffer', 'node:util']);
  const wrong = sources()
    .filter((file) => file.startsWith('runtime/rules/'))
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => target.startsWith('node:') && !pure.has(target))
        .map((target) => `${file} imports ${target}`),
    );
  assert.deepEqual(wrong, []);
});

test('a system imports no other system', () => {
  const wrong: string[] = [];
  for (const file of sources()) {
    const own = systemOf(file);
    if (own === undefined) continue;
    for (const target of importsOf(file)) {
      const other = systemOf(target);
      if (other !== undefined && other !== own) wrong.push(`${file} imports ${target}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('nothing imports commands, bin, build or main.ts but themselves', () => {
  const wrong = sources()
    .filter((file) => file !== 'main.ts' && !/^(runtime\/(commands|bin)|build)\//.test(file))
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => /^(runtime\/(commands|bin)\/|build\/|main\.ts)/.test(target))
        .map((target) => `${file} imports ${target}`),
    );
  assert.deepEqual(wrong, []);
});

test('the core knows none of the five systems', () => {
  const wrong = sources()
    .filter((file) => CORE.some((folder) => file.startsWith(`runtime/${folder}/`)))
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => systemOf(target) !== undefined)
        .map((target) => `${file} imports ${target}`),
    );
  assert.deepEqual(wrong, []);
});

test('nothing that ships imports what builds it', () => {
  const wrong = sources()
    .filter((file) => !file.startsWith('build/'))
    .flatMap((file) => importsOf(file).filter((target) => target.startsWith('build/')));
  assert.deepEqual(wrong, []);
});

test('no file imports itself by way of others, types included', () => {
  const all = new Map(sources().map((file) => [file, staticImportsOf(file)]));
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' > '));
    if (done.has(file) || path.includes(file)) return;
    for (const target of all.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of all.keys()) visit(file, []);
  assert.deepEqual(circles, []);
});

test('every file is under 600 lines, tests and benches too', () => {
  const all = [...sources(), ...globSync(['test/**/*.ts', 'bench/**/*.ts'], { cwd: root })];
  const long = all.filter((file) => readFileSync(join(root, file), 'utf8').split('\n').length > 600);
  assert.deepEqual(long, []);
});

test('credentials are unwrapped only in the listed files', () => {
  const callers = sources().filter(
    (file) =>
      /\breveal\(/.test(readFileSync(join(root, file), 'utf8')) && file !== 'runtime/rules/redacted.ts',
  );
  const listed = readFileSync(join(root, 'test/architecture/reveal-allowed.txt'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  assert.deepEqual(
    callers.filter((file) => !listed.includes(file)),
    [],
    'add a file only where it parses, compares or writes credentials',
  );
});

test('the environment is read only by the shells', () => {
  const wrong = sources().filter(
    (file) =>
      file.startsWith('runtime/') &&
      !/^runtime\/(commands|bin)\//.test(file) &&
      readFileSync(join(root, file), 'utf8').includes('process.env'),
  );
  assert.deepEqual(wrong, []);
});

test.run();
