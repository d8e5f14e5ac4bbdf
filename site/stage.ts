/** Lays out `docs/` for the generator: the same pages under the names it wants, and a page for each folder that a page leads to. */
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';

/** A relative link of Markdown: the text before its target, the target, and what comes behind a "#". */
const LINK = /(\]\()(?![a-z]+:)([^)#\s]*)((?:#[^)\s]*)?\))/g;

/** Writes the pages below `to`, which is replaced. */
export function stage(root: string, to: string): void {
  rmSync(to, { recursive: true, force: true });
  const folders = new Set(['docs/decisions']);
  const pages = new Set(globSync('docs/**/*.md', { cwd: root }));
  // A set goes on with what is added to it: pages that lie elsewhere and are led to, such as SECURITY.md.
  for (const page of pages) {
    const text = outsideCode(readFileSync(join(root, page), 'utf8'), (prose) =>
      prose.replace(LINK, (_, before: string, target: string, after: string) => {
        const led = target === '' ? page : normalize(join(dirname(page), target));
        // The front page of the repository; that of the site is another.
        const path = led === 'README.md' ? 'docs/README.md' : led;
        if (isFolder(join(root, path))) folders.add(path);
        else if (path.endsWith('.md')) pages.add(path);
        return `${before}${target === '' ? '' : linkTo(root, page, path)}${after}`;
      }),
    );
    write(join(to, staged(page)), page === 'docs/README.md' ? HOME + text.replace(/^# .*\n/, '') : text);
  }
  for (const folder of folders) write(join(to, `${staged(folder)}/index.md`), folderPage(root, folder));
  // Schemas and the man page are there as they are.
  for (const file of globSync('docs/**/*.{json,1}', { cwd: root }))
    cpSync(join(root, file), join(to, 'public', staged(file)));
  for (const picture of globSync('docs/**/*.png', { cwd: root }))
    cpSync(join(root, picture), join(to, staged(picture)));
}

const HOME = `---
layout: home
hero:
  name: Pullwright
  text: Pull credentials as code
  tagline: Which credential is tried for which image, at which mirror, in every cluster of a fleet. Declared, kept true, and explained.
  actions:
    - { theme: brand, text: Drop a dump and see, link: /play.html, target: _self }
    - { theme: alt, text: Install, link: /install }
    - { theme: alt, text: Why does an image not pull?, link: /troubleshooting }
---

`;

/** Path of a repository file in the site: files of `docs` at the top, others under `files`. */
function staged(path: string): string {
  const [first, ...rest] = path.split('/');
  const inside = first === 'docs' ? rest.join('/') : `files/${path}`;
  // The generator takes an ending that it does not know for a page of its own.
  return inside.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.1$/, '.1.txt');
}

function linkTo(root: string, page: string, path: string): string {
  const to = relative(dirname(staged(page)), staged(path));
  return `${to.startsWith('.') ? '' : './'}${to}${isFolder(join(root, path)) ? '/index.md' : ''}`;
}

/** Blocks and spans of code stay as they are. */
function outsideCode(text: string, change: (prose: string) => string): string {
  return text
    .split(/(^```[\s\S]*?^```|`[^`\n]*`)/m)
    .map((part, index) => (index % 2 === 1 ? part : change(part)))
    .join('');
}

/** A folder of pages is a list of them; of other files, what is in them. */
function folderPage(root: string, folder: string): string {
  const files = globSync('**/*', { cwd: join(root, folder) })
    .filter((file) => !isFolder(join(root, folder, file)))
    .sort();
  const name = folder.slice(folder.lastIndexOf('/') + 1);
  if (files.every((file) => file.endsWith('.md'))) {
    const items = files.map(
      (file) => `- [${titleOf(readFileSync(join(root, folder, file), 'utf8'))}](./${file})`,
    );
    return [`# ${name[0]?.toUpperCase()}${name.slice(1)}`, '', ...items, ''].join('\n');
  }
  const parts = files.flatMap((file) => {
    const text = readFileSync(join(root, folder, file), 'utf8');
    return [`## ${file}`, '', `\`\`\`\`\`${languageOf(file)}`, text.trimEnd(), '`````', ''];
  });
  return [`# ${folder}`, '', 'What this folder of the repository holds.', '', ...parts].join('\n');
}

/** The first heading of a page, as plain text. */
export function titleOf(text: string): string {
  return (/^# (.*)$/m.exec(text)?.[1] ?? '').replaceAll('`', '');
}

function languageOf(file: string): string {
  const extension = file.slice(file.lastIndexOf('.') + 1);
  return ['yaml', 'json', 'ts', 'md'].includes(extension) ? extension : 'text';
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
