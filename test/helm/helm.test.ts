// deadline: 300 s
// needs: Helm
/** The chart: what Helm makes of it, with its defaults, other values and each system off, is what `synth` renders for such a fleet. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { type FleetInput, readFleet, renderChart, renderCluster, writeTree } from '../../charts/mod.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { helmProgram } from './build.ts';

type Cluster = FleetInput['clusters'][number];
type Objects = ReadonlyMap<string, unknown>;

const IMAGE = 'registry.example.com/team/pullwright:1.2.3';
const adapter = {
  api: 'https://api.example.com',
  jobGoogleServiceAccount: 'job@project.iam.gserviceaccount.com',
};
const everywhere = {
  'global-pull-secret': {},
  'registry-overrides': {},
  'pull-secret-adapter': adapter,
  verify: {},
};
const standalone = { ...everywhere, 'pull-secret-injection': {}, 'credential-provider': {} };
const CLUSTERS: readonly Cluster[] = [
  { name: 'plain', systems: { 'global-pull-secret': { createConfigNamespace: true } } },
  { name: 'standalone', delivery: 'reconciler', monitoring: true, dashboards: true, systems: standalone },
  { name: 'management', kind: 'management', discovery: true, monitoring: true, systems: everywhere },
];
const helm = await helmProgram();
const work = tempFolder();
const template = async (chart: string, values: object, namespace = 'releases'): Promise<Objects> => {
  const file = join(work, 'values.json');
  writeFileSync(file, JSON.stringify(values));
  const ran = await runProcess(
    [helm, 'template', 'release', chart, '--namespace', namespace, '--values', file],
    { cwd: work },
  );
  assert.equal(ran.code, 0, ran.stderr);
  const found = parseAllDocuments(ran.stdout).map((document) => document.toJS() as KubeObject | null);
  return byName(found.filter((object) => object !== null));
};
for (const cluster of CLUSTERS) {
  const { name, systems = {} } = cluster;
  writeTree(join(work, name), renderChart(readFleet({ image: IMAGE, clusters: [cluster] })));

  test(`${name}: Helm finds nothing to complain of`, async () => {
    const { code, stdout } = await runProcess([helm, 'lint', '--strict', name], { cwd: work });
    assert.equal(code, 0, stdout);
  });

  test(`${name}: the defaults`, async () => {
    assert.deepEqual(await template(name, {}), synth({ image: IMAGE, clusters: [cluster] }));
  });

  test(`${name}: another image by its digest, with pull secrets`, async () => {
    const values = {
      image: `registry.example.com/p@sha256:${'a'.repeat(64)}`,
      imagePullSecrets: ['a', 'b'],
    };
    assert.deepEqual(await template(name, values), synth({ ...values, clusters: [cluster] }));
  });

  for (const off of Object.keys(systems))
    test(`${name}: without ${off}`, async () => {
      const less = { ...cluster, systems: { ...systems, [off]: false } };
      const found = await template(name, { systems: { [off]: false } });
      assert.deepEqual(found, synth({ image: IMAGE, clusters: [less] }));
    });
}

test('replicas, resources and options of the reconciler; and the Namespace of the release is left to Helm', async () => {
  const values = {
    replicas: 3,
    resources: { limits: { memory: '1Gi' } },
    config: { verify: { namespace: 'other' } },
  };
  const found = await template('standalone', values, 'pullwright-system');
  const text = JSON.stringify([...found.values()]);
  assert.match(text, /"replicas":3,/);
  assert.match(text, /"limits":\{"memory":"1Gi"\}/);
  assert.match(text, /"verify":\{"namespace":"other"\}/);
  assert.ok(!found.has('Namespace//pullwright-system'));
});

/** Objects that `synth` renders, without CRDs, with the annotation that a chart adds. */
function synth(input: FleetInput): Objects {
  const fleet = readFleet(input);
  const objects = fleet.clusters.flatMap((cluster) => renderCluster(fleet, cluster).objects);
  const annotations = { 'helm.sh/resource-policy': 'keep' };
  return byName(
    objects
      .filter(({ kind }) => kind !== 'CustomResourceDefinition')
      .map((object) =>
        object.kind === 'Namespace'
          ? {
              ...object,
              metadata: {
                ...object.metadata,
                annotations: { ...object.metadata.annotations, ...annotations },
              },
            }
          : object,
      ),
  );
}

/** By name, with the reconciler's configuration read: Helm writes YAML in another form, whose digest differs. */
function byName(objects: readonly KubeObject[]): Objects {
  const plain = objects.map((object): [string, unknown] => {
    const { kind, metadata } = object;
    const text = JSON.stringify(object, (key, value: unknown) => {
      if (key === 'pullwright.dev/config') return /^[0-9a-f]{16}$/.test(String(value));
      return key === 'config.yaml' ? parse(String(value)) : value;
    });
    return [`${kind}/${metadata.namespace ?? ''}/${metadata.name}`, JSON.parse(text)];
  });
  return new Map(plain.sort(([a], [b]) => (a < b ? -1 : 1)));
}
