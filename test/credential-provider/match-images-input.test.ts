/** `spec.matchImages` of any shape, offline: what is refused is named, and the good entries are rendered all the same. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseReconcilerOptions } from '../../runtime/credential-provider/options.ts';
import { credentialProviderReconciler } from '../../runtime/credential-provider/reconciler/reconcile.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { filesOf } from './support/machine-config-files.ts';
import { clusterObjects, worldOf } from './support/world-double.ts';

const test = suite('matchImages of a folder');
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

interface Bad extends Case {
  readonly spec: unknown;
  readonly says: RegExp;
  /** Whether docker.io is rendered all the same. */
  readonly isRendered: boolean;
}
const bad: readonly Bad[] = [
  {
    name: 'a text instead of a list',
    reason: 'a dash was forgotten',
    spec: { matchImages: 'docker.io' },
    says: /spec\.matchImages: .*must be a list/,
    isRendered: false,
  },
  {
    name: 'a number among the entries',
    reason: 'YAML takes 5000 for a number',
    spec: { matchImages: ['docker.io', 5000] },
    says: /spec\.matchImages\[1\]: .*must be a string/,
    isRendered: true,
  },
  {
    name: 'an empty entry',
    reason: 'a dash without a value is null',
    spec: { matchImages: [null, 'docker.io'] },
    says: /spec\.matchImages\[0\]: must not be null/,
    isRendered: true,
  },
  {
    name: 'upper case',
    reason: 'the definition takes lower case only',
    spec: { matchImages: ['docker.io', 'Quay.io'] },
    says: /\[1\]: invalid value "Quay\.io": must be a host in lower case/,
    isRendered: true,
  },
  {
    name: 'a bracket glob',
    reason: 'the kubelet would take it, the definition does not',
    spec: { matchImages: ['docker.io', 'a[0-9].io'] },
    says: /"a\[0-9\]\.io": must be a host/,
    isRendered: true,
  },
  {
    name: 'the same twice',
    reason: 'the list is a set',
    spec: { matchImages: ['docker.io', 'docker.io'] },
    says: /spec\.matchImages: duplicate value: "docker\.io"/,
    isRendered: true,
  },
  {
    name: 'a thousand entries',
    reason: 'fifty are allowed',
    spec: { matchImages: ['docker.io', ...Array.from({ length: 999 }, (_, at) => `r${at}.example.com`)] },
    says: /too many: 1000: must have at most 50 items/,
    isRendered: true,
  },
];
table(test, bad, ({ spec, says, isRendered }) => {
  const { text, problems, status } = reconcile(spec);
  assert.equal(problems.length, 1);
  assert.match(
    problems[0] ?? '',
    /^terminal RefusedByDefinition Cannot apply "CRIOCredentialProviderConfig\/cluster"/,
  );
  assert.match(problems[0] ?? '', says);
  assert.equal(text.includes('- docker.io'), isRendered);
  assert.match(status, /"Validated"/);
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

test.run();
