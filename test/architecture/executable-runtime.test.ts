/**
 * The Node APIs that the sources use exist in the runtime of the executable. Tests run in Node, so an API that is missing in
 * the other runtime would fail only on a user's node.
 */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;
const arch = process.arch === 'arm64' ? 'aarch64' : 'x64';
const bun = join(root, `node_modules/@oven/bun-linux-${arch}/bin/bun`);
const IMPORT = /^import \{([^}]*)\} from '(node:[a-z/_]+)';$/gm;

/** `node:https createServer` to the files that import it. Types are gone before anything runs. */
const imported = new Map<string, string[]>();
for (const file of globSync('runtime/**/*.ts', { cwd: root }))
  for (const one of importsOf(readFileSync(join(root, file), 'utf8')))
    imported.set(one, [...(imported.get(one) ?? []), file]);

function importsOf(text: string): readonly string[] {
  return [...text.matchAll(IMPORT)].flatMap(([, names = '', from = '']) =>
    names
      .split(',')
      .map((name) => name.trim().split(' as ', 1)[0] ?? '')
      .filter((name) => name !== '' && !name.startsWith('type '))
      .map((name) => `${from} ${name}`),
  );
}

test('its HTTPS server cannot take another certificate: nothing but our own is used', () => {
  assert.ok(imported.size > 50, `only ${imported.size} imports were found`);
  assert.deepEqual(imported.get('node:https createServer') ?? [], []);
});

if (!existsSync(bun)) test.skip('every import', 'Bun is not installed for this machine');
else
  test('every import', async () => {
    const program = `for (const one of ${JSON.stringify([...imported.keys()])}) {
      const [from, name] = one.split(' ');
      if ((await import(from))[name] === undefined) console.log(one);
    }
    console.log('looked');`;
    const ran = await runProcess([bun, '-e', program]);
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal(ran.stdout, 'looked\n');
  });
