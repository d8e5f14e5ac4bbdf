/** `reconcile --dry-run` in a cluster: fills the caches, then reconciles over them as offline, and prints what would change. */
import type { Scope } from '../../controller/contract.ts';
import { runOffline } from '../../controller/offline.ts';
import { toYaml } from '../../kube/yaml.ts';
import { PullwrightError } from '../../rules/errors.ts';
import type { ExitCode } from '../command.ts';
import { type LiveRun, runReadiness, startWatching } from './live-run.ts';
import { type RunReport, renderRunReport, reportOf, reportsJson } from './report.ts';

/** A cluster that does not answer within this time has failed. */
const PATIENCE_MS = 30_000;

export async function dryRunLive(run: LiveRun): Promise<ExitCode> {
  startWatching(run);
  const waiting = await filled(run);
  const { scopes } = run.manager;
  const readable = scopes.filter(({ name }) => run.manager.waitingFor(name) === undefined);
  const reports = readable.map((scope) => reportFor(run, scope));
  print(run, reports);
  await run.discovery?.stop();
  await run.manager.stop();
  if (waiting !== undefined)
    throw new PullwrightError(`Cannot read everything within ${PATIENCE_MS / 1000} s: ${waiting}`, {
      code: 'CachesNotFilled',
    });
  return reports.some(({ problems }) => problems.length > 0) ? 1 : 0;
}

/** Waits for every cluster; what is still missing at the end. */
async function filled(run: LiveRun): Promise<string | undefined> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const waiting = missing(run);
    if (waiting === undefined || performance.now() > deadline || run.io.signal.aborted) return waiting;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function missing(run: LiveRun): string | undefined {
  const first = runReadiness(run) ?? run.discovery?.unopened;
  if (first !== undefined) return first;
  return run.manager.scopes
    .map(({ name }) => run.manager.waitingFor(name))
    .find((text) => text !== undefined);
}

function reportFor(run: LiveRun, scope: Scope): RunReport {
  const clusters = run.manager.clustersOf(scope.name);
  const stores = { hosted: clusters.hosted.cache.store, management: clusters.management.cache.store };
  const { reconcilers } = run;
  return reportOf(scope.name, runOffline({ reconcilers, scope, stores, now: new Date() }));
}

function print(run: LiveRun, reports: readonly RunReport[]): void {
  const { output, verbose } = run.settings;
  if (output === 'json') run.io.stdout.write(reportsJson(reports));
  else if (output === 'yaml') run.io.stdout.write(toYaml(JSON.parse(reportsJson(reports))));
  else for (const report of reports) run.io.stdout.write(renderRunReport(report, { verbose, dryRun: true }));
}
