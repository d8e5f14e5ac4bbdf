/**
 * Runs the tests beside a load of two busy loops and prints which files failed: `npm run flakes [ROUNDS] [-- --rest]`.
 * A file that fails in one round is a defect of the test.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const words = process.argv.slice(2);
const rounds = Number(words.find((word) => /^\d+$/.test(word)) ?? 1);
const options = words.filter((word) => word.startsWith('--'));

async function round(): Promise<{ readonly code: number; readonly failed: readonly string[] }> {
  const child = spawn(process.execPath, ['test/run.ts', ...options, '--no-retry'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    process.stdout.write(chunk);
  });
  const code = await new Promise<number>((done, fail) => {
    child.once('error', fail);
    child.once('close', (exit) => done(exit ?? 1));
  });
  return { code, failed: [...output.matchAll(/^failed: (.*)$/gm)].map(([, file = '']) => file) };
}

const load = Array.from({ length: 2 }, () => spawn(process.execPath, ['-e', 'for (;;);']));
const seen: string[] = [];
let isClean = true;
try {
  for (let at = 1; at <= rounds; at += 1) {
    const { code, failed } = await round();
    isClean &&= code === 0;
    seen.push(...failed.map((file) => `round ${at}: ${file}`));
  }
} finally {
  for (const loop of load) loop.kill('SIGKILL');
}
for (const line of seen) process.stdout.write(`${line}\n`);
process.stdout.write(`${rounds} rounds beside a load: ${isClean ? 'clean' : `${seen.length} failures`}\n`);
process.exitCode = isClean ? 0 : 1;
