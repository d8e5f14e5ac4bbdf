/** The Pub/Sub server of Google's Go module on loopback, built once and cached by Go. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { runProcess } from '../support/process.ts';
import { tempFolder } from '../support/temp-folder.ts';

export interface PubSubNode {
  /** For `PUBSUB_EMULATOR_HOST`. */
  readonly host: string;
  stop(): void;
}

export async function startPubSub(): Promise<PubSubNode> {
  const folder = tempFolder();
  const program = join(folder, 'server');
  const source = new URL('./pubsub-server', import.meta.url).pathname;
  const built = await runProcess(['go', 'build', '-o', program, '.'], { cwd: source, deadlineMs: 360_000 });
  assert.equal(built.code, 0, built.stderr);
  // The emulator exits when its standard input closes, so it does not outlive the test.
  const server = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
  const [address] = (await once(server.stdout, 'data')) as [Buffer];
  return {
    host: address.toString().trim(),
    stop: () => {
      server.kill();
    },
  };
}
