/** The reference of the command line and the man page have every flag of the tables. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { commandPages, manPage, markdownReference } from '../../build/reference/cli.ts';
import { docBlocks } from '../support/doc-blocks.ts';
import { test } from '../support/suite.ts';

const pages = await commandPages();

test('every flag is in both, once for each command', () => {
  const markdown = markdownReference(pages);
  const man = manPage(pages).replaceAll('\\-', '-');
  for (const { spec } of pages)
    for (const [page, head] of [
      [markdown, '## '],
      [man, '.SS '],
    ] as const) {
      const section = page.split(`\n${head}${spec.name}\n`)[1]?.split(`\n${head}`)[0] ?? '';
      for (const flag of Object.keys(spec.flags)) {
        const rows = section
          .split('\n')
          .filter((line) => new RegExp(`^ {2}(-\\w, )?--${flag}( |$)`).test(line));
        assert.equal(rows.length, 1, `${head}${spec.name} --${flag}`);
      }
    }
});

test('a line of the man page is a macro only where one is meant', () => {
  const macros = new Set(['.TH', '.SH', '.SS', '.B', '.I', '.EX', '.EE']);
  for (const line of manPage(pages)
    .split('\n')
    .filter((one) => /^[.']/.test(one)))
    assert.ok(macros.has(line.split(' ')[0] ?? ''), line);
});

test('every command line of the documents names a command and flags that exist', () => {
  const known = new Map(pages.map(({ spec }) => [spec.name, spec]));
  const found = ['README.md', ...globSync('docs/**/*.md')].flatMap((page) =>
    docBlocks(page).flatMap(({ text }) =>
      [
        ...text
          .replaceAll('\\\n', ' ')
          .matchAll(/^(?:\$ )?(?:kubectl )?(?:pullwright|node main\.ts) ([a-z][^|&#;<>\n]*)/gm),
      ].map(([line, rest = '']) => ({ page, line, words: rest.trim().split(/\s+/) })),
    ),
  );
  assert.ok(found.length > 40);
  for (const { page, line, words } of found) {
    const spec = known.get(words[0] ?? '');
    assert.ok(spec !== undefined, `${page}: ${line}`);
    const short = Object.values(spec.flags).map((flag) => flag.short);
    for (const word of words.filter((one) => one.startsWith('-') && one !== '-')) {
      const [, name] = /^--([a-z-]+)/.exec(word) ?? [];
      assert.ok(
        name === undefined ? short.includes(word[1]) : ['help', ...Object.keys(spec.flags)].includes(name),
        `${page}: ${word} of ${line}`,
      );
    }
  }
});
