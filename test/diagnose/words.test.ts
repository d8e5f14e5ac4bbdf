/** Output of each command for one dump, compared as a whole for its words and their order. */
import { join } from 'node:path';
import { golden } from '../support/golden.ts';
import { runInProcess } from '../support/in-process.ts';
import { test } from '../support/suite.ts';

const root = join(import.meta.dirname, '../..');
const DUMP = 'examples/troubled';
const AT = ['--from', DUMP, '--cluster', 'clusters/shop-eu'];

const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  explain: ['explain', 'deploy/runner', '-n', 'ci', '--from', DUMP, '--cluster', 'clusters/lab'],
  doctor: ['doctor', 'deploy/runner', '-n', 'ci', '--from', DUMP, '--cluster', 'clusters/lab'],
  'doctor-all': ['doctor', '--all', '-A', ...AT],
  status: ['status', ...AT],
  report: ['report', '--from', DUMP],
  validate: ['validate', DUMP],
  check: ['check', '--pre', ...AT],
  mirrors: ['mirrors', 'registry.example.com/payments/api:1', ...AT, '--for', 'node'],
  test: ['test', 'examples/credential-tests/shop.test.yaml'],
};

for (const [name, args] of Object.entries(COMMANDS))
  test(name, async () => {
    const ran = await runInProcess(args, { cwd: root });
    // The output must not depend on the date of the run.
    const text = `$ pullwright ${args.join(' ')}\n${ran.stdout}${ran.stderr}exit code ${ran.code}\n`;
    golden(`words/${name}.txt`, text.replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, 'TIME'));
  });
