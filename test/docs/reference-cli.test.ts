/** The reference of the command line and the man page have every flag of the tables. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { commandPages, manPage, markdownReference } from '../../build/reference/cli.ts';
import { docBlocks } from '../support/doc-blocks.ts';
import { test } from '../support/suite.ts';

const pages = await commandPages();

test('every flag is in both, once for each command', () => {
  const markdown = markdownReference(pages);
  const man = manPage(pages);
  for (const { spec } of pages) {
    const section = markdown.split(`\n## ${spec.name}\n`)[1]?.split('\n## ')[0] ?? '';
    const manSection = man.split(`\n.SS ${spec.name.replaceAll('-', '\\-')}\n`)[1]?.split('\n.SS ')[0] ?? '';
    for (const flag of Object.keys(spec.flags)) {
      const escaped = flag.replaceAll('-', '\\-');
      const rows = section.split('\n').filter((line) => new RegExp(`^\\| .*\`--${flag}[ \`]`).test(line));
      assert.equal(rows.length, 1, `${spec.name} --${flag} in docs/reference/cli.md`);
      const items = manSection
        .split('\n')
        .filter((line) => line.startsWith('.B ') && `${line} `.includes(`\\-\\-${escaped} `));
      assert.equal(items.length, 1, `${spec.name} --${flag} in the man page`);
    }
  }
});

test('a line of the man page is a macro only where one is meant', () => {
  const macros = new Set(['.TH', '.SH', '.SS', '.PP', '.TP', '.B', '.I', '.EX', '.EE']);
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
