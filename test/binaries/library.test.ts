// deadline: 300 s
/** The package as a fresh project gets it: packed, unpacked, imported, its types checked, its command run. */
import assert from 'node:assert/strict';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildLibrary } from '../../build/library.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';

const test = suite('the packed library');
const root = new URL('../..', import.meta.url).pathname;
const work = mkdtempSync(join(tmpdir(), 'pullwright-library-'));
const project = join(work, 'project');
const installed = join(project, 'node_modules/pullwright');

test('packs without runtimes, tools and tests', async () => {
  buildLibrary(join(work, 'lib'));
  const packed = await runProcess(['npm', 'pack', join(work, 'lib'), '--pack-destination', work, '--json'], {
    deadlineMs: 120_000,
    cwd: work,
  });
  assert.equal(packed.code, 0, packed.stderr);
  mkdirSync(installed, { recursive: true });
  const tarball = readdirSync(work).find((file) => file.endsWith('.tgz')) ?? '';
  assert.equal(
    (await runProcess(['tar', '-xzf', join(work, tarball), '-C', installed, '--strip-components=1'])).code,
    0,
  );
  assert.ok(!readdirSync(installed).includes('test'));
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Record<
    string,
    unknown
  >;
  assert.equal(manifest['optionalDependencies'], undefined);
  assert.equal(manifest['devDependencies'], undefined);
  // The dependencies as npm would lay them out, without a download.
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name.startsWith('.') || name === 'pullwright') continue;
    symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name));
  }
});

const MAIN = `import { App, Chart } from 'cdk8s';
import { GlobalPullSecret, renderTree } from 'pullwright';

const chart = new Chart(new App(), 'demo');
new GlobalPullSecret(chart, 'pull', { image: 'registry.example.com/pullwright:1' });
const tree: ReturnType<typeof renderTree> = renderTree(chart.toJson());
process.stdout.write(String(tree.size));
`;

test('a fresh TypeScript project imports it with types', async () => {
  writeFileSync(join(project, 'package.json'), '{"type":"module","private":true}');
  writeFileSync(join(project, 'main.ts'), MAIN);
  writeFileSync(
    join(project, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        noEmit: true,
        module: 'nodenext',
        target: 'es2024',
        types: ['node'],
        skipLibCheck: true,
      },
      files: ['main.ts'],
    }),
  );
  const checked = await runProcess([join(root, 'node_modules/.bin/tsc'), '-p', project], { cwd: project });
  assert.equal(checked.code, 0, checked.stdout);
  writeFileSync(join(project, 'wrong.ts'), MAIN.replace("image: '", "imgae: '"));
  writeFileSync(
    join(project, 'tsconfig.wrong.json'),
    JSON.stringify({ extends: './tsconfig.json', files: ['wrong.ts'] }),
  );
  const wrong = await runProcess(
    [join(root, 'node_modules/.bin/tsc'), '-p', join(project, 'tsconfig.wrong.json')],
    { cwd: project },
  );
  assert.match(wrong.stdout, /imgae/, 'a misspelt option is a type error');
});

test('it runs', async () => {
  const ran = await runProcess([process.execPath, 'main.ts'], { cwd: project });
  assert.equal(ran.code, 0, ran.stderr);
  assert.ok(Number(ran.stdout) > 5, ran.stdout);
});

test('its command runs', async () => {
  const ran = await runProcess([
    process.execPath,
    join(installed, 'main.js'),
    'reconcile',
    '--from',
    join(root, 'examples/fleet/hosted'),
    '--management',
    join(root, 'examples/fleet/management'),
  ]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^clusters\/prod +3 /m);
});

test.lastly('the work folder is removed', () => rmSync(work, { recursive: true }));
test.run();
