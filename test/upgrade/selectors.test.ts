/** Selectors cannot be changed in place: an upgrade would fail with "field is immutable". They stay as first stored. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;
const FOLDERS = ['test/golden', 'dist/manifests'];
const FIXTURE = join(root, 'test/upgrade/fixtures/selectors.json');

interface Workload {
  readonly kind?: string;
  readonly metadata?: { readonly name: string };
  readonly spec?: { readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> } };
}

/** Selectors by kind and name. */
function found(): ReadonlyMap<string, ReadonlySet<string>> {
  const selectors = new Map<string, Set<string>>();
  for (const { kind, metadata, spec } of FOLDERS.flatMap(workloads)) {
    const name = `${kind}/${metadata?.name}`;
    const known = selectors.get(name) ?? new Set();
    selectors.set(name, known.add(JSON.stringify(spec?.selector)));
  }
  return selectors;
}

function workloads(folder: string): readonly Workload[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((entry) => entry.endsWith('.yaml'))
    .flatMap((entry) => parseAllDocuments(readFileSync(join(root, folder, entry), 'utf8')))
    .flatMap((document): readonly Workload[] => {
      const workload = document.toJS() as Workload | null;
      const isOne = /^(Deployment|DaemonSet)$/.test(workload?.kind ?? '');
      return workload !== null && isOne && workload.spec?.selector !== undefined ? [workload] : [];
    });
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
