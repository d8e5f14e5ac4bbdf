/** YAML of others is read in one place, without the library's warnings: these quote the text on standard error. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { plantedPassword } from '../support/canary.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;

test('nobody else takes the parser of the library', () => {
  const wrong = globSync(['main.ts', 'charts/**/*.ts', 'runtime/**/*.ts'], { cwd: root })
    .filter((file) => file !== 'runtime/kube/yaml.ts')
    .filter((file) =>
      /import \{[^}]*\bparse\b[^}]*\} from 'yaml'/.test(readFileSync(join(root, file), 'utf8')),
    );
  assert.deepEqual(wrong, []);
});

test('every reader of documents switches the warnings off', () => {
  const readers = globSync(['charts/**/*.ts', 'runtime/**/*.ts'], { cwd: root }).filter((file) =>
    /\bparse(All)?Documents?\(/.test(readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')),
  );
  const loud = readers.filter((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return /from 'yaml'/.test(text) && !/logLevel: '(error|silent)'/.test(text);
  });
  assert.deepEqual(loud, []);
});

test('an odd kubeconfig is read without a word', async () => {
  const odd = `users: [{ name: u, user: { token*a: ${plantedPassword('yaml')}, *b : !x [1] } }]\n`;
  const script = `import { parseYaml } from '${root}runtime/kube/yaml.ts'; try { parseYaml(process.argv[1]); } catch {}`;
  const ran = await runProcess([process.execPath, '--input-type=module', '-e', script, odd]);
  assert.equal(ran.stderr, '');
  assert.deepEqual(parseYaml('a: !unknown [1]'), { a: [1] });
});
