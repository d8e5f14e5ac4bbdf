/** `adapter --event --api-dir --dry-run` over the examples: readable, the same every time, and without a secret. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPlanted } from '../support/canary.ts';
import { golden } from '../support/golden.ts';
import { runProcess } from '../support/process.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { pullSecret } from './run-job.ts';

const test = suite('adapter offline');
const root = new URL('../..', import.meta.url).pathname;
const EXAMPLES = 'examples/adapter';

async function dryRun(
  event: string,
  folder: string,
  ...more: readonly string[]
): Promise<{ code: number; out: string; err: string }> {
  const args = ['adapter', '--event', event, '--api-dir', folder, '--dry-run', ...more];
  const ran = await runProcess([process.execPath, 'main.ts', ...args], { cwd: root });
  return { code: ran.code, out: ran.stdout, err: ran.stderr };
}

interface Example extends Case {
  readonly says: RegExp;
  readonly not?: RegExp;
}

const ROWS: readonly Example[] = [
  {
    name: 'event',
    reason: 'all is there: binding, temporary Secret and Job',
    says: /phase: started[\s\S]*kind: RoleBinding[\s\S]*kind: Secret[\s\S]*kind: Job/,
  },
  {
    name: 'event-waiting',
    reason: 'names the adapters that it waits for',
    says: /phase: waiting[\s\S]*PreconditionNotMet/,
    not: /kind: Job/,
  },
  {
    name: 'event-refused',
    reason: 'names the registry, not the value',
    says: /phase: invalid[\s\S]*registry\.example\.com/,
    not: /kind: Job|dXNlcjpwYXNz/,
  },
  {
    name: 'event-stored',
    reason: 'nothing to do',
    says: /phase: stored[\s\S]*effects: \[\][\s\S]*enabledVersions: 2/,
    not: /kind: Job/,
  },
  {
    name: 'event-deleting',
    reason: 'a Job that deletes, although the dependencies are gone',
    says: /phase: deleting[\s\S]*value: delete/,
  },
];

table(test, ROWS, async ({ name, says, not }) => {
  const { code, out, err } = await dryRun(`${EXAMPLES}/${name}.json`, `${EXAMPLES}/responses`);
  assert.deepEqual([code, err], [0, '']);
  assert.match(out, says);
  if (not !== undefined) assert.doesNotMatch(out, not);
  assert.doesNotMatch(out, /dXNlcjpwYXNz/);
  golden(`pull-secret-adapter/offline/${name}.yaml`, out);
});

interface Bad extends Case {
  readonly event: string;
  readonly cluster?: string;
  readonly says: RegExp;
}

const EVENT = '{"specversion":"1.0","id":"1","type":"cluster.create","data":{"id":"cls-1"}}';
const BAD: readonly Bad[] = [
  { name: 'no JSON', reason: 'named', event: 'xx', says: /Cannot read the event from ".*event\.json"/ },
  {
    name: 'no cluster in the event',
    reason: 'named',
    event: EVENT.replace('cls-1', ''),
    says: /Cannot use the event/,
  },
  {
    name: 'no answer saved',
    reason: 'says under which names it looked',
    event: EVENT,
    says: /expected cls-1\.json or cluster\.json/,
  },
  {
    name: 'an answer that is no JSON',
    reason: 'named',
    event: EVENT,
    cluster: '{',
    says: /cls-1\.json": it is no JSON/,
  },
  {
    name: 'an answer that is no cluster',
    reason: 'named',
    event: EVENT,
    cluster: '[]',
    says: /Cannot plan for cluster "cls-1"/,
  },
];

table(test, BAD, async ({ event, cluster, says }) => {
  const folder = mkdtempSync(join(tmpdir(), 'pullwright-offline-'));
  try {
    writeFileSync(join(folder, 'event.json'), event);
    if (cluster !== undefined) writeFileSync(join(folder, 'cls-1.json'), cluster);
    const { code, out, err } = await dryRun(join(folder, 'event.json'), folder);
    assert.deepEqual([code, out], [1, '']);
    assert.match(err, says);
    assert.doesNotMatch(err, /\n\s+at /);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('statuses that are there and cannot be read are not taken for none', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pullwright-offline-'));
  try {
    writeFileSync(join(folder, 'event.json'), EVENT);
    writeFileSync(join(folder, 'cls-1.json'), JSON.stringify({ id: 'cls-1', generation: 1 }));
    for (const name of ['cls-1-statuses.json', 'statuses.json']) mkdirSync(join(folder, name));
    const { code, err } = await dryRun(join(folder, 'event.json'), folder);
    assert.equal(code, 1);
    assert.match(err, /Cannot read ".*statuses\.json": the system answered EISDIR/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('shows no secret of a cluster, in either form', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pullwright-offline-'));
  try {
    const spec = { provider: 'gcp', gcp: { projectId: 'p' }, pullSecret: { data: pullSecret('offline') } };
    const available = { available: 'True' };
    const status = { adapters: { validation: available, dns: available, placement: available } };
    writeFileSync(join(folder, 'event.json'), EVENT);
    writeFileSync(
      join(folder, 'cls-1.json'),
      JSON.stringify({ id: 'cls-1', name: 'c', generation: 1, spec, status }),
    );
    for (const form of ['yaml', 'json']) {
      const { code, out, err } = await dryRun(join(folder, 'event.json'), folder, '--output', form);
      assert.deepEqual([code, err], [0, '']);
      assert.match(out, /\[redacted\]/);
      assert.equal(findPlanted(out), undefined);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.run();
