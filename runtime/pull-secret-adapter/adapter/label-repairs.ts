/**
 * Labels of Jobs that somebody changed, to what puts them back.
 *
 * What a Job is for stands in its template, which the API server lets nobody change; labels, which anybody with `patch` can
 * change, only select.
 */
import { jobLabels } from '../names.ts';
import type { Effect, Situation } from './situation.ts';

/** By their labels Jobs are found, and shown to people and policies. */
export function labelRepairs({ cluster, jobs }: Situation, effects: readonly Effect[]): readonly Effect[] {
  const leaving = new Set(effects.flatMap((effect) => (effect.do === 'remove-job' ? [effect.uid] : [])));
  return jobs
    .filter(({ removing, uid }) => !removing && !leaving.has(uid))
    .flatMap(({ name: job, uid: jobUid, purpose, labels: present }): readonly Effect[] => {
      const wanted = Object.entries(jobLabels(cluster, purpose));
      const labels = Object.fromEntries(wanted.filter(([key, value]) => present[key] !== value));
      return Object.keys(labels).length === 0 ? [] : [{ do: 'repair-labels', job, jobUid, labels }];
    });
}
