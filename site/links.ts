/** Finds links of built pages that lead nowhere: to a file that is not there, or to a part that a page does not have. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

interface Page {
  readonly links: readonly string[];
  readonly parts: ReadonlySet<string>;
}

/** One line for each such link of the pages below `folder`, which is served under `base`. */
export function deadLinks(folder: string, base: string): readonly string[] {
  const names = globSync('**/*.html', { cwd: folder }).sort();
  const pages = new Map(names.map((name) => [name, readPage(readFileSync(join(folder, name), 'utf8'))]));
  return names.flatMap((name) =>
    [...new Set(pages.get(name)?.links ?? [])].flatMap((link) => {
      const target = targetOf(link, name, base);
      if (target === undefined) return [];
      const page = pages.get(target.file);
      const found = page === undefined ? existsSync(join(folder, target.file)) : true;
      const hasPart = target.part === '' || page === undefined || page.parts.has(target.part);
      return found && hasPart ? [] : [`${name}: ${link}`];
    }),
  );
}

function readPage(text: string): Page {
  // Links inside scripts are not links of the page.
  const html = text.replaceAll(/(<script[^>]*>).*?<\/script>/gs, '$1');
  const values = (attribute: string): string[] =>
    [...html.matchAll(new RegExp(`\\s${attribute}="([^"]*)"`, 'g'))].map(([, value = '']) =>
      value.replaceAll('&amp;', '&'),
    );
  return { links: [...values('href'), ...values('src')], parts: new Set(values('id')) };
}

/** Undefined for what leads out of this version of the site. */
function targetOf(
  link: string,
  from: string,
  base: string,
): { readonly file: string; readonly part: string } | undefined {
  if (/^[a-z]+:|^\/\//.test(link)) return undefined;
  const [path = '', part = ''] = link.split('#');
  if (path.startsWith('/') && !path.startsWith(base)) return undefined;
  const inside = path.startsWith('/') ? path.slice(base.length) : posix.join(posix.dirname(from), path);
  const file = path === '' ? from : inside;
  return { file: decodeURI(toFile(file)), part: decodeURIComponent(part) };
}

function toFile(path: string): string {
  if (path === '' || path === '.' || path === './') return 'index.html';
  if (path.endsWith('/')) return `${path}index.html`;
  return posix.extname(path) === '' ? `${path}.html` : path;
}
