/** Finds the test files that a change can affect, and those that need no process or network, from import statements. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const root = new URL('../..', import.meta.url).pathname;

/** Programs that tests start as child processes, by a pattern in the code of a test or of its imports. */
const STARTED: readonly (readonly [sign: RegExp, file: string])[] = [
  [/\bmain\.ts['"`]/, 'main.ts'],
  [/\bexecutable\(/, 'runtime/commands/executable.ts'],
  [/\btest\/run\.ts['"`]/, 'test/run.ts'],
];

export interface Import {
  /** Path from the root, or a package. */
  readonly target: string;
  /** `import type`: nothing is loaded. */
  readonly isType: boolean;
  /** `import(...)`: loaded on demand. */
  readonly isLazy: boolean;
}

/** Imports and re-exports of a source, without those in comments. */
export function importsOf(file: string): readonly Import[] {
  const text = readFileSync(join(root, file), 'utf8').replace(/\/\*[^]*?\*\//g, '');
  const found = text.matchAll(
    /^(?:import|export)\b([^'"`;]*?)from\s*'([^']+)'|\bimport\(\s*'([^']+)'\s*\)|^import\s+'([^']+)'/gm,
  );
  return [...found].map(([, names = '', from, lazy, bare]) => {
    const target = from ?? lazy ?? bare ?? '';
    return {
      target: target.startsWith('.') ? normalize(join(dirname(file), target)) : target,
      isType: /^\s*type\b/.test(names),
      isLazy: lazy !== undefined,
    };
  });
}

/** Files and packages that are loaded when these are; types are erased, and `await import` is not followed. */
export function loadedBy(files: readonly string[]): ReadonlySet<string> {
  const seen = new Set(files);
  // The loop also visits files that it adds.
  for (const file of seen)
    for (const { target, isType, isLazy } of file.endsWith('.ts') ? importsOf(file) : [])
      if (!isType && !isLazy) seen.add(target);
  return seen;
}

const known = new Map<string, readonly string[]>();

/** Files that `file` imports, lazily or not, and programs that it starts. */
function leadsTo(file: string): readonly string[] {
  const found = known.get(file);
  if (found !== undefined) return found;
  const isSource = file.endsWith('.ts') && existsSync(join(root, file));
  const text = isSource ? readFileSync(join(root, file), 'utf8').replace(/\/\*[^]*?\*\//g, '') : '';
  const targets = isSource ? importsOf(file).map(({ target }) => target) : [];
  const started = file.startsWith('test/') ? STARTED.filter(([sign]) => sign.test(text)) : [];
  const all = [...targets, ...started.map(([, program]) => program)];
  known.set(file, all);
  return all;
}

/** Files and packages that `file` leads to, itself included. */
export function closureOf(file: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const open = [file];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    // The builds of the runner serve other tests.
    if (next !== 'test/run.ts') open.push(...leadsTo(next));
  }
  return seen;
}

/** The members of `tests` that start no process and open no connection. (`node:net` is allowed: it is used to parse addresses.) */
export function pureOf(tests: readonly string[]): readonly string[] {
  const outside =
    /^(node:(child_process|cluster|dgram|http|http2|https|tls|worker_threads)|playwright-core)$/;
  return tests.filter((test) => ![...closureOf(test)].some((name) => outside.test(name)));
}

/**
 * The members of `tests` that a change of `changed` can affect. A file that is not a source affects the tests of its folder and those
 * that name the file or its folder; shared files (package.json, tsconfig.json, the runner) affect all.
 *
 * @param changed paths from the root
 */
export function reachedBy(tests: readonly string[], changed: readonly string[]): readonly string[] {
  if (
    changed.some((file) =>
      /^(package(-lock)?\.json|tsconfig\.json|test\/run\.ts|test\/support\/suite\.ts)$/.test(file),
    )
  )
    return tests;
  const sources = changed.filter((file) => file.endsWith('.ts'));
  const others = changed.filter((file) => !file.endsWith('.ts'));
  return tests.filter((test) => {
    const closure = closureOf(test);
    if (sources.some((file) => closure.has(file))) return true;
    const text = readFileSync(join(root, test), 'utf8');
    return others.some(
      (file) =>
        dirname(file).startsWith(dirname(test)) || text.includes(file) || text.includes(`${dirname(file)}/`),
    );
  });
}
