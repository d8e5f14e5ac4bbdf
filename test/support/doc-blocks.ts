/** The fenced blocks of a page of the documentation, for tests that run them as they stand. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ProcessResult, runProcess } from './process.ts';

const root = new URL('../..', import.meta.url).pathname;

export interface DocBlock {
  readonly language: string;
  readonly text: string;
  /** Heading above the block. */
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

/** Writes a program of one line of shell into a folder. */
export function putProgram(folder: string, name: string, line: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), `#!/bin/sh\n${line}\n`);
  chmodSync(join(folder, name), 0o755);
}

/** Puts a `pullwright` that runs from source into a folder. */
export function putPullwright(folder: string): void {
  putProgram(folder, 'pullwright', `exec "${process.execPath}" "${root}main.ts" "$@"`);
}

/** Saves a YAML block below a folder, under the name that its first line gives. */
export function saveBlock(folder: string, yaml: string): void {
  const [, name = ''] = /^# (\S+)\n/.exec(yaml) ?? [];
  assert.notEqual(name, '', `a YAML block without a file name:\n${yaml}`);
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), yaml);
}

/** Runs commands as they are printed. Throws when one fails. @param env besides PATH, which ends with the system's */
export async function runBlock(
  commands: string,
  cwd: string,
  { PATH = '', ...env }: NodeJS.ProcessEnv,
): Promise<ProcessResult> {
  const ran = await runProcess(['bash', '-euo', 'pipefail', '-c', commands], {
    cwd,
    deadlineMs: 200_000,
    env: { PATH: `${PATH}:/usr/bin:/bin`, ...env },
  });
  assert.equal(ran.code, 0, `${commands}\n${ran.stdout.slice(-500)}\n${ran.stderr.slice(-1500)}`);
  return ran;
}

/** The text of the one block of a language under a heading. Throws when there is another number of them. */
export function docBlock(page: string, heading: string, language: string): string {
  const found = docBlocks(page).filter((block) => block.heading === heading && block.language === language);
  if (found.length !== 1)
    throw new Error(`${page} has ${found.length} ${language} blocks under "${heading}", expected one`);
  return found[0]?.text ?? '';
}

/** Commands of the console blocks under a heading. */
export function docCommands(page: string, heading: string): readonly string[] {
  return docBlocks(page)
    .filter((block) => block.heading === heading && block.language === 'console')
    .flatMap(({ text }) => [...text.matchAll(/^\$ (.*)$/gm)].map(([, command = '']) => command));
}
