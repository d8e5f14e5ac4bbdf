/** The report as a page of the reconciler, where a port is given for it. */

import { join } from 'node:path';
import { toYaml } from '../../kube/yaml.ts';
import { Gate } from '../../reports/gate.ts';
import { LatestReport } from '../../reports/latest.ts';
import { type ReportServer, serveReport } from '../../reports/server.ts';
import { reportHtml } from '../../rules/report/html.ts';
import { makeReport } from '../../rules/report/report.ts';
import type { Report } from '../../rules/report/types.ts';
import { tenantView } from '../../rules/report-page/tenant-view.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import { gatherBounded } from '../report/gather.ts';
import type { LiveRun } from './live-run.ts';
import type { ReportSettings } from './live-settings.ts';

/** What the cluster may answer for one report. Objects take several times as much in memory for as long as it is made. */
const MOST_BYTES = 48 * 1024 * 1024;

/** What the cluster is called, which does not know its own name. */
const CLUSTER = 'cluster';

/** Listens. @throws PullwrightError `CertificateUnusable` */
export async function startReport(
  { main: { client }, log, metrics }: Pick<LiveRun, 'main' | 'log' | 'metrics'>,
  { port, certificates, everyMs }: ReportSettings,
): Promise<ReportServer> {
  const now = (): number => performance.now();
  const latest = new LatestReport({
    everyMs,
    now,
    make: async () => {
      const found = await gatherBounded(client, CLUSTER, MOST_BYTES);
      return makeReport({
        ...found,
        now: new Date(),
        source: 'the cluster that this page is served in',
        toYaml: (object) => toYaml(object, { lineWidth: 0 }),
      });
    },
    render: (report, form, namespace) => {
      const shown: Report = namespace === undefined ? report : tenantView(report, namespace);
      return form === 'html' ? reportHtml(shown) : jsonText<Report>(shown);
    },
  });
  const server = await serveReport({
    port,
    files: { certificate: join(certificates, 'tls.crt'), key: join(certificates, 'tls.key') },
    gate: new Gate({ client, log, now }),
    latest,
    log,
    metrics,
  });
  log.info('listening', { serves: 'report', port: server.port });
  return server;
}
