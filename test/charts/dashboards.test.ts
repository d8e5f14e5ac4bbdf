// needs: promtool
/** Dashboards: rendered on request, one for each system, and Prometheus accepts each query. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { allMetrics } from '../../build/reference/metrics.ts';
import { readSources } from '../../build/reference/source.ts';
import { readFleet, renderFleet, SYSTEMS } from '../../charts/mod.ts';
import { DASHBOARDS, legendOf } from '../../charts/shared/dashboards.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const panels = Object.entries(DASHBOARDS).flatMap(([system, list]) =>
  list.map((panel) => ({ system, ...panel, legend: legendOf(panel) })),
);

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly {
    readonly id: number;
    readonly gridPos: { readonly x: number; readonly y: number };
    readonly targets: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
  }[];
}

function rendered(dashboards: boolean): ReadonlyMap<string, Dashboard> {
  const fleet = readFleet({
    image: 'registry.example.com/pullwright:1',
    defaults: { dashboards },
    clusters: [
      {
        name: 'alone',
        systems: { 'global-pull-secret': {}, 'pull-secret-injection': { admission: 'policy' }, verify: {} },
      },
    ],
  });
  const maps = [...renderFleet(fleet).tree].filter(([path]) => path.includes('pullwright-dashboard-'));
  return new Map(
    maps.flatMap(([, text]) => {
      const { data, metadata } = parse(text) as {
        data: Readonly<Record<string, string>>;
        metadata: { labels: Readonly<Record<string, string>> };
      };
      assert.equal(metadata.labels['grafana_dashboard'], '1');
      return Object.entries(data).map(([name, json]): [string, Dashboard] => [
        name,
        JSON.parse(json) as Dashboard,
      ]);
    }),
  );
}

test('are not there unless they are asked for', () => {
  assert.equal(rendered(false).size, 0);
});

test('are those of what runs in the cluster, and of the reconciler', () => {
  const found = rendered(true);
  assert.deepEqual([...found.keys()].sort(), [
    'pullwright-global-pull-secret.json',
    'pullwright-pull-secret-injection.json',
    'pullwright-reconciler.json',
    'pullwright-verify.json',
  ]);
  for (const [name, { uid, panels: shown }] of found) {
    assert.equal(`${uid}.json`, name);
    assert.ok(shown.length > 0);
    assert.equal(new Set(shown.map(({ id }) => id)).size, shown.length);
    assert.equal(new Set(shown.map(({ gridPos }) => `${gridPos.x}/${gridPos.y}`)).size, shown.length);
    for (const { targets } of shown)
      assert.deepEqual(
        targets.map(({ datasource }) => datasource.uid),
        ['${datasource}'],
      );
  }
});

test('every system has one', () => {
  assert.deepEqual(
    SYSTEMS.map(({ name }) => name).filter((name) => DASHBOARDS[name] === undefined),
    [],
  );
});

test('every panel groups by labels that its metrics have, and names a series by them', async () => {
  const metrics = await allMetrics(readSources());
  for (const { system, title, expr, legend } of panels) {
    const named = metrics.filter(({ name }) => new RegExp(`\\b${name}(_bucket)?\\b`).test(expr));
    const labels = new Set(named.flatMap((metric) => metric.labels));
    // Samples whose labels are put together elsewhere are listed without them.
    if (named.length === 0 || labels.size === 0) continue;
    const by = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '));
    for (const label of by) assert.ok(label === 'le' || labels.has(label), `${system}, ${title}: ${label}`);
    for (const [, label = ''] of legend.matchAll(/\{\{(\w+)\}\}/g))
      assert.ok(by.includes(label), `${title}: ${label}`);
  }
});
test('every query is one that Prometheus takes', () => {
  const folder = tempFolder();
  const rules = panels.map(({ expr }, index) => ({ record: `panel:${index}`, expr }));
  writeFileSync(join(folder, 'rules.yaml'), stringify({ groups: [{ name: 'panels', rules }] }));
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', 'rules.yaml'], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(status, 0, `${stdout}${stderr}`);
  assert.match(stdout, new RegExp(`${rules.length} rules found`));
});
