import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { reveal } from '../../runtime/core/redacted.ts';
import {
  ADDITIONAL_KEYS_ANNOTATION,
  planPullSecrets,
} from '../../runtime/global-pull-secret/reconciler/plan.ts';
import { suite } from '../support/suite.ts';
import { additional, auth, config, PLATFORM, platform, secret } from './fleet.ts';

const test = suite('planPullSecrets');
const MERGED = config({ 'quay.io': auth('platform'), 'tenant.example.com': auth('tenant') });

/** A merge that is there already; with the annotation it is one of ours. */
function merged(keys?: readonly string[]): KubeObject {
  const made = secret('global-pull-secret', 'kube-system', { '.dockerconfigjson': MERGED });
  const annotations = keys === undefined ? {} : { [ADDITIONAL_KEYS_ANNOTATION]: JSON.stringify(keys) };
  return { ...made, metadata: { ...made.metadata, annotations } };
}

const act = (tenant: string, global: KubeObject | undefined): string =>
  planPullSecrets({ platform: platform(PLATFORM), additional: additional(tenant), global }).global.act;

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
  const plan = planPullSecrets({ platform: platform(PLATFORM), additional: undefined, global: merged() });
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
const TENANT = additional(config({ 'tenant.example.com': auth('tenant') }));

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
  const copy = secret('original-pull-secret', 'kube-system', { '.dockerconfigjson': PLATFORM });
  for (const rest of [{ original: copy }, { platformNamespace: 'clusters-a' }]) {
    const plan = alone({ additional: TENANT, ...rest });
    assert.deepEqual(
      [plan.problems[0]?.code, plan.original.act, plan.global.act],
      ['OriginalMissing', 'keep', 'keep'],
    );
  }
});

test.run();
