/**
 * Every pattern of the product takes time linear in the text, whatever the text is: no part of it can match the same
 * characters in two ways, and none is tried anew from every place of a long run. Found by scslre in the syntax tree.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { parse } from 'acorn';
import { analyse } from 'scslre';
import { test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;
const SOURCES = globSync(['main.ts', 'runtime/**/*.ts', 'charts/**/*.ts'], { cwd: root });

interface Pattern {
  readonly source: string;
  readonly flags: string;
  readonly place: string;
}

/** Faults of a pattern; empty when it has none. */
function faults({ source, flags }: Pick<Pattern, 'source' | 'flags'>): readonly string[] {
  const { reports } = analyse({ source, flags });
  // A sticky pattern is tried from one place only.
  const found = flags.includes('y') ? reports.filter(({ type }) => type !== 'Move') : reports;
  return found.map(({ type, exponential }) => `${type}${exponential ? ', exponential' : ''}`);
}

function patternsOf(file: string): readonly Pattern[] {
  const text = readFileSync(join(root, file), 'utf8');
  const found: Pattern[] = [];
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(walk);
    if (typeof node !== 'object' || node === null || Array.isArray(node)) return;
    const { regex, start, ...rest } = node as {
      regex?: { pattern: string; flags: string };
      start?: number;
    };
    if (regex !== undefined) {
      const line = text.slice(0, start).split('\n').length;
      found.push({ source: regex.pattern, flags: regex.flags, place: `${file}:${line}` });
    }
    Object.values(rest).forEach(walk);
  };
  walk(parse(stripTypeScriptTypes(text), { ecmaVersion: 'latest', sourceType: 'module' }));
  return found;
}

test('the judge finds patterns that backtrack', () => {
  assert.deepEqual(faults({ source: '\\/+$', flags: '' }), ['Move']);
  assert.deepEqual(faults({ source: '^(?:a+)+$', flags: '' }), ['Self, exponential']);
  assert.deepEqual(faults({ source: '^a*a*$', flags: '' }), ['Trade']);
  assert.deepEqual(faults({ source: '^a+$', flags: '' }), []);
});

test('no pattern of the product backtracks', () => {
  const patterns = SOURCES.flatMap(patternsOf);
  assert.ok(patterns.length > 200, `${patterns.length} patterns were found`);
  const wrong = patterns.flatMap((pattern) =>
    faults(pattern).map((fault) => `${pattern.place}: /${pattern.source}/${pattern.flags}: ${fault}`),
  );
  assert.deepEqual(
    wrong,
    [],
    'use runtime/core/text.ts, or an anchored pattern whose parts exclude each other',
  );
});

/** Files that put a pattern together: of constants of the program, never of a text that comes from outside. */
const PUT_TOGETHER = SOURCES.filter((file) => /\bRegExp\(/.test(readFileSync(join(root, file), 'utf8')));

test('patterns that are put together when their file is loaded do not backtrack either', async () => {
  const Plain = globalThis.RegExp;
  const made: Pattern[] = [];
  let file = '';
  globalThis.RegExp = new Proxy(Plain, {
    construct(target, given: [string, string?]) {
      const pattern = new target(...given);
      const [, , caller = ''] = new Error('who asks').stack?.split('\n') ?? [];
      if (!caller.includes('/node_modules/'))
        made.push({ source: pattern.source, flags: pattern.flags, place: file });
      return pattern;
    },
  });
  try {
    // Each under a name of its own, so that it is loaded anew.
    for (file of PUT_TOGETHER) await import(`../../${file}?recorded`);
  } finally {
    globalThis.RegExp = Plain;
  }
  assert.ok(made.length >= 8, `${made.length} patterns were made`);
  const wrong = made.flatMap((pattern) =>
    faults(pattern).map((fault) => `${pattern.place}: /${pattern.source}/${pattern.flags}: ${fault}`),
  );
  assert.deepEqual(wrong, []);
});
