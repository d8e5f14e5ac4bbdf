/** Next to HyperShift's own operator: the status reports its objects, and does not guess unknown state. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { upstreamDaemonSet } from '../../runtime/global-pull-secret/daemon-set.ts';
import { configHash } from '../../runtime/global-pull-secret/eligibility.ts';
import { type Case, table, test } from '../support/suite.ts';
import { auth, config, type Fleet, fleet, PLATFORM, platform, secret } from './fleet.ts';

const OPERATOR = [{ manager: 'hosted-cluster-config-operator-manager', operation: 'Update', fieldsV1: {} }];

function theirs(name: string, text: string): KubeObject {
  const made = secret(name, 'kube-system', { '.dockerconfigjson': text });
  return { ...made, metadata: { ...made.metadata, managedFields: OPERATOR } };
}

function beside(tenant: string, global: string | undefined): Fleet {
  const one = fleet(PLATFORM, tenant);
  one.hosted.set(theirs('original-pull-secret', PLATFORM));
  if (global !== undefined) one.hosted.set(theirs('global-pull-secret', global));
  return one;
}

const reasons = (one: Fleet): readonly string[] =>
  (one.status()?.verdicts ?? []).map(({ subject, verdict, reason }) => `${subject} ${verdict} ${reason}`);

const TENANT = config({ 'r.io': auth('tenant') });

interface Row extends Case {
  /** @default {TENANT} */
  readonly tenant?: string;
  readonly global: string | undefined;
  readonly verdicts: readonly string[];
  /** @default {'True Merged'} */
  readonly ready?: string;
}

table(
  test,
  [
    {
      name: 'taken',
      reason: 'it is in the merge',
      global: config({ 'quay.io': auth('platform'), 'r.io': auth('tenant') }),
      verdicts: ['r.io Accepted InGlobalPullSecret'],
    },
    {
      name: 'not taken',
      reason: 'the real merge has the platform alone',
      global: config({ 'quay.io': auth('platform') }),
      verdicts: ['r.io Pending NotTaken'],
      ready: 'False NotTaken',
    },
    {
      name: 'an older credential',
      reason: 'nodes pull with the old one',
      global: config({ 'quay.io': auth('platform'), 'r.io': auth('tenant before') }),
      verdicts: ['r.io Pending NotTaken'],
      ready: 'False NotTaken',
    },
    {
      name: 'one bad entry',
      reason: 'HyperShift refuses the whole secret for it',
      tenant: config({ 'bad.io': { auth: '-' }, 'r.io': auth('tenant') }),
      global: undefined,
      verdicts: ['bad.io Rejected UpstreamRejectsAll', 'r.io Rejected UpstreamRejectsAll'],
      ready: 'False EntriesRejected',
    },
    {
      name: 'the platform has it',
      reason: 'keys are compared as texts',
      tenant: config({ 'quay.io': auth('tenant') }),
      global: PLATFORM,
      verdicts: ['quay.io Shadowed OriginalWins'],
    },
    {
      name: 'another spelling of a key of the platform',
      reason: 'HyperShift takes it, and says so nowhere; in our merge it would be shadowed',
      tenant: config({ 'https://quay.io/': auth('tenant') }),
      global: config({ 'quay.io': auth('platform'), 'https://quay.io/': auth('tenant') }),
      verdicts: ['https://quay.io/ Accepted InGlobalPullSecret'],
    },
  ] satisfies Row[],
  ({ tenant = TENANT, global, verdicts, ready = 'True Merged' }: Row) => {
    const one = beside(tenant, global);
    const { objects } = one.reconcile();
    assert.deepEqual(reasons(one), verdicts);
    assert.equal(one.condition('additional'), ready);
    assert.equal(one.condition('additional', 'ManagedElsewhere'), 'True Observing');
    assert.deepEqual([...new Set(objects.map(({ ref }) => ref.kind))], ['PullStatus']);
    for (const { message } of one.status()?.verdicts ?? [])
      assert.match(message, /in Pullwright's merge it would/);
  },
);

interface NodesRow extends Case {
  /** Whose content the DaemonSet of the operator names; absent: there is none. */
  readonly of?: string;
  readonly ready?: number;
  readonly says: string;
}

const TAKEN = config({ 'quay.io': auth('platform'), 'r.io': auth('tenant') });
table<NodesRow>(
  test,
  [
    { name: 'nodes without a DaemonSet', says: 'Warning NoAgents' },
    { name: 'nodes with the content of before', of: PLATFORM, ready: 3, says: 'Pending OlderContent' },
    { name: 'nodes of which one is behind', of: TAKEN, ready: 2, says: 'Pending AgentsBehind' },
    { name: 'nodes that have it', of: TAKEN, ready: 3, says: 'Accepted AgentsHaveIt' },
  ],
  ({ of, ready = 0, says }) => {
    const one = beside(TENANT, TAKEN);
    const status = { desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: ready };
    if (of !== undefined) {
      const made = upstreamDaemonSet(
        { image: 'cpo:1' },
        { merged: true, configHash: configHash(redact(of)) },
      );
      one.hosted.set({ ...made, metadata: { ...made.metadata, managedFields: OPERATOR }, status });
    }
    one.reconcile();
    const found = one.status('original')?.verdicts.find(({ subject }) => subject === 'nodes');
    assert.equal(`${found?.verdict} ${found?.reason}`, says);
    if (of === TAKEN) assert.match(found?.message ?? '', new RegExp(`on ${ready} of 3 nodes`));
  },
);

test('a removal is said to be held only where it is: HyperShift holds nothing', () => {
  const one = beside(TENANT, PLATFORM);
  one.management.set(platform('{"auths":{}}'));
  one.reconcile();
  assert.equal(one.condition('original', 'RemovalHeld'), undefined);
  assert.equal(one.condition('original'), 'True Copied');
});

test('objects of a dump without managedFields tell nobody whose they are: nothing is planned', () => {
  const one = fleet(PLATFORM, TENANT);
  const { managedFields: _fields, ...metadata } = theirs('original-pull-secret', PLATFORM).metadata;
  one.hosted.set({ ...theirs('original-pull-secret', PLATFORM), metadata });
  const { objects } = one.reconcile();
  assert.deepEqual([...new Set(objects.map(({ ref }) => ref.kind))], ['PullStatus']);
  assert.equal(one.condition('original', 'ManagedElsewhere'), 'True OwnershipUnknown');
});
