/** `npm run report:demo`: the page of the troubled example, in build output that git does not keep. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

const root = new URL('..', import.meta.url).pathname;

/** Writes the page and gives its path. */
export function writeDemo(): string {
  const page = `${root}dist/report/index.html`;
  mkdirSync(`${root}dist/report`, { recursive: true });
  const ran = spawnSync(
    process.execPath,
    ['main.ts', 'report', '--from', 'examples/troubled', '--html', page],
    { cwd: root, stdio: 'inherit' },
  );
  // 1 says that something is broken, which is what the example is for.
  if (ran.status !== 1) throw new Error('Cannot write the report of examples/troubled: see above');
  return page;
}

if (import.meta.main) process.stdout.write(`\nOpen ${writeDemo()} in a browser.\n`);
