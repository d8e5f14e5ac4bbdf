/** `npm run report:demo`: the page of the troubled example, in build output that git does not keep. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

const root = new URL('..', import.meta.url).pathname;
const page = 'dist/report/index.html';
mkdirSync(`${root}dist/report`, { recursive: true });
const ran = spawnSync(
  process.execPath,
  ['main.ts', 'report', '--from', 'examples/troubled', '--html', page],
  { cwd: root, stdio: 'inherit' },
);
process.stdout.write(`\nOpen ${page} in a browser.\n`);
// 1 says that something is broken, which is what the example is for.
process.exitCode = ran.status === 1 ? 0 : 1;
