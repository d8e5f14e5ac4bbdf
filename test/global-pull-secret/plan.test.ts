import assert from 'node:assert/strict';
import { PullSecret } from '../../runtime/core/docker-config/pull-secret.ts';
import { reveal } from '../../runtime/core/redacted.ts';
import {
  ADDED_ENTRIES_ANNOTATION,
  addedEntries,
  planPullSecrets,
} from '../../runtime/global-pull-secret/reconciler/plan.ts';
import { test } from '../support/suite.ts';
import { additional, auth, config, PLATFORM, platform, secret } from './fleet.ts';

const ENTRIES = ['quay.io', 'tenant.example.com'];
const MERGED = config({ 'quay.io': auth('platform'), 'tenant.example.com': auth('tenant') });

const read = (text: string): PullSecret => PullSecret.of(platform(text));

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
  return PullSecret.of({ ...made, metadata: { ...made.metadata, annotations } });
}

const act = (tenant: string, global: PullSecret | undefined): string =>
  planPullSecrets({ platform: read(PLATFORM), additional: PullSecret.of(additional(tenant)), global }).global
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
const TENANT = PullSecret.of(additional(config({ 'tenant.example.com': auth('tenant') })));

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
  const copy = PullSecret.of(
    secret('original-pull-secret', 'kube-system', { '.dockerconfigjson': PLATFORM }),
  );
  for (const rest of [{ original: copy }, { platformNamespace: 'clusters-a' }]) {
    const plan = alone({ additional: TENANT, ...rest });
    assert.deepEqual(
      [plan.problems[0]?.code, plan.original.act, plan.global.act],
      ['OriginalMissing', 'keep', 'keep'],
    );
  }
});
