import assert from 'node:assert/strict';
import { type PullSecret, pullSecretOf } from '../../runtime/core/docker-config/pull-secret.ts';
import { reveal } from '../../runtime/core/redacted.ts';
import {
  ADDED_ENTRIES_ANNOTATION,
  addedEntries,
  planPullSecrets,
} from '../../runtime/global-pull-secret/reconciler/plan.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { additional, auth, config, type Fleet, fleet, NOW, PLATFORM, platform, secret } from './fleet.ts';
import { TaskNode } from './support/task-node.ts';

const ENTRIES = ['quay.io', 'tenant.example.com'];
const MERGED = config({ 'quay.io': auth('platform'), 'tenant.example.com': auth('tenant') });

const read = (text: string): PullSecret => pullSecretOf(platform(text));

/** A merge that is there already; with the annotation it is one of ours. */
function merged(keys?: readonly string[]): PullSecret {
  const made = secret('global-pull-secret', 'kube-system', { '.dockerconfigjson': MERGED });
  const annotations =
    keys === undefined
      ? {}
      : {
          [ADDED_ENTRIES_ANNOTATION]: addedEntries(
            ENTRIES.map((key) => ({ key, source: keys.includes(key) ? 'additional' : 'original' })),
          ),
        };
  return pullSecretOf({ ...made, metadata: { ...made.metadata, annotations } });
}

const act = (tenant: string, global: PullSecret | undefined): string =>
  planPullSecrets({ platform: read(PLATFORM), additional: pullSecretOf(additional(tenant)), global }).global
    .act;

test("a merge that somebody else made stays while the tenant's secret cannot be read", () => {
  assert.equal(act('{', merged()), 'keep');
});

test("a merge of ours is created again then: the tenant's last good part of it is known", () => {
  assert.equal(act('{', merged(['tenant.example.com'])), 'write');
});

test("a merge that somebody else made is replaced by one of a tenant's secret that can be read", () => {
  assert.equal(act(config({ 'new.example': auth('new') }), merged()), 'write');
});

test('nothing is kept where nothing is wanted', () => {
  const plan = planPullSecrets({ platform: read(PLATFORM), additional: undefined, global: merged() });
  assert.equal(plan.global.act, 'remove');
});

const alone = (rest: Partial<Parameters<typeof planPullSecrets>[0]>) =>
  planPullSecrets({
    platform: undefined,
    additional: undefined,
    global: undefined,
    platformNamespace: 'openshift-config',
    ...rest,
  });
const TENANT = pullSecretOf(additional(config({ 'tenant.example.com': auth('tenant') })));

test('a stand-alone cluster without a pull secret of its own: the tenant works alone', () => {
  const plan = alone({ additional: TENANT });
  assert.deepEqual(plan.problems, []);
  assert.equal(plan.original.act, 'keep');
  assert.ok(plan.global.act === 'write');
  assert.deepEqual(JSON.parse(Buffer.from(reveal(plan.global.value), 'base64').toString()), {
    auths: { 'tenant.example.com': auth('tenant') },
  });
  assert.deepEqual(
    plan.verdicts.map(({ verdict }) => verdict),
    ['Accepted'],
  );
});

test('and takes what it added away again', () => {
  assert.equal(alone({ global: merged(['tenant.example.com']) }).global.act, 'remove');
});

test('with neither, nothing is wrong', () => {
  const { problems, original, global } = alone({});
  assert.deepEqual([problems, original.act, global.act], [[], 'keep', 'remove']);
});

test('one that had a pull secret misses it, and so does a hosted cluster', () => {
  const copy = pullSecretOf(secret('original-pull-secret', 'kube-system', { '.dockerconfigjson': PLATFORM }));
  for (const rest of [{ original: copy }, { platformNamespace: 'clusters-a' }]) {
    const plan = alone({ additional: TENANT, ...rest });
    assert.deepEqual(
      [plan.problems[0]?.code, plan.original.act, plan.global.act],
      ['OriginalMissing', 'keep', 'keep'],
    );
  }
});

// A removal is held on a copy that is then deleted, and no merge has its entries: only nodes have them.

const root = tempFolder();

const FOUR = ['quay.io', 'a.io', 'b.io', 'c.io'];
const COPY = { apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system', name: 'original-pull-secret' };
const of = (...names: readonly string[]): string =>
  config(Object.fromEntries(names.map((name) => [name, auth(name)])));

/** Mounts a Secret on a node, including its mark. */
function mount(one: Fleet, node: TaskNode): void {
  for (const which of ['global', 'original'] as const) {
    const data = one.secret(`${which}-pull-secret`)?.data ?? {};
    const text = (key: string): string | undefined =>
      data[key] && Buffer.from(reveal(data[key]), 'base64').toString();
    node.set(which, text('.dockerconfigjson'), text('pullwright-judged'));
  }
}

/** Three of four entries are taken away, which is held; and then the copy is deleted. */
function deleted(
  name: string,
  options: Readonly<Record<string, unknown>> = {},
): { one: Fleet; node: TaskNode } {
  const one = fleet(of(...FOUR), undefined, options);
  const node = new TaskNode(root, name, { removals: { share: 0.9 } });
  one.reconcile();
  mount(one, node);
  node.settle();
  one.management.set(platform(of('quay.io')));
  one.reconcile();
  assert.equal(one.condition('original', 'RemovalHeld'), 'True Share');
  one.hosted.delete(COPY);
  one.reconcile();
  mount(one, node);
  return { one, node };
}

test('nodes hold whatever they would lose, although they would judge it small enough themselves', () => {
  const { one, node } = deleted('hold');
  assert.deepEqual(Object.keys(one.auths('original-pull-secret') ?? {}), ['quay.io']);
  assert.equal(one.condition('original', 'RemovalHeld'), 'True CopyDeleted');
  assert.equal(one.condition('original'), 'False RemovalHeld');
  assert.deepEqual([...node.keys()].sort(), [...FOUR].sort());
  assert.equal(node.look().problem?.code, 'RemovalHeld');
  const { objects } = one.reconcile(new Date(NOW.getTime() + 60_000));
  assert.ok(
    objects.every(({ verb }) => verb === 'unchanged'),
    'a second pass writes nothing',
  );
});

test('what is added or rotated goes on', () => {
  const { one, node } = deleted('rotate');
  one.management.set(platform(of('quay.io', 'new.io')));
  one.reconcile();
  mount(one, node);
  assert.deepEqual([...node.keys()].sort(), [...FOUR, 'new.io'].sort());
});

test('an additional secret that comes meanwhile lets nothing go', () => {
  const { one, node } = deleted('tenant');
  one.hosted.set(additional(of('tenant.io')));
  one.reconcile();
  mount(one, node);
  assert.deepEqual([...node.keys()].sort(), [...FOUR, 'tenant.io'].sort());
});

test('the hash that was held is the one that confirms it', () => {
  const { one, node } = deleted('confirm');
  const hash = one.status('original')?.summary['heldRemoval'] ?? '';
  const confirmed = (value: string): void => {
    const object = platform(of('quay.io'));
    const annotations = { 'pullwright.dev/confirm-removal': value };
    one.management.set({ ...object, metadata: { ...object.metadata, annotations } });
    one.reconcile();
    mount(one, node);
  };
  confirmed('0123456789ab');
  assert.deepEqual([...node.keys()].sort(), [...FOUR].sort());
  confirmed(hash);
  assert.deepEqual(node.keys(), ['quay.io']);
  assert.equal(one.condition('original', 'RemovalHeld'), undefined);
});

test('the delay of the fleet counts from when it was first held', () => {
  const { one, node } = deleted('delay', { removals: { delay: '24h' } });
  const at = (hours: number): readonly string[] => {
    one.reconcile(new Date(NOW.getTime() + hours * 3_600_000));
    mount(one, node);
    return [...node.keys()].sort();
  };
  assert.deepEqual(at(23), [...FOUR].sort());
  assert.deepEqual(at(25), ['quay.io']);
});

test('a copy that is deleted while nothing is held is made again as it was', () => {
  const one = fleet(of(...FOUR));
  one.reconcile();
  one.hosted.delete(COPY);
  one.reconcile();
  assert.equal(one.condition('original'), 'True Copied');
});
