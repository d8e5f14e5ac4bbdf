import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { nodesRow } from '../../runtime/diagnose/checks/status.ts';
import type { NodeState } from '../../runtime/node/task.ts';
import { meta, refOf } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { additional, auth, config, PLATFORM, platform } from './fleet.ts';
import { eligible as node, ReportingNodes } from './support/reporting-nodes.ts';

const root = tempFolder();

class Nodes extends ReportingNodes {
  constructor(names: readonly string[], folder: string, options: Readonly<Record<string, unknown>> = {}) {
    super(names, join(root, folder), options);
  }
}

const TENANT = config({ 'new.example': auth('new') });

test('an entry is in use when every node has it, and until then nothing is Ready', () => {
  const one = new Nodes(['a', 'b'], 'progress');
  one.hosted.set(additional(TENANT));
  one.reconcile();
  assert.equal(one.condition('additional'), 'False NodesBehind', 'with the very pass that makes the merge');
  assert.equal(one.condition('original'), 'False NodesBehind');
  assert.equal(one.condition('original', 'Reconciling'), 'True NodesBehind');
  assert.match(one.message(), /^used on 0 of 2 nodes; a \(no agent has reported.*\), b \(no agent/);
  one.bring('a');
  one.reconcile();
  assert.equal(one.condition('additional', 'NodesInSync'), 'False NodesBehind');
  assert.match(
    one.status()?.verdicts[0]?.message ?? '',
    /; used on 1 of 2 nodes; b \(NotReported\) lacks it$/,
  );
  assert.deepEqual(
    one.status('original')?.verdicts.map(({ subject, reason }) => `${subject} ${reason}`),
    ['node b NotReported'],
  );
  one.bring('b');
  one.reconcile();
  assert.equal(one.condition('additional'), 'True Merged');
  assert.equal(one.condition('original', 'NodesInSync'), 'True InSync');
  assert.match(one.status()?.verdicts[0]?.message ?? '', /; used on 2 of 2 nodes$/);
});

test('between a rotation and the nodes, the reports of before count for nothing', () => {
  const one = new Nodes(['a'], 'rotation');
  one.hosted.set(additional(TENANT));
  one.reconcile();
  one.bring('a');
  one.reconcile();
  one.hosted.set(additional(config({ 'new.example': auth('rotated') })));
  one.reconcile();
  assert.equal(one.condition('additional'), 'False NodesBehind');
  assert.match(one.message(), /a \(its agent has synced another version of the pull secret\)/);
  one.settled('a');
  one.reconcile();
  assert.equal(one.condition('additional'), 'False NodesBehind', 'it looked, before its mount changed');
  one.bring('a');
  one.reconcile();
  assert.equal(one.condition('additional'), 'True Merged');
});

test('the digest is of what readers can use: other bytes, other white space and entries of others make no difference', () => {
  const one = new Nodes(['a'], 'meaning');
  one.management.set(platform(` ${PLATFORM.replaceAll(',', ' ,\n')}\n`));
  one.reconcile();
  one.bring('a');
  writeFileSync(one.agent('a').file, PLATFORM);
  one.agent('a').restart({ foreign: 'keep' });
  one.settled('a');
  one.reconcile();
  assert.equal(one.condition('original'), 'True Copied');
});

interface Row extends Case {
  readonly state: NodeState;
  readonly says: RegExp;
}
const facts = { digest: 'x', sourceDigest: 'x', source: 'global', resourceVersion: '17' };
const rows: readonly Row[] = [
  {
    name: 'waits for its turn',
    reason: 'the kubelet may still hold what it read before',
    state: { ready: false, reason: 'Spread', message: 'the restart waits', busy: true, facts },
    says: /^used on 0 of 1 node; a \(the restart waits\) lacks it$/,
  },
  {
    name: 'its kubelet did not come up',
    reason: 'the reason is said where the tenant looks',
    state: { ready: false, reason: 'BreakerOpen', message: 'The unit did not come up' },
    says: /a \(The unit did not come up\) lacks it/,
  },
  {
    name: 'another state',
    reason: 'with the version of its Secret',
    state: { ready: true, reason: 'InSync', message: 'm', facts },
    says: /another version of the pull secret \(resourceVersion 17\)\) lacks it/,
  },
  {
    name: 'an agent of before',
    reason: 'it reports no digest: nothing is shown',
    state: { ready: true, reason: 'InSync', message: 'm' },
    says: /another version of the pull secret\) lacks it/,
  },
];
table(test, rows, ({ state, says, name }) => {
  const one = new Nodes(['a'], name.replaceAll(' ', '-'));
  one.hosted.set(additional(TENANT));
  one.report('a', state);
  one.reconcile();
  assert.match(one.message(), says);
});

test('a report that somebody garbled is none', () => {
  const one = new Nodes(['a'], 'garbled');
  one.report('a', { ready: true, reason: 'InSync', message: 'm' });
  const [report] = one.hosted.list({ apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullStatus' });
  assert.ok(report !== undefined);
  for (const status of [
    {},
    { conditions: [{}] },
    { conditions: [{ type: 'Ready', status: 'True' }], summary: { sourceDigest: 7 } },
  ]) {
    one.hosted.set({ ...report, status });
    one.reconcile();
    assert.equal(one.condition('original'), 'False NodesBehind');
  }
});

test('of many nodes three are named, and twenty have a verdict', () => {
  const names = Array.from({ length: 300 }, (_, index) => `node-${String(index).padStart(3, '0')}`);
  const one = new Nodes([], 'many');
  for (const name of names) one.hosted.set(node(name));
  one.hosted.set(additional(TENANT));
  one.reconcile();
  assert.match(
    one.message(),
    /^used on 0 of 300 nodes; node-000 \(.*\), node-001 \(.*\), node-002 \(.*\) and 297 more lack it$/,
  );
  const verdicts = one.status('original')?.verdicts ?? [];
  assert.equal(verdicts.length, 21);
  assert.equal(verdicts.at(-1)?.subject, '280 more nodes');
});

test('where agents do not report, nothing is said of nodes', () => {
  const one = new Nodes(['a'], 'silent', { agent: { report: false } });
  one.hosted.set(additional(TENANT));
  one.reconcile();
  assert.equal(one.condition('additional'), 'True Merged');
  assert.equal(one.condition('additional', 'NodesInSync'), undefined);
});

test('status believes the reports, however many pods are ready', () => {
  const one = new Nodes(['a'], 'status');
  one.hosted.set(additional(TENANT));
  const daemonSet: KubeObject = {
    ...meta('apps/v1 DaemonSet', { name: 'global-pull-secret-syncer', namespace: 'kube-system' }),
    status: { numberReady: 1, desiredNumberScheduled: 1 },
  };
  const row = (): string => {
    one.reconcile();
    const report = one.hosted.get(
      refOf('pullwright.dev/v1alpha1 PullStatus', 'secret-original-pull-secret', 'kube-system'),
    );
    const found = nodesRow([node('a')], daemonSet, report);
    return `${found?.state} ${found?.check} ${found?.message}`;
  };
  assert.match(row(), /^Progressing NodesBehind used on 0 of 1 node; a \(no agent has reported/);
  one.bring('a');
  assert.equal(row(), 'Ready NodesInSync used on 1 of 1 node');
});
