/** Each rendered object equals the output of its kind's L1 class: no field is missing, misspelt or of another type. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { k8s } from 'cdk8s-plus-28';
import { parseAllDocuments } from 'yaml';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;

interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const L1 = k8s as unknown as Readonly<Record<string, { manifest?(props: unknown): unknown } | undefined>>;

/** Kinds that cdk8s-plus-28 has in an older version of the API only, or whose schema is JSON. */
const NOT_COMPARED = new Set([
  'CustomResourceDefinition',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
]);
const SPELLED: Readonly<Record<string, string>> = {
  hostPID: 'hostPid',
  hostIPC: 'hostIpc',
  clusterIP: 'clusterIp',
  nonResourceURLs: 'nonResourceUrLs',
};

/** An L1 class takes `IntOrString` and `Quantity` by their `value`; a boxed leaf is both, and JSON unboxes it again. */
function boxed(value: unknown): unknown {
  if (typeof value === 'string') return Object.assign(Object(value) as object, { value });
  if (typeof value === 'number') return Object.assign(Object(value) as object, { value });
  if (Array.isArray(value)) return value.map(boxed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [SPELLED[key] ?? key, boxed(item)]));
}

function throughL1(object: Rendered): unknown {
  const { apiVersion: _apiVersion, kind, ...fields } = object;
  const manifest = L1[`Kube${kind}`]?.manifest?.(boxed(fields));
  return JSON.parse(JSON.stringify(manifest)) as unknown;
}

const files = globSync(['dist/manifests/**/*.yaml', 'test/golden/charts/**/*.yaml'], { cwd: root });
const objects = files.flatMap((file) =>
  parseAllDocuments(readFileSync(join(root, file), 'utf8'))
    .map((document) => document.toJS() as Rendered | null)
    .filter((object) => object?.kind !== undefined && L1[`Kube${object.kind}`]?.manifest !== undefined)
    .map((object) => ({ file, object: object as Rendered })),
);

test('objects of every kind of workload are compared', () => {
  const kinds = new Set(objects.map(({ object }) => object.kind));
  for (const kind of ['DaemonSet', 'Deployment', 'CronJob', 'NetworkPolicy', 'ClusterRole', 'Service'])
    assert.ok(kinds.has(kind), kind);
});

test('a misspelt field is found', () => {
  const wrong = {
    ...meta('v1 Service', { name: 'a' }),
    spec: { port: [{ port: 443 }], ports: [{ port: 443, targetPort: 'https' }] },
  };
  assert.notDeepEqual(throughL1(wrong), wrong);
  const right = { ...wrong, spec: { ports: [{ port: 443, targetPort: 'https' }] } };
  assert.deepEqual(throughL1(right), right);
});

for (const { file, object } of objects.filter(({ object: { kind } }) => !NOT_COMPARED.has(kind)))
  test(`${file}: ${object.kind}/${object.metadata.name}`, () => assert.deepEqual(throughL1(object), object));
