/** Start-up of the command line beside a TypeScript file of one line: what people wait for when they ask for help. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProcess } from '../test/support/process.ts';
import { interleaved, ms, printTable, ratio } from './measure.ts';

const root = new URL('..', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'pullwright-bench-'));
const line = join(folder, 'line.ts');
writeFileSync(line, "process.stdout.write('one line\\n');\n");
// The folder is outside the project; without this, Node would look for a package.json up to the root.
writeFileSync(join(folder, 'package.json'), '{"type":"module"}');

const run = (...args: readonly string[]) => runProcess([process.execPath, ...args], { cwd: root });
const times = await interleaved(
  {
    line: () => run(line),
    help: () => run('main.ts', '--help'),
    synthHelp: () => run('main.ts', 'synth', '--help'),
  },
  31,
);
rmSync(folder, { recursive: true });

printTable('start-up on Node', [
  { what: 'a TypeScript file of one line', 'median ms': ms(times.line.median), ratio: '1' },
  {
    what: 'main.ts --help',
    'median ms': ms(times.help.median),
    ratio: ratio(times.help.median, times.line.median),
  },
  {
    what: 'main.ts synth --help',
    'median ms': ms(times.synthHelp.median),
    ratio: ratio(times.synthHelp.median, times.line.median),
  },
]);
