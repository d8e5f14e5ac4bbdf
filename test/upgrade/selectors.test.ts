/** Selectors cannot be changed in place: whoever upgrades would read "field is immutable". They stay as they were first stored. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { suite } from '../support/suite.ts';

const test = suite('selectors of rendered workloads');
const root = new URL('../..', import.meta.url).pathname;
const FOLDERS = ['test/golden', 'dist/manifests'];
const FIXTURE = join(root, 'test/upgrade/fixtures/selectors.json');

interface Workload {
  readonly kind?: string;
  readonly metadata?: { readonly name: string };
  readonly spec?: { readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> } };
}

function found(): ReadonlyMap<string, ReadonlySet<string>> {
  const selectors = new Map<string, Set<string>>();
  for (const folder of FOLDERS)
    for (const entry of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
      if (!entry.endsWith('.yaml')) continue;
      for (const document of parseAllDocuments(readFileSync(join(root, folder, entry), 'utf8'))) {
        const workload = document.toJS() as Workload | null;
        if (workload?.kind !== 'Deployment' && workload?.kind !== 'DaemonSet') continue;
        if (workload.spec?.selector === undefined) continue;
        const name = `${workload.kind}/${workload.metadata?.name}`;
        const known = selectors.get(name) ?? new Set();
        selectors.set(name, known.add(JSON.stringify(workload.spec.selector)));
      }
    }
  return selectors;
}

test('are those of the version that was first stored', () => {
  const stored = JSON.parse(readFileSync(FIXTURE, 'utf8')) as Readonly<Record<string, unknown>>;
  const now = found();
  assert.ok(now.size >= 4, 'workloads are rendered');
  for (const [name, selectors] of now) {
    assert.ok(Object.hasOwn(stored, name), `${name} is new: add its selector to ${FIXTURE}, for good`);
    assert.deepEqual(
      [...selectors].map((one) => JSON.parse(one)),
      [stored[name]],
      name,
    );
  }
});

test.run();
