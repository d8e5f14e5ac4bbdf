/** Ports of a control plane are reserved, even before a process listens on them. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from '../support/suite.ts';
import { freePorts } from './ports.ts';

/** Of this account, as no other can remove what it leaves: twice as many as each takes, and two more. By chance two would seldom differ. */
const RANGE = { first: 10_000 + ((process.getuid?.() ?? 0) % 900) * 10, count: 10 };

/** Another process that takes half of them, says which, and waits. */
async function other(): Promise<{
  readonly ports: readonly number[];
  end(signal: 'SIGKILL'): Promise<void>;
}> {
  const program = `
    const { freePorts } = await import(${JSON.stringify(new URL('ports.ts', import.meta.url).href)});
    process.stdout.write(JSON.stringify(await freePorts(4, ${JSON.stringify(RANGE)})));
    setInterval(() => undefined, 1000);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    ports: JSON.parse(said.toString()) as number[],
    end: async (signal) => {
      const gone = once(child, 'exit');
      child.kill(signal);
      await gone;
    },
  };
}

test('two processes never have the same one', async () => {
  const theirs = await other();
  try {
    const ours = await freePorts(4, RANGE);
    assert.equal(new Set([...ours, ...theirs.ports]).size, 8);
  } finally {
    await theirs.end('SIGKILL');
  }
});

test('those of a process that was killed are there for the next', async () => {
  const next = await other();
  await next.end('SIGKILL');
  assert.equal(new Set(next.ports).size, 4);
});
