/** `docs/README.md` leads to every page, and every relative link of every page leads somewhere. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;

/** Targets of the relative links of a page, without those in code. */
function linksOf(file: string): readonly { readonly path: string; readonly anchor: string }[] {
  const text = readFileSync(join(root, file), 'utf8')
    .replace(/^```[\s\S]*?^```/gm, '')
    .replace(/`[^`\n]*`/g, '');
  return [...text.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].map(
    ([, path = '', anchor = '']) => ({ path, anchor }),
  );
}

/** Anchors as GitHub makes them of headings. */
function anchorsOf(file: string): ReadonlySet<string> {
  const text = readFileSync(file, 'utf8').replace(/^```[\s\S]*?^```/gm, '');
  return new Set(
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

test('the index has every page', () => {
  const linked = new Set(linksOf('docs/README.md').map(({ path }) => path));
  const pages = globSync(['*.md', 'reference/*.md'], { cwd: join(root, 'docs') }).filter(
    (name) => name !== 'README.md',
  );
  assert.ok(pages.length > 20);
  assert.deepEqual(
    pages.filter((name) => !linked.has(name)),
    [],
  );
});

test('relative links lead to a file, and to a heading of it', () => {
  const pages = ['README.md', ...globSync('docs/**/*.md', { cwd: root })];
  const wrong = pages.flatMap((page) =>
    linksOf(page).flatMap(({ path, anchor }) => {
      const target = path === '' ? join(root, page) : join(root, dirname(page), path);
      if (!existsSync(target)) return [`${page}: ${path}`];
      const isLost = anchor !== '' && target.endsWith('.md') && !anchorsOf(target).has(anchor);
      return isLost ? [`${page}: ${path}#${anchor}`] : [];
    }),
  );
  assert.deepEqual(wrong, []);
});

test('source files that pages name exist', () => {
  const sources = globSync(['*.ts', '{runtime,charts,build,test,site,bench}/**/*.ts'], { cwd: root });
  const named = globSync('docs/**/*.md', { cwd: root }).flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/`(?:[^`\s]*<[^>]*>)?([\w./-]+\.ts)`/g)].map(
      ([, name = '']) => ({ page, name }),
    ),
  );
  assert.ok(named.length > 10);
  assert.deepEqual(
    named.filter(({ name }) => !sources.some((file) => `/${file}`.endsWith(`/${name.replace(/^\//, '')}`))),
    [],
  );
});
