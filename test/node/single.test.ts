import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Hold, takeSingle } from '../../runtime/node/state.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = tempFolder();
const source = new URL('../../runtime/node/state.ts', import.meta.url).pathname;

async function take(): Promise<Hold> {
  const taken = await takeSingle(root);
  assert.ok('held' in taken, 'it is taken');
  return taken;
}

/** As often as somebody still answers: the kernel closes the sockets of a killed process one after the other. */
async function takeFromDead(): Promise<Hold> {
  for (;;) {
    const taken = await takeSingle(root);
    if ('held' in taken) return taken;
    await taken.busy;
  }
}

test('one holds it; the next waits and gets it when it is released; nothing is left', async () => {
  const first = await take();
  const second = await takeSingle(root);
  assert.ok('busy' in second);
  first.release();
  await second.busy;
  const third = await take();
  assert.ok(third.held());
  third.release();
  assert.deepEqual(readdirSync(root), []);
});

test('the lock of a killed process is free without anybody cleaning up, and its leftovers are swept', async () => {
  const program = join(root, '..', `${root.split('/').at(-1)}.ts`);
  writeFileSync(
    program,
    `import { takeSingle } from ${JSON.stringify(source)};
    await takeSingle(process.argv[2] ?? ''); process.stdout.write('held'); setInterval(() => undefined, 1000);`,
  );
  const child = spawn(process.execPath, [program, root], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const busy = await takeSingle(root);
  assert.ok('busy' in busy);
  child.kill('SIGKILL');
  await busy.busy;
  writeFileSync(join(root, 'lock.new-0123'), '');
  const hold = await takeFromDead();
  assert.deepEqual(readdirSync(root), ['lock']);
  hold.release();
  unlinkSync(program);
});

test('a holder whose lock is taken away knows it, and does not remove the lock of the next', async () => {
  const first = await take();
  renameSync(join(root, 'lock'), join(root, 'gone'));
  assert.equal(first.held(), false);
  const second = await take();
  first.release();
  assert.ok(second.held());
  second.release();
  unlinkSync(join(root, 'gone'));
});

test('many at once: exactly one gets it', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => takeSingle(root)));
  const holds = all.flatMap((one) => ('held' in one ? [one] : []));
  assert.equal(holds.length, 1);
  holds[0]?.release();
});
