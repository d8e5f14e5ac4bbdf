/**
 * `node bench/run.ts [FILTER...] [--write]`: runs every `*.bench.ts`, each as a process of its own, one at a time. With
 * `--write` the tables go into `dist/benchmarks.md`.
 */
import { globSync, mkdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { runProcess } from '../test/support/process.ts';

const root = new URL('..', import.meta.url).pathname;
const args = process.argv.slice(2);
const filters = args.filter((arg) => !arg.startsWith('--'));
const files = globSync('bench/*.bench.ts', { cwd: root })
  .filter((file) => filters.length === 0 || filters.some((part) => file.includes(part)))
  .sort();

const sections: string[] = [];
let failed = 0;
for (const file of files) {
  process.stderr.write(`running ${file}\n`);
  const ran = await runProcess([process.execPath, '--expose-gc', file], { cwd: root, deadlineMs: 1_800_000 });
  process.stdout.write(ran.stdout);
  if (ran.code === 0) sections.push(`## ${file}\n${ran.stdout}`);
  else {
    failed += 1;
    process.stderr.write(`${file} failed with exit code ${ran.code}\n${ran.stderr}\n`);
  }
}
if (args.includes('--write') && failed === 0) {
  const machine = `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}, ${process.platform} ${process.arch}`;
  const head = `# Benchmarks\n\nWritten by \`npm run bench -- --write\` on ${machine}. Ratios compare things measured in the same run; absolute times are those of that machine.\n`;
  mkdirSync(`${root}dist`, { recursive: true });
  writeFileSync(`${root}dist/benchmarks.md`, `${head}\n${sections.join('\n')}`);
}
process.exitCode = failed === 0 ? 0 : 1;
