/** Writes a verification into a cluster: a PullStatus about the CronJob, and events about Secrets whose credentials changed. */
import { hostname } from 'node:os';
import type { KubeClient } from '../../kube/client.ts';
import { EventRecorder } from '../../kube/events.ts';
import type { VerifyReport } from '../../rules/diagnose/verify-report.ts';
import { type VerifyEvent, verifyStatus } from '../../rules/diagnose/verify-status.ts';
import { describeError } from '../../rules/errors.ts';
import {
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatusName,
} from '../../rules/kubernetes/pull-status.ts';
import type { CommandIo } from '../command.ts';
import { type ClusterAccess, withClient } from '../object-source.ts';

export interface PublishOptions {
  /** The CronJob. */
  readonly namespace: string;
  readonly name: string;
  readonly problems: readonly string[];
  readonly warnDays: number;
  readonly cluster: ClusterAccess;
}

const MANAGER = 'pullwright-verify';

/**
 * Writes.
 *
 * @throws PullwrightError when the status cannot be written; an event that cannot be is said and passed over
 */
export async function reportToCluster(
  report: VerifyReport,
  { namespace, name, problems, warnDays, cluster }: PublishOptions,
  io: CommandIo,
): Promise<void> {
  await withClient(cluster, io, async (client) => {
    const about = { namespace, name };
    const present = await client.get({
      apiVersion: PULL_STATUS_API_VERSION,
      kind: PULL_STATUS_KIND,
      namespace,
      name: pullStatusName('CronJob', name),
    });
    const { object, status, events } = verifyStatus({ report, problems, warnDays, about, present });
    await client.apply(object, { manager: MANAGER, force: true });
    await client.apply({ ...object, status }, { manager: MANAGER, force: true, subresource: 'status' });
    for (const line of await tell(client, events, io)) io.stderr.write(`${line}\n`);
  });
}

async function tell(
  client: KubeClient,
  events: readonly VerifyEvent[],
  io: CommandIo,
): Promise<readonly string[]> {
  const recorder = new EventRecorder({
    client,
    controller: 'pullwright.dev/verify',
    instance: io.env['HOSTNAME'] ?? hostname(),
    now: Date.now,
  });
  const problems = new Set<string>();
  for (const { secret, type, reason, note } of events) {
    const regarding = { apiVersion: 'v1', kind: 'Secret', ...secret };
    await recorder.record({ regarding, type, reason, action: 'Verify', note }).catch((error: unknown) => {
      problems.add(describeError(error));
    });
  }
  return [...problems];
}
