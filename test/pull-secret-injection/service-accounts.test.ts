/** ServiceAccounts that enforce mountable secrets: their pods are skipped. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { conditionOf, namespace, profile, ready, scene, source } from './scene.ts';

const shop = namespace('shop', { team: 'a' });
const quay = source('platform/quay', ['quay.io']);
const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
const STRICT = { 'kubernetes.io/enforce-mountable-secrets': 'true' };

function account(
  name: string,
  listed: readonly string[] = [],
  annotations: Record<string, string> = {},
): KubeObject {
  return {
    ...meta('v1 ServiceAccount', {
      name,
      namespace: 'shop',
      uid: `uid-${name}`,
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    }),
    ...(listed.length === 0 ? {} : { imagePullSecrets: listed.map((one) => ({ name: one })) }),
  };
}

test('an account that enforces mountable secrets is skipped, and its owner and the profile say so', () => {
  const plain = profile('team', { secrets });
  const seen = scene([shop, quay, plain, account('strict', [], STRICT), account('lists', ['reg'], STRICT)]);
  const policy = seen.store.list({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicy',
  });
  assert.match(JSON.stringify(policy), /shop\/lists\\+": \[\\+"reg\\+"\], \\+"shop\/strict\\+": \[\]/);
  const about = seen.status('PullSecretProfile', 'team');
  assert.equal(conditionOf(about, 'AccountsServed'), 'False MountableSecretsEnforced');
  assert.match(
    about?.conditions.find(({ type }) => type === 'AccountsServed')?.message ?? '',
    /^Pods of 1 ServiceAccount are not injected: it enforces mountable secrets .*: "shop\/strict"; /,
  );
  const told = seen.status('PullStatus', 'serviceaccount-strict', 'shop');
  assert.equal(ready(told), 'False MountableSecretsEnforced');
  assert.deepEqual(
    told?.verdicts?.map(({ subject, verdict }) => [subject, verdict]),
    [['reg', 'Warning']],
  );
  assert.equal(seen.status('PullStatus', 'serviceaccount-lists', 'shop'), undefined);
  const later = seen.after([account('strict', ['reg'], STRICT)]);
  assert.equal(
    later.status('PullStatus', 'serviceaccount-strict', 'shop'),
    undefined,
    'it lists the name now',
  );
  assert.equal(conditionOf(later.status('PullSecretProfile', 'team'), 'AccountsServed'), undefined);
});

test('pods of a skipped account are not reported as lacking names: a new one would lack them too', () => {
  const pod = (serviceAccountName: string): KubeObject => ({
    ...meta('v1 Pod', {
      name: serviceAccountName,
      namespace: 'shop',
      creationTimestamp: '2026-01-01T00:00:00Z',
    }),
    spec: { serviceAccountName, containers: [] },
  });
  const seen = scene([
    shop,
    quay,
    profile('team', { secrets }),
    account('strict', [], STRICT),
    account('default'),
    pod('strict'),
    pod('default'),
  ]);
  const told = seen.status('PullStatus', 'podlist-shop', 'shop');
  assert.deepEqual(
    told?.verdicts?.map(({ subject }) => subject),
    ['pod/default'],
  );
});
