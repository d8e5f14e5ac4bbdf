/**
 * `npm run agent:demo`: boots a private systemd, runs the compiled agent beside it, changes the secret, breaks the kubelet, and
 * shows what happens. Needs root, systemd, dbus-daemon; touches nothing of the machine.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { NEW, OLD, secret } from './agent-scene.ts';
import { TestNode } from './node-agent.ts';
import { digestOf, missingSystemd, PrivateSystemd, until } from './systemd.ts';

const missing = missingSystemd();
if (missing !== undefined) {
  process.stderr.write(`Cannot run the demo: it ${missing}\n`);
  process.exit(1);
}

const BAD = secret('POISON.example.com');
const NAMES = new Map([
  [digestOf(OLD), 'the first secret'],
  [digestOf(NEW), 'the changed secret'],
  [digestOf(BAD), 'the secret that breaks it'],
]);

const say = (text: string): boolean => process.stdout.write(`\n== ${text}\n`);

const waitFor = (holds: () => boolean) => until('the agent has done it', holds, 20_000);

const machine = await PrivateSystemd.start({ kubelet: false });

/** Registries and starts: what an operator would look at on a node. */
function show(): void {
  const { auths } = JSON.parse(readFileSync(machine.config, 'utf8')) as { auths: object };
  const starts = machine.starts().map((digest) => NAMES.get(digest) ?? digest);
  process.stdout.write(`config.json: ${Object.keys(auths).join(', ')}\n`);
  process.stdout.write(`kubelet.service: ${machine.activeState()}; it started with: ${starts.join(' | ')}\n`);
}

try {
  say(
    'A private systemd boots as PID 1 of its own namespace, and its kubelet.service reads the first secret',
  );
  writeFileSync(machine.config, OLD, { mode: 0o600 });
  machine.behave('picky');
  machine.systemctl('start', 'kubelet.service');
  const node = await TestNode.on(machine);
  node.original.swap(OLD);
  const agent = node.agent(['--log-format=logfmt', '--settle=500ms']);
  agent.child.stderr?.pipe(process.stdout);
  await waitFor(() => agent.text().includes('reason=InSync'));
  show();

  say('The mounted secret changes: the file is written, the kubelet restarted');
  node.original.swap(NEW);
  await waitFor(() => machine.starts().length === 2 && agent.text().split('reason=InSync').length === 3);
  show();

  say(
    'A secret with which the kubelet does not come up: three attempts, then the old file and a running kubelet',
  );
  node.original.swap(BAD);
  await waitFor(() => agent.text().includes('reason=BreakerOpen'));
  show();

  say('A good secret again: other content is tried at once');
  node.original.swap(OLD);
  await waitFor(() => agent.text().split('reason=InSync').length === 4);
  show();
  await agent.stop();
} finally {
  await machine.stop();
}
