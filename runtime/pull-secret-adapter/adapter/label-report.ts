/** Tells of labels of a Job that somebody changed and the adapter put back: in the log, by an Event on the Job, by a counter. */

import type { KubeClient } from '../../kube/client.ts';
import { EventRecorder } from '../../kube/events.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { EffectContext } from './effects.ts';

/** Makes the reporter of one process. */
export function labelReporter(process: {
  readonly kube: KubeClient;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly instance: string;
  readonly settings: { readonly namespace: string };
}): NonNullable<EffectContext['onRepair']> {
  const { kube, logger, metrics, instance, settings } = process;
  const events = new EventRecorder({
    client: kube,
    controller: 'pullwright.dev/pull-secret-adapter',
    instance,
    now: () => Date.now(),
  });
  return ({ name, uid }, labels) => {
    logger.warn('labels of a Job were put back', { job: name, labels });
    metrics.count({
      name: 'pullwright_adapter_repairs_total',
      help: 'What somebody changed by hand and the adapter put back',
      labels: { what: 'job-labels' },
    });
    events
      .record({
        regarding: { apiVersion: 'batch/v1', kind: 'Job', namespace: settings.namespace, name, uid },
        type: 'Warning',
        reason: 'LabelsPutBack',
        action: 'Repair',
        note: `Changed by somebody and put back: ${labels.join(', ')}. By them the Job is found; it goes on as it was`,
      })
      // A courtesy: the log has said it.
      .catch(() => undefined);
  };
}
