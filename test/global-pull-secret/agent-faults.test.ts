// deadline: 180 s
/** The compiled agent when everything around it fails: bus, disk, secrets, and itself. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inSync, NEW, OLD, scene, secret, settled } from '../support/agent-scene.ts';
import { plantedPassword } from '../support/canary.ts';
import type { LogLine, TestNode } from '../support/node-agent.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import { digestOf, entriesOf, until } from '../support/systemd.ts';

const test = suite('node agent under faults');

scene(test, 'bus killed before the call', async (node, agents) => {
  node.original.swap(OLD);
  const agent = agents.run(node);
  await inSync(agent);
  node.machine.signalBus('SIGKILL');
  node.original.swap(NEW);
  await settled(node, agent, NEW);
});

scene(
  test,
  'bus killed while the job runs: the unit itself is asked, and is not restarted twice',
  async (node, agents) => {
    node.original.swap(OLD);
    const agent = agents.run(node);
    await inSync(agent);
    node.machine.behave({ slow: 1 });
    node.original.swap(NEW);
    await until('the kubelet starts', () => node.machine.starts().length === 2);
    node.machine.signalBus('SIGKILL');
    await settled(node, agent, NEW);
    assert.deepEqual(node.machine.starts(), [OLD, NEW].map(digestOf));
  },
);

scene(test, 'bus killed after the job, while the unit settles', async (node, agents) => {
  node.original.swap(OLD);
  const agent = agents.run(node, ['--settle=1s']);
  await inSync(agent);
  node.original.swap(NEW);
  await until('the kubelet starts', () => node.machine.starts().length === 2);
  await delay(200);
  node.machine.signalBus('SIGKILL');
  await settled(node, agent, NEW);
});

scene(test, 'bus that stands still for two seconds', async (node, agents) => {
  node.original.swap(OLD);
  const agent = agents.run(node);
  await inSync(agent);
  node.machine.signalBus('SIGSTOP');
  node.original.swap(NEW);
  await until('the new content is on disk', () => readFileSync(node.machine.config, 'utf8') === NEW);
  await delay(2000);
  node.machine.signalBus('SIGCONT');
  await settled(node, agent, NEW);
  assert.deepEqual(node.machine.starts(), [OLD, NEW].map(digestOf));
});

scene(
  test,
  'bus that is not there: rolled back without a restart, and tried again when it is',
  async (node, agents) => {
    node.original.swap(NEW);
    const agent = agents.run(node, ['--bus-socket=/nonexistent/bus']);
    await until(
      'the breaker is open',
      () => agent.reason() === 'BreakerOpen' || agent.events('recover-failed').length > 0,
    );
    assert.equal(readFileSync(node.machine.config, 'utf8'), OLD);
    assert.match(String(agent.events('restart-failed')[0]?.['error']), /Mount the folder of the socket/);
    await agent.stop();
    // With the bus back, the recovery ends, and the content is held back for a minute, not for ever.
    const second = agents.run(node);
    await until('the breaker is open', () => second.reason() === 'BreakerOpen');
    assert.equal(node.machine.starts().length, 1);
    assert.match(second.text(), /tried again later/);
  },
);

scene(test, 'systemd that executes itself anew while the job runs', async (node, agents) => {
  node.original.swap(OLD);
  const agent = agents.run(node);
  await inSync(agent);
  node.machine.behave({ slow: 1 });
  node.original.swap(NEW);
  await until('the kubelet starts', () => node.machine.starts().length === 2);
  node.machine.systemctl('daemon-reexec');
  await settled(node, agent, NEW);
});

scene(
  test,
  'SIGTERM in the middle of a restart ends the agent at once; the next one does not restart again',
  async (node, agents) => {
    node.original.swap(OLD);
    const agent = agents.run(node);
    await inSync(agent);
    node.machine.behave({ slow: 1 });
    node.original.swap(NEW);
    await until('the kubelet starts', () => node.machine.starts().length === 2);
    const { code, ms } = await agent.stop();
    assert.equal(code, 0);
    assert.ok(ms < 500, `it took ${ms} ms`);
    await until('the kubelet is up', () => node.machine.activeState() === 'active');
    await settled(node, agents.run(node), NEW);
    assert.deepEqual(node.machine.starts(), [OLD, NEW].map(digestOf));
  },
);

scene(
  test,
  'a hundred swaps a second: the last one counts, and the kubelet is not restarted for each',
  async (node, agents) => {
    node.original.swap(OLD);
    const agent = agents.run(node);
    await inSync(agent);
    let last = OLD;
    for (let at = 0; at < 200; at += 1) {
      last = secret(`registry-${at}.example.com`);
      node.original.swap(last);
      await delay(10);
    }
    await settled(node, agent, last);
    assert.ok(node.machine.starts().length < 20, `${node.machine.starts().length} starts`);
  },
);

scene(
  test,
  'bad secrets: the last good content stays, the reason is said, no value is shown',
  async (node, agents) => {
    node.original.swap(OLD);
    const agent = agents.run(node);
    await inSync(agent);
    const planted = plantedPassword('poison');
    const bad: readonly (readonly [string | Uint8Array | undefined, RegExp])[] = [
      [OLD.slice(0, -9), /no JSON/],
      ['{}', /missing 'auths' key/],
      ['[]', /no JSON object/],
      [`"${planted}"`, /no JSON object/],
      [`{"auths":"${planted}"}`, /"auths" is no object/],
      [`{"auths":{"a.example.com":"${planted}"}}`, /entry 1 \("a.example.com"\) is no object/],
      [
        `{"auths":{"a.example.com":{"auth":["${planted}"]}}}`,
        /"auth" of entry 1 \("a.example.com"\) is no text/,
      ],
      [`{"auths":{"a.example.com":{"auth":"${planted}"}}`, /no JSON/],
      [Buffer.from([0xff, 0xfe, 0x00, 0x41]), /no JSON/],
      ['['.repeat(200_000), /no JSON/],
      ['', /it is empty/],
      [undefined, /does not exist/],
    ];
    for (const [content, words] of bad) {
      const lines = agent.lines().length;
      node.original.swap(content);
      const said = (line: LogLine): boolean => words.test(String(line['detail']));
      await until(`it says ${words.source}`, () => agent.lines().slice(lines).some(said));
      node.original.swap(OLD);
      await inSync(agent);
    }
    assert.equal(readFileSync(node.machine.config, 'utf8'), OLD);
    assert.deepEqual(node.machine.starts(), [digestOf(OLD)]);
    assert.ok(!agent.text().includes(planted));
    node.original.swap(NEW);
    await settled(node, agent, NEW);
  },
);

scene(
  test,
  'a bad global secret is not passed over in silence: no fall-back to the original one',
  async (node, agents) => {
    node.original.swap(NEW);
    node.global.swap('{');
    const agent = agents.run(node);
    await until('it is said', () => agent.reason() === 'SourceInvalid');
    assert.equal(readFileSync(node.machine.config, 'utf8'), OLD);
    node.global.swap('');
    await settled(node, agent, NEW);
  },
);

scene(test, 'a secret of 900 KiB', async (node, agents) => {
  const large = secret(...Array.from({ length: 10_000 }, (_, at) => `registry-${at}.example.com/team`));
  assert.ok(large.length > 900 << 10 || large.length > 700_000);
  node.original.swap(large);
  await settled(node, agents.run(node), large);
});

scene(test, 'mode and owner of the file are kept', async (node, agents) => {
  execFileSync('chmod', ['0640', node.machine.config]);
  chownSync(node.machine.config, 123, 456);
  node.original.swap(NEW);
  await settled(node, agents.run(node), NEW);
  const { mode, uid, gid } = statSync(node.machine.config);
  assert.deepEqual([mode & 0o7777, uid, gid], [0o640, 123, 456]);
});

scene(test, 'a symbolic link in place of the file is refused, and not followed', async (node, agents) => {
  const target = join(node.machine.state, 'target');
  writeFileSync(target, 'precious');
  rmSync(node.machine.config);
  symlinkSync(target, node.machine.config);
  node.original.swap(NEW);
  const agent = agents.run(node);
  await until('it is said', () => agent.reason() === 'IsSymlink');
  assert.equal(readFileSync(target, 'utf8'), 'precious');
});

/** Disks of their own, with the agent in `--once --restart=never`: whether it fits is all that is asked. */
function disk(name: string, options: string, body: (node: TestNode, place: string) => Promise<void>): void {
  scene(test, name, async (node) => {
    const place = join(node.machine.state, 'disk');
    mkdirSync(place);
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', place]);
    try {
      await body(node, place);
    } finally {
      execFileSync('umount', ['-l', place]);
    }
  });
}

async function once(node: TestNode, file: string): Promise<{ code: number; text: string }> {
  const ran = await runProcess(node.command([`--file=${file}`, '--once', '--restart=never']), {
    deadlineMs: 10_000,
  });
  return { code: ran.code, text: ran.stdout + ran.stderr };
}

disk(
  'a full disk: the old content stays, the reason is said, and freed space is used',
  'size=100k',
  async (node, place) => {
    const file = join(place, 'config.json');
    writeFileSync(file, OLD);
    node.original.swap(NEW);
    writeFileSync(join(place, 'ballast'), Buffer.alloc(92 << 10));
    const agent = node.agent([`--file=${file}`, '--restart=never']);
    await until('it is said', () => agent.reason() === 'DiskFull');
    assert.equal(readFileSync(file, 'utf8'), OLD);
    rmSync(join(place, 'ballast'));
    await until('it is written', () => readFileSync(file, 'utf8') === NEW, 15_000);
    await agent.stop();
    assert.deepEqual(entriesOf(place), ['.pullwright', 'config.json']);
  },
);

disk('no inode left: the old content stays, and the reason is said', 'nr_inodes=4', async (node, place) => {
  const file = join(place, 'config.json');
  writeFileSync(file, OLD);
  writeFileSync(join(place, 'ballast'), '');
  node.original.swap(NEW);
  const { code, text } = await once(node, file);
  assert.equal(code, 1);
  assert.match(text, /no space or no inode left/);
  assert.equal(readFileSync(file, 'utf8'), OLD);
});

disk('a read-only disk: the old content stays, and the reason is said', 'size=100k', async (node, place) => {
  const file = join(place, 'config.json');
  writeFileSync(file, OLD);
  execFileSync('mount', ['-o', 'remount,ro', place]);
  node.original.swap(NEW);
  const { code, text } = await once(node, file);
  assert.equal(code, 1);
  assert.match(text, /the file system is read-only \(EROFS\)/);
  assert.equal(readFileSync(file, 'utf8'), OLD);
});

scene(
  test,
  'nothing but the folder of the file is written: the whole file system is read-only',
  async (node) => {
    node.original.swap(NEW);
    const confined = [
      `mount --bind ${node.machine.state} ${node.machine.state}`,
      'mount -o remount,ro,bind /',
      // What is mounted below the root keeps its own switch.
      'for place in /tmp /dev/shm /run /var; do mountpoint -q $place && mount -o remount,ro,bind $place; done',
      `touch ${join(node.machine.state, '../probe')} 2>/dev/null && exit 77`,
      'exec "$@"',
    ].join('\n');
    const ran = await runProcess(
      [
        '/usr/bin/unshare',
        '--mount',
        '--propagation',
        'private',
        '/bin/bash',
        '-c',
        confined,
        'confined',
        ...node.command(['--once']),
      ],
      { deadlineMs: 20_000 },
    );
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal(readFileSync(node.machine.config, 'utf8'), NEW);
    assert.equal(node.machine.starts().at(-1), digestOf(NEW));
  },
);

scene(
  test,
  'at rest it runs without the timers of its runtime, under the process id that the pod knows',
  async (node, agents) => {
    node.original.swap(OLD);
    const agent = agents.run(node);
    await inSync(agent);
    const environment = readFileSync(`/proc/${agent.child.pid}/environ`, 'utf8').split('\0');
    assert.ok(environment.includes('BUN_GC_TIMER_DISABLE=1') && environment.includes('MIMALLOC_SCAVENGER=0'));
    const threads = entriesOf(`/proc/${agent.child.pid}/task`).map((task) =>
      readFileSync(`/proc/${agent.child.pid}/task/${task}/comm`, 'utf8').trim(),
    );
    assert.ok(!threads.includes('mi-scavenger'), threads.join());
  },
);

test.run();
