/**
 * `synth` of 1, 100 and 1,000 clusters of 25 objects, files written, beside cdk8s' own `App.synth()` with one App for all of
 * them and the same objects. Every cluster has an image and a namespace of its own, so that little is the same twice.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Chart } from 'cdk8s';
import { ObjectGroup, readFleet, renderCluster, renderFleet, writeTree } from '../charts/mod.ts';
import { runProcess } from '../test/support/process.ts';
import { ms, printTable, type Row, ratio, spread } from './measure.ts';

function fleetOf(count: number): unknown {
  return {
    image: 'registry.example.com/pullwright:0.1.0',
    defaults: { systems: { 'global-pull-secret': { createConfigNamespace: true } } },
    clusters: Array.from({ length: count }, (_, index) => ({
      name: `cluster-${index}`,
      namespace: `pullwright-${index}`,
      image: `mirror-${index}.example.com/pullwright:0.1.0`,
    })),
  };
}

/** In memory where there is such a file system: a disk that is busy with something else would be what is measured. */
const scratch = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

function inScratch<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(scratch, 'pullwright-bench-'));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function ours(count: number): number {
  return inScratch((folder) => {
    const started = performance.now();
    writeTree(folder, renderFleet(readFleet(fleetOf(count))).tree);
    return performance.now() - started;
  });
}

function plain(count: number): number {
  const fleet = readFleet(fleetOf(count));
  const objects = fleet.clusters.map((cluster) => renderCluster(fleet, cluster).objects);
  return inScratch((outdir) => {
    const started = performance.now();
    const app = new App({ outdir });
    for (const [index, of] of objects.entries())
      new ObjectGroup(new Chart(app, `cluster-${index}`), 'all', of);
    app.synth();
    return performance.now() - started;
  });
}

/** The child measures memory: what it peaked at, with nothing else in the process. */
if (process.argv.includes('--child')) {
  ours(Number(process.argv.at(-1)));
  process.stdout.write(`${process.resourceUsage().maxRSS / 1024}\n`);
} else {
  const rows: Row[] = [];
  let before = 0;
  for (const count of [1, 100, 1000]) {
    const rounds = Array.from({ length: count === 1000 ? 3 : 7 }, () => ({
      ours: ours(count),
      plain: plain(count),
    }));
    const median = (name: 'ours' | 'plain'): number => spread(rounds.map((round) => round[name])).median;
    const child = await runProcess([process.execPath, import.meta.filename, '--child', String(count)]);
    rows.push({
      clusters: count,
      'synth ms': ms(median('ours')),
      'per cluster ms': ms(median('ours') / count),
      'growth from the row above': before === 0 ? '' : ratio(median('ours'), before),
      'App.synth() ms': ms(median('plain')),
      'synth / App.synth()': ratio(median('ours'), median('plain')),
      'peak MiB': Math.round(Number(child.stdout)),
    });
    before = median('ours');
  }
  printTable('synth: read, check, render and write a fleet', rows);
}
