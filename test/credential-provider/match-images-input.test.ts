/** `spec.matchImages` of any shape, offline: what is refused is named, and the good entries are rendered all the same. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseReconcilerOptions } from '../../runtime/credential-provider/options.ts';
import { credentialProviderReconciler } from '../../runtime/credential-provider/reconciler/reconcile.ts';
import { table, test } from '../support/suite.ts';
import { filesOf } from './support/machine-config-files.ts';
import { clusterObjects, worldOf } from './support/world-double.ts';

const reconciler = credentialProviderReconciler(parseReconcilerOptions({}));

function reconcile(spec: unknown): {
  readonly text: string;
  readonly problems: readonly string[];
  readonly status: string;
} {
  const objects = clusterObjects({ platform: 'AWS', pools: ['worker'] }).map((object) =>
    object.kind === 'CRIOCredentialProviderConfig' ? { ...object, spec } : object,
  );
  const result = reconciler.reconcile(worldOf(objects), { scope: 'local', name: 'cluster' });
  const [config] = (result.apply ?? []).flatMap((one) =>
    'object' in one && one.object.kind === 'MachineConfig' ? [one.object] : [],
  );
  return {
    text: config === undefined ? '' : [...filesOf(config).values()].join(),
    problems: (result.errors ?? []).map(
      ({ retryPolicy, code, message }) => `${retryPolicy} ${code} ${message}`,
    ),
    status: JSON.stringify(result.status),
  };
}

/** What is said of a list, and whether docker.io is rendered all the same. */
const BAD: Readonly<Record<string, readonly [matchImages: unknown, says: RegExp, isRendered?: false]>> = {
  'a text instead of a list': ['docker.io', /spec\.matchImages: .*must be a list/, false],
  'a number among the entries': [['docker.io', 5000], /spec\.matchImages\[1\]: .*must be a string/],
  'a dash without a value': [[null, 'docker.io'], /spec\.matchImages\[0\]: must not be null/],
  'upper case': [['docker.io', 'Quay.io'], /\[1\]: invalid value "Quay\.io": must be a host in lower case/],
  'a glob that the kubelet would take': [['docker.io', 'a[0-9].io'], /"a\[0-9\]\.io": must be a host/],
  'the same twice': [['docker.io', 'docker.io'], /spec\.matchImages: duplicate value: "docker\.io"/],
  'a thousand entries': [
    ['docker.io', ...Array.from({ length: 999 }, (_, at) => `r${at}.example.com`)],
    /too many: 1000: must have at most 50 items/,
  ],
};
const bad = Object.entries(BAD).map(([name, [matchImages, says, isRendered = true]]) => ({
  name,
  reason: 'the API server would refuse it',
  spec: { matchImages },
  says,
  isRendered,
}));
table(test, bad, ({ spec, says, isRendered }) => {
  const { text, problems, status } = reconcile(spec);
  assert.equal(problems.length, 1);
  assert.match(
    problems[0] ?? '',
    /^terminal RefusedByDefinition Cannot apply "CRIOCredentialProviderConfig\/cluster"/,
  );
  assert.match(problems[0] ?? '', says);
  assert.equal(text.includes('- docker.io'), isRendered);
  assert.match(status, /Invalid \\"spec\.matchImages(?:\[\d\])?\\": /);
});

test('any other spec is taken without a failure', () => {
  fc.assert(
    fc.property(fc.anything(), fc.array(fc.anything()), (spec, matchImages) => {
      assert.equal(typeof reconcile(spec).status, 'string');
      assert.equal(typeof reconcile({ matchImages }).status, 'string');
    }),
    { numRuns: 200 },
  );
});
