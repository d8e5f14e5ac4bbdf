/** The construct beside those of cdk8s-plus-28. */
import assert from 'node:assert/strict';
import { Testing } from 'cdk8s';
import * as kplus from 'cdk8s-plus-28';
import { PullSecret } from '../../charts/mod.ts';
import { test } from '../support/suite.ts';

test('PullSecret goes into dockerRegistryAuth of a Deployment', () => {
  const chart = Testing.chart();
  const credentials = new PullSecret(chart, 'team', { namespace: 'web', name: 'team' });
  new kplus.Deployment(chart, 'web', {
    metadata: { namespace: 'web', name: 'web' },
    dockerRegistryAuth: credentials,
    containers: [{ image: 'quay.io/acme/web:1' }],
  });
  const [deployment] = Testing.synth(chart);
  assert.deepEqual(deployment.spec.template.spec.imagePullSecrets, [{ name: 'team' }]);
});

test('PullSecret is what a Role of cdk8s-plus-28 allows to be read, by name', () => {
  const chart = Testing.chart();
  const credentials = new PullSecret(chart, 'team', { namespace: 'web', name: 'team' });
  new kplus.Role(chart, 'role', { metadata: { namespace: 'web', name: 'reader' } }).allowRead(credentials);
  const [role] = Testing.synth(chart);
  assert.deepEqual(role.rules[0].resourceNames, ['team']);
  assert.deepEqual(role.rules[0].resources, ['secrets']);
});

test('PullSecret.allowRead() grants get on this Secret alone', () => {
  const chart = Testing.chart();
  const credentials = new PullSecret(chart, 'team', { namespace: 'web', name: 'team' });
  credentials.allowRead({ namespace: 'tools', name: 'scanner' });
  const [role, binding] = Testing.synth(chart);
  assert.deepEqual(role.rules, [
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['team'], verbs: ['get'] },
  ]);
  assert.deepEqual(binding.subjects, [{ kind: 'ServiceAccount', name: 'scanner', namespace: 'tools' }]);
  assert.equal(binding.roleRef.name, role.metadata.name);
});

test('PullSecret.envValue() refuses to put a credential into the environment', () => {
  const credentials = new PullSecret(Testing.chart(), 'team', { namespace: 'web', name: 'team' });
  assert.throws(
    () => credentials.envValue('.dockerconfigjson'),
    /Cannot put key ".dockerconfigjson" of pull secret "web\/team"/,
  );
});
