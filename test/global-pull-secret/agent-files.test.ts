// deadline: 180 s
// needs: systemd
/** The compiled agent and the files around it: secrets that are no secrets, disks that are full, links, rights. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inSync, NEW, OLD, secret, settle, settled } from '../support/agent-scene.ts';
import { test } from '../support/agent-test.ts';
import { plantedPassword } from '../support/canary.ts';
import type { LogLine } from '../support/node-agent.ts';
import { runProcess } from '../support/process.ts';
import { digestOf, entriesOf, until } from '../support/systemd.ts';

test('bad secrets: the last good content stays, the reason is said, no value is shown', async (node) => {
  const agent = await settle(node);
  const planted = plantedPassword('poison');
  const bad: readonly (readonly [string | Uint8Array | undefined, RegExp])[] = [
    [OLD.slice(0, -9), /not JSON/],
    [`{"auths":{"a.example.com":"${planted}"}}`, /entry "a.example.com" is a string, expected an object/],
    [Buffer.from([0xff, 0xfe, 0x00, 0x41]), /not JSON/],
    ['', /it is empty/],
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
});

test('a secret of 900 KiB', async (node) => {
  const large = secret(...Array.from({ length: 10_000 }, (_, at) => `registry-${at}.example.com/team`));
  assert.ok(large.length > 900 << 10 || large.length > 700_000);
  node.original.swap(large);
  await settled(node, node.agent(), large);
});

test('the file is for root alone, whatever its mode and owner were before', async (node) => {
  execFileSync('chmod', ['0640', node.machine.config]);
  chownSync(node.machine.config, 123, 456);
  node.original.swap(NEW);
  await settled(node, node.agent(), NEW);
  const { mode, uid, gid } = statSync(node.machine.config);
  assert.deepEqual([mode & 0o7777, uid, gid], [0o600, 0, 0]);
});

test('a mode that lets others read the file is corrected without a restart', async (node) => {
  const agent = await settle(node);
  node.original.swap(NEW);
  await settled(node, agent, NEW);
  await agent.stop();
  chmodSync(node.machine.config, 0o644);
  const next = node.agent();
  await inSync(next);
  assert.equal(statSync(node.machine.config).mode & 0o777, 0o600);
  assert.equal(next.events('restarting').length, 0);
});

test('a full disk: the old content stays, the reason is said, and freed space is used', async (node) => {
  const place = join(node.machine.state, 'disk');
  mkdirSync(place);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=100k', 'tmpfs', place]);
  try {
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
  } finally {
    execFileSync('umount', ['-l', place]);
  }
});

test('nothing but the folder of the file is written: the whole file system is read-only', async (node) => {
  node.original.swap(NEW);
  const confined = [
    `mount --bind ${node.machine.state} ${node.machine.state}`,
    'mount -o remount,ro,bind /',
    // Mounts below the root have their own read-only flag.
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
});
