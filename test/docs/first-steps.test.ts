// deadline: 600 s
/**
 * The first steps of a newcomer: from the tarball in an empty folder to the first answer, without a clone. Every block of
 * docs/first-steps.md runs as printed, with the package that `npm run build:npm` makes.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buildCommandLine } from '../../build/packages.ts';
import { VERSION } from '../../runtime/core/version.ts';
import { emptyCluster, tidy } from '../commands/output-scene.ts';
import { docBlock, docBlocks, putProgram, runBlock, saveBlock } from '../support/doc-blocks.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const PAGE = 'docs/first-steps.md';
const root = new URL('../..', import.meta.url).pathname;
const work = tempFolder();
const prefix = join(work, 'npm');
const installed = join(prefix, 'lib/node_modules/pullwright');
const env = {
  PATH: `${prefix}/bin:${dirname(process.execPath)}`,
  HOME: work,
  npm_config_prefix: prefix,
  npm_config_offline: 'true',
};

test('the package installs from its tarball, offline', async () => {
  await buildCommandLine(work);
  const { stdout } = await runBlock(docBlock(PAGE, 'Install the command', 'sh'), work, env);
  assert.match(stdout, new RegExp(`^pullwright ${VERSION.replaceAll('.', '\\.')}$`, 'm'));
});

test('the package is one program below 40 MB, without dependencies', () => {
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as object;
  assert.ok(!Object.keys(manifest).some((field) => /dependencies$/i.test(field)));
  const files = globSync('**', { cwd: installed, withFileTypes: true }).filter((file) => file.isFile());
  const bytes = files.map((file) => statSync(join(file.parentPath, file.name)).size);
  assert.ok(bytes.reduce((sum, size) => sum + size, 0) < 40e6);
  const licences = readFileSync(join(installed, 'LICENSES-of-dependencies.txt'), 'utf8');
  for (const name of ['zod', 'yaml', '@kubernetes/client-node', 'cdk8s'])
    assert.ok(licences.includes(`node_modules/${name}/LICENSE`), name);
});

const OUTPUT = /(<!-- output -->\n```text\n\$ (pullwright [^\n]*)\n)([\s\S]*?)(```\n<!-- end -->)/g;

test('the answers about a pod that does not pull are those on the page', async () => {
  for (const { language, text } of docBlocks(PAGE)) if (language === 'yaml') saveBlock(work, text);
  const page = readFileSync(join(root, PAGE), 'utf8');
  let real = page;
  for (const [shown, start = '', command = '', , end = ''] of page.matchAll(OUTPUT)) {
    const { code, stdout } = await runProcess(['bash', '-c', command], { cwd: work, env: systemPath() });
    assert.equal(code, 1, command);
    real = real.replace(shown, () => `${start}${stdout}${end}`);
  }
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(join(root, PAGE), real);
  else assert.equal(page, real, 'run the test with UPDATE_GOLDEN=1');
});

function systemPath(): NodeJS.ProcessEnv {
  return { ...env, PATH: `${env.PATH}:/usr/bin:/bin` };
}

test('the commands for an own cluster run against an API server, as a kubectl plugin too', async () => {
  // Starts a plugin in the same way as kubectl.
  putProgram(join(prefix, 'bin'), 'kubectl', 'plugin=$1; shift; exec "kubectl-$plugin" "$@"');
  const KUBECONFIG = await emptyCluster();
  await runBlock(docBlock(PAGE, 'Your own cluster', 'sh'), work, { ...env, KUBECONFIG });
});

test('the commands for a clone run there', async () => {
  await runBlock(docBlock(PAGE, 'What would change', 'sh'), root, env);
});

const imageOnly = ['adapter', 'agent', 'install-provider', 'job', 'provider', 'sentinel'];

test('commands of pods and nodes say where they run', async () => {
  for (const name of imageOnly) {
    const ran = await runProcess(['pullwright', name, '--once'], { cwd: work, env: systemPath() });
    assert.equal(ran.code, 1);
    assert.match(ran.stderr, new RegExp(`^The npm package has no command "${name}": it runs in pods`));
  }
});

test('an older Node is told which one is needed', async () => {
  const old = "data:text/javascript,Object.defineProperty(process,'versions',{value:{node:'20.1.0'}})";
  for (const file of [join(installed, 'pullwright.cjs'), join(root, 'build/needs-node.cjs')]) {
    const ran = await runProcess([process.execPath, '--import', old, file, 'version'], { cwd: work });
    assert.deepEqual([ran.code, ran.stdout], [1, '']);
    assert.match(ran.stderr, /^Cannot run Pullwright with Node 20\.1\.0: expected Node 24 or later\. .*\n$/);
  }
  const started = await runProcess([process.execPath, join(root, 'build/needs-node.cjs')]);
  assert.deepEqual([started.code, started.stderr], [0, '']);
});

test.lastly('the work folder is removed', tidy);
