/** What the adapter's section of a fleet refuses, before any pod could. */
import assert from 'node:assert/strict';
import { schema } from '../../charts/pull-secret-adapter/chart.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('section of the pull secret adapter');
const PROVIDER = 'projects/123/locations/global/workloadIdentityPools/fleet/providers/openshift';
const SECTION = { api: 'https://hyperfleet.example.com' };

interface Bad extends Case {
  readonly section: Readonly<Record<string, unknown>>;
  readonly says: RegExp;
}

const BAD: readonly Bad[] = [
  { name: 'no identity', reason: 'Jobs could do nothing', section: SECTION, says: /one identity/ },
  {
    name: 'two identities',
    reason: 'the second would win silently',
    section: { ...SECTION, jobGoogleServiceAccount: 'a@b', jobFederation: PROVIDER },
    says: /one identity/,
  },
  {
    name: 'a provider by its short name',
    reason: 'Google refuses it only at run time',
    section: { ...SECTION, jobFederation: 'openshift' },
    says: /workloadIdentityPools/,
  },
  {
    name: 'Pub/Sub without a project',
    reason: 'there is no default',
    section: { ...SECTION, jobGoogleServiceAccount: 'a@b', broker: 'pubsub' },
    says: /gcpProject/,
  },
  {
    name: 'a port that is none',
    reason: 'named',
    section: { ...SECTION, jobGoogleServiceAccount: 'a@b', egressPorts: [0] },
    says: /egressPorts|>=1/,
  },
  ...(
    [
      [{ rule: 'all' }, /rule[\s\S]*expected one of/],
      [{ dependencies: ['dns'] }, /says nothing with rule \\"reconcile\\"/],
      [{ rule: 'dependencies', dependencies: [] }, /dependencies/],
      [{ labels: { tier: "go'ld" } }, /wanted letters/],
      [{ labels: { 'a=b': 'c' } }, /wanted letters/],
      [{ eventType: 'a b' }, /wanted letters/],
      [{ pollSeconds: 0 }, /pollSeconds/],
      [{ maxAgeSeconds: 5 }, /debounceSeconds \(10\) is longer than maxAgeSeconds \(5\)/],
      [{ debounceSeconds: 3600 }, /\(3600\) is longer than maxAgeSeconds \(1800\)/],
      [{ repeatLimitSeconds: 1.5 }, /repeatLimitSeconds/],
    ] as const
  ).map(
    ([sentinelOptions, says]): Bad => ({
      name: `Sentinel with ${JSON.stringify(sentinelOptions)}`,
      reason: 'the pod would end with "wrong usage", or never say anything',
      section: { ...SECTION, jobGoogleServiceAccount: 'a@b', sentinel: true, sentinelOptions },
      says,
    }),
  ),
  {
    name: 'options of a Sentinel that is not installed',
    reason: 'they would be lost silently',
    section: { ...SECTION, jobGoogleServiceAccount: 'a@b', sentinelOptions: { rule: 'reconcile' } },
    says: /wanted sentinel: true/,
  },
];
table(test, BAD, ({ section, says }) => {
  const { success, error } = schema.safeParse(section);
  assert.equal(success, false);
  assert.match(error?.message ?? '', says);
});

test.run();
