import assert from 'node:assert/strict';
import {
  loadReconcilers,
  parseReconcileConfig,
  RECONCILERS,
} from '../../runtime/commands/reconcile/reconcilers.ts';
import { type Case, table, test } from '../support/suite.ts';

const ALL = Object.keys(RECONCILERS);

interface Row extends Case {
  readonly text: string;
  readonly runs?: readonly string[];
  readonly error?: RegExp;
}

const rows: readonly Row[] = [
  { name: 'nothing', reason: 'a person who tries it sees everything', text: '', runs: ALL },
  {
    name: 'only a kind',
    reason: 'the same',
    text: 'apiVersion: pullwright.dev/v1alpha1\nkind: ReconcileConfig\n',
    runs: ALL,
  },
  {
    name: 'one system',
    reason: 'a process must not read what its RBAC does not grant',
    text: 'systems: { global-pull-secret: {} }',
    runs: ['global-pull-secret'],
  },
  {
    name: 'switched off',
    reason: 'said aloud',
    text: 'systems: { global-pull-secret: {}, registry-overrides: false }',
    runs: ['global-pull-secret'],
  },
  { name: 'no system', reason: 'nothing to do is an answer', text: 'systems: {}', runs: [] },
  {
    name: 'a system for some hosted clusters',
    reason: 'it has rights for these alone',
    text: 'systems: { global-pull-secret: { only: [clusters/prod], mode: own } }',
    runs: ['global-pull-secret'],
  },
  {
    name: 'a text in place of the list of hosted clusters',
    reason: 'it would be taken for none',
    text: 'systems: { global-pull-secret: { only: clusters/prod } }',
    error: /systems\.global-pull-secret\.only: invalid value "clusters\/prod": must be a list/,
  },
  {
    name: 'a hosted cluster without its namespace',
    reason: 'it would match none',
    text: 'systems: { global-pull-secret: { only: [prod] } }',
    error: /only\.0: invalid value "prod": must be <namespace>\/<name> of a HostedCluster/,
  },
  {
    name: 'comments alone',
    reason: 'every system would run',
    text: '# systems: {}',
    error: /Cannot read the configuration: must not be null/,
  },
  { name: 'not YAML', reason: 'a broken ConfigMap', text: 'systems: {', error: /not valid YAML/ },
  {
    name: 'a list',
    reason: 'wrong shape',
    text: '- a',
    error: /Cannot read the configuration: invalid value of type list: must be an object/,
  },
  {
    name: 'three mistakes',
    reason: 'all at once',
    text: 'colour: red\nsystems: { nope: {}, global-pull-secret: 1 }',
    error:
      /systems\.global-pull-secret: invalid value 1: must be an object; systems\.nope: unknown field; must be one of .*; colour: unknown field/,
  },
];

table(test, rows, async (row) => {
  if (row.error !== undefined) {
    assert.throws(() => parseReconcileConfig(row.text), { name: 'UsageError', message: row.error });
    return;
  }
  const config = parseReconcileConfig(row.text);
  assert.deepEqual(
    ALL.filter((name) => (config[name] ?? false) !== false),
    row.runs,
  );
  const loaded = await loadReconcilers(config);
  assert.equal(loaded.length === 0, row.runs?.length === 0);
});

test('only is what the reconcilers of the system work on', async () => {
  const config = parseReconcileConfig(
    'systems: { global-pull-secret: { only: [clusters/prod] }, registry-overrides: {} }',
  );
  const found = await loadReconcilers(config);
  assert.deepEqual(
    found.map(({ name, only }) => [name, only === undefined ? 'all' : [...only]]),
    [
      ['global-pull-secret', ['clusters/prod']],
      ['registry-overrides', 'all'],
    ],
  );
});
