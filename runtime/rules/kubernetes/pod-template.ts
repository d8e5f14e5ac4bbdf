/** Containers of what has a template of pods, as a cluster or a folder has them: of a folder nobody has judged the types. */
import { isRecord, recordOf } from '../record.ts';
import type { KubeObject } from './object.ts';

/**
 * The containers of the template; none where there is no such list.
 *
 * @example
 * ```ts
 * import { templateContainers } from './pod-template.ts';
 * import assert from 'node:assert/strict';
 *
 * const metadata = { name: 'a' };
 * const spec = { template: { spec: { containers: [{ name: 'a' }, null] } } };
 * assert.deepEqual(templateContainers({ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata, spec }), [{ name: 'a' }]);
 * ```
 */
export function templateContainers({ spec }: KubeObject): readonly Readonly<Record<string, unknown>>[] {
  const { containers } = recordOf(recordOf(recordOf(spec)['template'])['spec']);
  return Array.isArray(containers) ? containers.filter(isRecord) : [];
}

/** Whether the agents that a DaemonSet starts report: by the flag of their program. */
export function startsReporting(daemonSet: KubeObject): boolean {
  return templateContainers(daemonSet).some(
    ({ command }) => Array.isArray(command) && command.includes('--report'),
  );
}
