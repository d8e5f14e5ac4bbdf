/** What is said where there is one of a thing: no "1 namespaces". */
import assert from 'node:assert/strict';
import { eventsOf } from '../../runtime/pull-secret-injection/reconciler/profile-status.ts';
import { suite } from '../support/suite.ts';
import { namespace, profile, scene, source } from './scene.ts';

const test = suite('one namespace in words');

const brings = (from: string) => ({
  secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: from }] }],
});

interface Case {
  readonly name: string;
  readonly spec: Record<string, unknown>;
  readonly wants: string;
  readonly says: RegExp;
}

const cases: readonly Case[] = [
  {
    name: 'copies',
    spec: { ...brings('quay'), mode: 'Distribute' },
    wants: 'Ready',
    says: /The one namespace that is selected holds the Secrets/,
  },
  {
    name: 'names alone',
    spec: { mode: 'Inject', secrets: [{ name: 'reg' }] },
    wants: 'SecretsPresent',
    says: /is not seen in 1 of 1 namespace, first in "shop"/,
  },
  {
    name: 'a source that is gone',
    spec: brings('gone'),
    wants: 'SourcesReady',
    says: /\(1 of 1 namespace\)$/,
  },
];

for (const { name, spec, wants, says } of cases)
  test(`the condition ${wants} of a profile with one namespace: ${name}`, () => {
    const objects = [
      namespace('platform'),
      namespace('shop', { team: 'a' }),
      source('platform/quay', ['quay.io']),
      profile('team', spec),
    ];
    const conditions = scene(objects).status('PullSecretProfile', 'team')?.conditions;
    const messages = conditions?.map(({ type, message }) => `${type}: ${message}`) ?? [];
    assert.match(messages.find((one) => one.startsWith(`${wants}: `)) ?? '', says);
    assert.doesNotMatch(messages.join('\n'), /\b1 (namespaces|of 1 namespaces)\b/);
  });

test('an event leaves the number of namespaces out, also of one', () => {
  const regarding = { role: 'hosted', apiVersion: 'v1', kind: 'X', name: 'x' } as const;
  for (const count of ['1 of 1 namespace', '2 of 3 namespaces']) {
    const message = `it is gone (${count})`;
    const [event] = eventsOf(regarding, [{ type: 'SourcesReady', status: 'False', reason: 'R', message }]);
    assert.equal(event?.note, 'it is gone');
  }
});

test.run();
