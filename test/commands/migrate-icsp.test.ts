/** `migrate-icsp`: what is printed, and that it changes no file of a node. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseAllDocuments } from 'yaml';
import { disruptionOf } from '../../runtime/rules/node-registries/disruption.ts';
import { renderNodeFiles } from '../../runtime/rules/node-registries/render.ts';
import { convertPolicy } from '../../runtime/rules/registry-overrides/convert-policy.ts';
import { mirrorSet } from '../registry-overrides/world.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { suite, table } from '../support/suite.ts';

const test = suite('pullwright migrate-icsp');
const root = new URL('../..', import.meta.url).pathname;

function cli(stdin: string, ...args: readonly string[]): Promise<ProcessResult> {
  const command = [process.execPath, `${root}main.ts`, 'migrate-icsp', ...args];
  return runProcess(command, { cwd: root, deadlineMs: 60_000, stdin });
}

const policy = (name: string, entries: readonly unknown[]) =>
  mirrorSet('ImageContentSourcePolicy', name, entries);
const text = (...objects: readonly object[]): string =>
  objects.map((one) => JSON.stringify(one)).join('\n---\n');
const ENTRY = { source: 'quay.io/ocp', mirrors: ['m.example.com/ocp', 'n.example.com/ocp'] };

test('prints what oc adm migrate icsp writes, without what belongs to the one object', async () => {
  const old = policy('mirrors', [ENTRY]);
  const metadata = {
    ...old.metadata,
    resourceVersion: '7',
    creationTimestamp: '2024-01-01T00:00:00Z',
    labels: { team: 'a' },
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', note: 'kept' },
  };
  const ran = await cli(text({ ...old, metadata }), '--from', '-');
  assert.equal(ran.code, 0, ran.stderr);
  assert.deepEqual(
    parseAllDocuments(ran.stdout).map((one) => one.toJSON() as unknown),
    [
      {
        apiVersion: 'config.openshift.io/v1',
        kind: 'ImageDigestMirrorSet',
        metadata: { name: 'mirrors', labels: { team: 'a' }, annotations: { note: 'kept' } },
        spec: { imageDigestMirrors: [ENTRY] },
      },
    ],
  );
  assert.match(ran.stderr, /then: kubectl delete imagecontentsourcepolicy mirrors/);
});

table(
  test,
  [
    {
      name: 'a name that a set has already',
      reason: 'the set that is there must not be replaced',
      objects: [policy('mirrors', [ENTRY]), mirrorSet('ImageDigestMirrorSet', 'mirrors', [ENTRY])],
      code: 0,
      says: /name: mirrors-icsp\n/,
    },
    {
      name: 'an entry that the newer kind does not admit',
      reason: 'it is left out and named; the others go on',
      objects: [policy('mirrors', [ENTRY, { source: 'https://quay.io', mirrors: ['m.example.com'] }])],
      code: 1,
      says: /left out: ImageContentSourcePolicy\/mirrors spec\.repositoryDigestMirrors\[1\] has no usable source/,
    },
    {
      name: 'a mirror twice',
      reason: 'the newer kind does not admit it, and it may decide the order beside other sets',
      objects: [
        policy('mirrors', [
          { source: 'quay.io/a', mirrors: ['m.example.com', 'n.example.com', 'm.example.com'] },
        ]),
      ],
      code: 1,
      says: /left out: ImageContentSourcePolicy\/mirrors spec\.repositoryDigestMirrors\[0\] lists a mirror twice/,
    },
    {
      name: 'nothing to convert',
      reason: 'success would say that there is nothing left to do',
      objects: [mirrorSet('ImageDigestMirrorSet', 'mirrors', [ENTRY])],
      code: 1,
      says: /Cannot convert: there is no ImageContentSourcePolicy/,
    },
  ],
  async ({ objects, code, says }) => {
    const ran = await cli(text(...objects), '--from', '-');
    assert.equal(ran.code, code, ran.stdout + ran.stderr);
    assert.match(ran.stdout + ran.stderr, says);
  },
);

test('a converted policy changes no file of a node', () => {
  const place = fc.constantFrom(
    'quay.io/a',
    'quay.io/b',
    'm1.example.com/x',
    'm2.example.com/x',
    'm3.example.com',
  );
  const entry = fc.record({ source: place, mirrors: fc.uniqueArray(place, { maxLength: 4 }) });
  const policies = fc.array(fc.array(entry, { maxLength: 4 }), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(policies, (lists) => {
      const old = lists.map((entries, at) => policy(`p${at}`, entries));
      const before = renderNodeFiles(old);
      const after = renderNodeFiles(old.map((one) => convertPolicy(one, new Set()).object));
      assert.ok(!before.refused && !after.refused);
      assert.deepEqual(disruptionOf(before, after).changedFiles, []);
    }),
    { numRuns: 300, seed: 13 },
  );
});

test.run();
