// deadline: 300 s
/** Runs every `@example` block of `charts/` and `runtime/`: each is a program that asserts what it shows. */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;
// Inside the tree, so that bare imports resolve; ignored by git.
const folder = join(root, '.examples');
mkdirSync(folder, { recursive: true });

for (const file of globSync(['charts/**/*.ts', 'runtime/**/*.ts'], { cwd: root }).sort()) {
  const text = readFileSync(join(root, file), 'utf8');
  const blocks = [...text.matchAll(/@example[^\n]*\n([\s\S]*?)```ts\n([\s\S]*?)```/g)].map(
    (match) => match[2] ?? '',
  );
  for (const [index, block] of blocks.entries()) {
    test(`${file} #${index + 1}`, async () => {
      const code = block
        .replace(/^\s*\* ?/gm, '')
        .replace(
          /from '(\.[^']*)'/g,
          (_, target: string) => `from '${resolve(root, dirname(file), target)}'`,
        );
      if (!/assert/.test(code)) throw new Error(`the example of ${file} asserts nothing`);
      const path = join(folder, `${file.replaceAll('/', '_')}.${index}.ts`);
      writeFileSync(path, code);
      await import(path);
    });
  }
}

test.lastly('the folder is removed', () => rmSync(folder, { recursive: true }));
