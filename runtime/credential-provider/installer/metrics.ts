/** What is installed, for `/metrics` of the installer. */
import type { Gauge } from '../../node/metrics.ts';
import { readFailures } from './failures.ts';
import type { InstallPlan } from './plan.ts';
import { readRecord } from './record.ts';
import { type HostPlaces, recordFile } from './wanted.ts';

/** Beside what every program on a node counts. `reason`: that of the node's state. */
export function installerGauges(
  places: Pick<HostPlaces, 'root' | 'stateDir'> & { readonly authDir: string },
  plan: InstallPlan | undefined,
  reason: string,
): readonly Gauge[] {
  const record = readRecord(recordFile(places));
  const verdicts = plan?.ok === true ? plan.verdicts : [];
  const rendered = verdicts.filter(({ verdict }) => verdict === 'Rendered').length;
  const entries = 'Entries of CRIOCredentialProviderConfig/cluster, by what became of them';
  return [
    {
      sample: `pullwright_installer_state_info{reason="${reason}"}`,
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
      value: readFailures(places.root + places.authDir).length,
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
