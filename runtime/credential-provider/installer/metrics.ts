/** `/metrics` of the installer: what happens to the node, as every node task counts it, and what is installed. */
import type { NodeEvent, NodeState } from '../../node/events.ts';
import { oldestAuthFileMs } from '../../node/janitor.ts';
import { authFileAge, type Gauge, NodeMetrics } from '../../node/metrics.ts';
import { readFailures } from './failures.ts';
import type { InstallPlan } from './plan.ts';
import { readRecord } from './record.ts';
import { type HostPlaces, recordFile } from './wanted.ts';

export interface InstallerMetricsOptions extends HostPlaces {
  /** Where CRI-O looks for auth files, on the host. */
  readonly authDir: string;
}

export class InstallerMetrics {
  readonly #options: InstallerMetricsOptions;
  readonly #node: NodeMetrics;
  #reason = 'Starting';

  /** `now`: milliseconds since 1970. */
  constructor(options: InstallerMetricsOptions, now: number) {
    this.#options = options;
    this.#node = new NodeMetrics(now, 'pullwright_installer');
  }

  event(event: NodeEvent): void {
    this.#node.event(event);
  }

  state(state: NodeState, now: number): void {
    this.#reason = state.reason;
    this.#node.state(state, now);
  }

  /** The page for a scrape. */
  text(plan: InstallPlan | undefined, now: number): string {
    const folder = this.#options.root + this.#options.authDir;
    return this.#node.text([...this.#gauges(plan), authFileAge(oldestAuthFileMs(folder, now))]);
  }

  #gauges(plan: InstallPlan | undefined): readonly Gauge[] {
    const record = readRecord(recordFile(this.#options));
    const verdicts = plan?.ok === true ? plan.verdicts : [];
    const rendered = verdicts.filter(({ verdict }) => verdict === 'Rendered').length;
    const entries = 'Entries of CRIOCredentialProviderConfig/cluster, by what became of them';
    return [
      {
        sample: `pullwright_installer_state_info{reason="${this.#reason}"}`,
        help: 'Last result, as in /readyz',
        value: 1,
      },
      { sample: 'pullwright_installer_entries{verdict="rendered"}', help: entries, value: rendered },
      {
        sample: 'pullwright_installer_entries{verdict="left_out"}',
        help: entries,
        value: verdicts.length - rendered,
      },
      {
        sample: 'pullwright_installer_failing_accounts',
        help: 'ServiceAccounts for whose pods the last run of the provider failed; the node itself counts as one',
        value: readFailures(this.#options.root + this.#options.authDir).length,
      },
      ...(record === undefined
        ? []
        : [
            {
              sample: `pullwright_installer_executable_info{version="${record.version}",sha256="${record.sha256}"}`,
              help: 'The executable that was copied to the node',
              value: 1,
            },
          ]),
    ];
  }
}
