import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type {
  ClusterPair,
  Reader,
  Reconciler,
  Ref,
  Request,
  Result,
  Role,
} from '../../runtime/engine/contract.ts';
import { folderOf } from '../../runtime/engine/offline/manifests.ts';
import { runOffline } from '../../runtime/engine/offline/offline.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';

const SCOPE: ClusterPair = { name: 'local', controlPlaneNamespace: 'openshift-config' };
const NOW = new Date(0);

const configMap = (
  name: string,
  data: Record<string, string> = {},
  metadata: Partial<KubeObject['metadata']> = {},
): KubeObject => ({ ...meta('v1 ConfigMap', { name, namespace: 'ns', ...metadata }), data });

const ref = (name: string, role: Role = 'hosted'): Ref => ({
  role,
  apiVersion: 'v1',
  kind: 'ConfigMap',
  namespace: 'ns',
  name,
});

function storeOf(objects: readonly KubeObject[]): ObjectStore {
  const store = new ObjectStore();
  for (const object of objects) store.set(object);
  return store;
}

function reconciler(
  name: string,
  reconcile: (reader: Reader, key: Request) => Result,
  reads: Reconciler['watches'] = [{ role: 'hosted', apiVersion: 'v1', kind: 'ConfigMap' }],
): Reconciler {
  return { name, watches: reads, requestsFor: () => [{ scope: 'local', name }], reconcile };
}

function run(reconcilers: readonly Reconciler[], objects: readonly KubeObject[]) {
  const store = storeOf(objects);
  const result = runOffline({
    reconcilers,
    scope: SCOPE,
    stores: { hosted: store, management: store },
    now: NOW,
  });
  return { store, result, verbs: result.objects.map((one) => `${one.verb} ${one.ref.name}`) };
}

/** Copies `source` to `source-copy` while it is there. */
const copier = reconciler('copier', (reader) => {
  const source = reader.get(ref('source'));
  return source === undefined
    ? {}
    : {
        apply: [
          { role: 'hosted', object: configMap('source-copy', source['data'] as Record<string, string>) },
        ],
      };
});

test('creates what is missing, and a second run changes nothing', () => {
  const first = run([copier], [configMap('source', { a: '1' })]);
  assert.deepEqual(first.verbs, ['created source-copy']);
  const again = run([copier], [...first.store]);
  assert.deepEqual(again.verbs, ['unchanged source-copy']);
});

test('marks what it makes', () => {
  const { store } = run([copier], [configMap('source')]);
  assert.deepEqual(store.get(ref('source-copy'))?.metadata.labels, {
    'app.kubernetes.io/managed-by': 'pullwright',
    'pullwright.dev/owner': 'copier',
  });
  assert.equal(store.get(ref('source-copy'))?.metadata.annotations?.['pullwright.dev/key'], 'local||copier');
});

test('prunes what it made and no longer wants', () => {
  const { store } = run([copier], [configMap('source')]);
  store.delete(ref('source'));
  assert.deepEqual(run([copier], [...store, configMap('other')]).verbs, ['removed source-copy']);
});

test('keeps what it made when the outcome says so', () => {
  const { store } = run([copier], [configMap('source')]);
  store.delete(ref('source'));
  const keeper = reconciler('copier', () => ({ retain: [ref('source-copy')] }));
  assert.deepEqual(run([keeper], [...store]).verbs, []);
});

test('never touches an object of the same name that another owner created', () => {
  const { result, store } = run(
    [copier],
    [configMap('source', { a: '1' }), configMap('source-copy', { mine: 'yes' })],
  );
  assert.deepEqual(store.get(ref('source-copy'))?.['data'], { mine: 'yes' });
  assert.deepEqual(
    result.reports[0]?.problems.map((problem) => [problem.code, problem.retryPolicy]),
    [['ForeignObject', 'terminal']],
  );
  assert.match(result.reports[0]?.problems[0]?.message ?? '', /ConfigMap\/ns\/source-copy/);
});

test('adopts when told so', () => {
  const adopter = reconciler('a', () => ({
    apply: [{ role: 'hosted', object: configMap('x', { k: 'v' }), forceOwnership: true }],
  }));
  assert.deepEqual(run([adopter], [configMap('x', { k: 'old', other: 'stays' })]).verbs, ['configured x']);
});

test('lets one reconciler see what another made', () => {
  const second = reconciler('second', (reader) =>
    reader.get(ref('source-copy')) === undefined
      ? {}
      : { apply: [{ role: 'hosted', object: configMap('end') }] },
  );
  assert.deepEqual(run([second, copier], [configMap('source')]).verbs, [
    'created end',
    'created source-copy',
  ]);
});

test('hides what no read covers', () => {
  const blind = reconciler(
    'blind',
    (reader) =>
      reader.get(ref('source')) === undefined
        ? {}
        : { apply: [{ role: 'hosted', object: configMap('seen') }] },
    [{ role: 'hosted', apiVersion: 'v1', kind: 'ConfigMap', name: 'elsewhere' }],
  );
  assert.deepEqual(run([blind], [configMap('source'), configMap('elsewhere')]).verbs, []);
});

test('a loop that does not settle is an error that names the two objects', () => {
  const follow = (name: string, from: string, to: string): Reconciler =>
    reconciler(name, (reader) => {
      const seen = Number((reader.get(ref(from))?.['data'] as { n?: string } | undefined)?.n ?? 0);
      return { apply: [{ role: 'hosted', object: configMap(to, { n: String(seen + 1) }) }] };
    });
  assert.throws(() => run([follow('left', 'b', 'a'), follow('right', 'a', 'b')], [configMap('start')]), {
    code: 'NotSettling',
    message: /"ConfigMap\/ns\/[ab]" and "ConfigMap\/ns\/[ab]" change in each of/,
  });
});

test('a part never creates, and is given up when it is no longer wanted', () => {
  const labelled = (wanted: boolean): Reconciler =>
    reconciler('labeller', (reader) => {
      const target = reader.get(ref('source'));
      const part = { ...ref('source'), uid: target?.metadata.uid ?? 'gone' };
      return { apply: [{ part, fields: wanted ? { metadata: { labels: { ours: '1' } } } : {} }] };
    });
  const { store } = run([labelled(true)], [configMap('source', {}, { uid: 'u1', labels: { theirs: '1' } })]);
  assert.deepEqual(store.get(ref('source'))?.metadata.labels, { theirs: '1', ours: '1' });
  const after = run([labelled(false)], [...store]);
  assert.deepEqual(after.store.get(ref('source'))?.metadata.labels, { theirs: '1' });
  const missing = run([labelled(true)], [configMap('other')]);
  assert.deepEqual(missing.verbs, []);
  assert.equal(missing.result.reports[0]?.problems[0]?.code, 'Gone');
});

test('an object that is being deleted is waited for', () => {
  const { result, verbs } = run(
    [copier],
    [configMap('source'), configMap('source-copy', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' })],
  );
  assert.deepEqual(verbs, []);
  assert.equal(result.reports[0]?.problems[0]?.retryPolicy, 'waiting');
});

test('a dump that holds an object twice is refused with both places', () => {
  const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n';
  const folder = folderOf([
    { file: 'one.yaml', text },
    { file: 'two.yaml', text: `# x\n${text}` },
  ]);
  assert.deepEqual(folder.problems, [
    {
      file: 'two.yaml',
      line: 1,
      message: 'ConfigMap/a is duplicated: first at one.yaml:1',
      first: { file: 'one.yaml', line: 1 },
    },
  ]);
});
