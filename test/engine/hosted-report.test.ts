/** HostedReport: when a hosted cluster's trouble is told, to whom, and what is left of it afterwards. */
import assert from 'node:assert/strict';
import { PullwrightError } from '../../runtime/core/errors.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { redact } from '../../runtime/core/redacted.ts';
import type { Cluster } from '../../runtime/engine/cluster.ts';
import { type DiscoveryOptions, type Follower, HostedReport } from '../../runtime/engine/hosted-clusters.ts';
import { test } from '../support/suite.ts';

const DOWN = new PullwrightError('Cannot list "Secret": connection refused', { code: 'Unreachable' });
const GONE = new PullwrightError('Cannot apply: not found', { code: 'NotFound' });

interface Scene {
  readonly stored: Map<string, KubeObject>;
  readonly told: string[];
  readonly counts: Record<string, number>;
  /** Hosted clusters that do not answer although they were opened. */
  readonly down: Set<string>;
  held: boolean;
  /** Whether the management cluster has listed its hosted clusters. */
  isKnown: boolean;
  writes: number;
  /** Error of the API server for a write. */
  refuses: Error | undefined;
  look(times?: number): Promise<void>;
  /** Condition and verdicts of the PullStatus beside the Lease. */
  says(): readonly string[] | undefined;
}

function scene(followers: ReadonlyMap<string, Partial<Follower>>): Scene {
  const one: Scene = {
    stored: new Map(),
    told: [],
    counts: {},
    down: new Set(),
    held: true,
    isKnown: true,
    writes: 0,
    refuses: undefined,
    look: async (times = 1) => {
      for (; times > 0; times -= 1) {
        report.look(one.isKnown);
        // More turns of the event loop than its requests need here.
        for (let turn = 0; turn < 100; turn += 1) await Promise.resolve();
      }
    },
    says: () => {
      const status = one.stored.get('lease-pullwright-reconciler')?.status as
        | {
            conditions: readonly { status: string; reason: string }[];
            verdicts: readonly { subject: string; reason: string }[];
          }
        | undefined;
      return status === undefined
        ? undefined
        : [
            `${status.conditions[0]?.status} ${status.conditions[0]?.reason}`,
            ...status.verdicts.map(({ subject, reason }) => `${subject} ${reason}`),
          ];
    },
  };
  const client = {
    get: async ({ name }: { name: string }) => one.stored.get(name),
    apply: async (object: KubeObject, { subresource }: { subresource?: string }) => {
      if (one.refuses !== undefined) throw one.refuses;
      const before = one.stored.get(object.metadata.name);
      if (subresource !== undefined && before === undefined) throw GONE;
      one.writes += 1;
      const metadata = { ...object.metadata, resourceVersion: `${one.writes}` };
      const stored = { ...before, ...object, metadata };
      one.stored.set(object.metadata.name, stored);
      return stored;
    },
  };
  const management = {
    client,
    mayWrite: true,
    cache: { store: { list: () => [{ metadata: { name: 'plane' } }] } },
    events: { record: async ({ note }: { note: string }) => void one.told.push(note) },
  };
  const options = {
    management: management as unknown as Cluster,
    manager: {
      failureOf: (name: string) => (one.down.has(name) ? DOWN : undefined),
      waitingFor: () => undefined,
    },
    metrics: { hostedClusters: (counts: Record<string, number>) => Object.assign(one.counts, counts) },
    log: { info: (text: string) => one.told.push(text) },
    lease: { namespace: 'ns', name: 'pullwright-reconciler', isHeld: () => one.held },
  } as unknown as DiscoveryOptions;
  const report = new HostedReport(options, followers as ReadonlyMap<string, Follower>);
  return one;
}

const follower = (name: string, rest: Partial<Follower> = {}): [string, Partial<Follower>] => [
  name,
  { scope: { name, controlPlaneNamespace: name }, looks: 0, used: redact('kubeconfig'), ...rest },
];

test('what is in order is written once, and again when it changes', async () => {
  const seen = scene(new Map([follower('c/a')]));
  await seen.look(10);
  assert.deepEqual(seen.says(), ['True HostedClustersServed']);
  assert.equal(seen.writes, 2, 'the object and its status');
  assert.equal(seen.counts['ready'], 1);
});

test('an opened cluster that does not answer for a while is told of, and is not once it answers', async () => {
  const seen = scene(new Map([follower('c/a'), follower('c/b')]));
  seen.down.add('c/a');
  await seen.look(4);
  assert.deepEqual(seen.says(), ['False HostedClustersStarting'], 'it may pass');
  assert.equal(seen.counts['failing'], 1, 'but it is counted at once');
  await seen.look(2);
  assert.deepEqual(seen.says(), ['False HostedClustersFailing', 'c/a Unreachable']);
  assert.deepEqual(seen.told, [`${DOWN.message}. `]);
  seen.down.clear();
  await seen.look();
  assert.deepEqual(seen.says(), ['True HostedClustersServed']);
  seen.down.add('c/a');
  await seen.look(6);
  assert.equal(seen.told.length, 2, 'it is news again');
});

test('one that cannot be opened is told of after five looks, one that is refused at once', async () => {
  const same = new PullwrightError('Cannot connect to hosted cluster', { code: 'SameCluster' });
  const followers = new Map([follower('c/a', { failure: DOWN }), follower('c/b', { failure: same })]);
  const seen = scene(followers);
  await seen.look(4);
  assert.deepEqual(seen.says(), ['False HostedClustersFailing', 'c/b SameCluster']);
  await seen.look();
  assert.deepEqual(seen.says(), ['False HostedClustersFailing', 'c/a Unreachable', 'c/b SameCluster']);
});

test('deleted or overwritten objects are written again: at the next change, or after ten minutes', async () => {
  const seen = scene(new Map([follower('c/a')]));
  await seen.look();
  seen.stored.clear();
  seen.down.add('c/a');
  await seen.look(6);
  assert.deepEqual(seen.says(), ['False HostedClustersFailing', 'c/a Unreachable']);
  seen.stored.clear();
  await seen.look(120);
  assert.deepEqual(seen.says(), ['False HostedClustersFailing', 'c/a Unreachable']);
  const name = 'lease-pullwright-reconciler';
  const { writes } = seen;
  await seen.look(200);
  assert.equal(seen.writes, writes, 'what is as it was is not written');
  seen.stored.set(name, { apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullStatus', metadata: { name } });
  await seen.look(120);
  assert.deepEqual(seen.says(), ['False HostedClustersFailing', 'c/a Unreachable']);
});

test('who does not hold the Lease says nothing, and says it again once it does', async () => {
  const seen = scene(new Map([follower('c/a')]));
  seen.held = false;
  await seen.look(6);
  assert.equal(seen.writes, 0);
  seen.held = true;
  await seen.look();
  assert.deepEqual(seen.says(), ['True HostedClustersServed']);
  seen.held = false;
  await seen.look();
  seen.stored.clear();
  seen.held = true;
  await seen.look();
  assert.deepEqual(seen.says(), ['True HostedClustersServed'], 'another one may have written meanwhile');
});

test('nothing is said of clusters before it is known which there are', async () => {
  const seen = scene(new Map());
  seen.isKnown = false;
  await seen.look(3);
  assert.equal(seen.writes, 0);
  seen.isKnown = true;
  await seen.look();
  assert.deepEqual(seen.says(), ['True NoHostedClusters']);
});

test('a cluster that was found and is not connected yet is not reconciled', async () => {
  const [name, one] = follower('c/a', { used: undefined });
  const seen = scene(new Map([[name, one]]));
  await seen.look();
  assert.deepEqual(seen.says(), ['False HostedClustersStarting']);
  assert.deepEqual([seen.counts['ready'], seen.counts['starting']], [0, 1]);
});

test('a refusal is logged once, stops nothing, and is tried again', async () => {
  const seen = scene(new Map([follower('c/a')]));
  seen.refuses = new PullwrightError('Cannot apply', { code: 'Forbidden' });
  await seen.look(3);
  assert.deepEqual(seen.told, ['cannot report on hosted clusters']);
  assert.equal(seen.counts['ready'], 1);
  seen.refuses = undefined;
  await seen.look(9);
  assert.equal(seen.writes, 0, 'not with every look');
  await seen.look(3);
  assert.deepEqual(seen.says(), ['True HostedClustersServed']);
});
