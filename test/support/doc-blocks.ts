/** The fenced blocks of a page of the documentation, for tests that run them as they stand. */
import { readFileSync } from 'node:fs';

const root = new URL('../..', import.meta.url).pathname;

export interface DocBlock {
  readonly language: string;
  readonly text: string;
  /** The heading that it stands under. */
  readonly heading: string;
  /** Why the tests of the page do not run it. */
  readonly skipped: string | undefined;
}

const PARTS = /^#+ (.*)$|(?:<!-- not run: ([^>]+) -->\n)?^```(\w+)\n([\s\S]*?)^```/gm;

/** In the order of the page. @param page such as `docs/install.md` */
export function docBlocks(page: string): readonly DocBlock[] {
  const text = readFileSync(`${root}${page}`, 'utf8');
  let heading = '';
  return [...text.matchAll(PARTS)].flatMap(([, title, skipped, language = '', body = '']) => {
    heading = title ?? heading;
    return title === undefined ? [{ language, text: body, heading, skipped }] : [];
  });
}

/** The text of the one block of a language under a heading. Throws when there is another number of them. */
export function docBlock(page: string, heading: string, language: string): string {
  const found = docBlocks(page).filter((block) => block.heading === heading && block.language === language);
  if (found.length !== 1)
    throw new Error(`${page} has ${found.length} ${language} blocks under "${heading}", expected one`);
  return found[0]?.text ?? '';
}

/** What is typed in the console blocks under a heading, a command each. */
export function docCommands(page: string, heading: string): readonly string[] {
  return docBlocks(page)
    .filter((block) => block.heading === heading && block.language === 'console')
    .flatMap(({ text }) => [...text.matchAll(/^\$ (.*)$/gm)].map(([, command = '']) => command));
}
