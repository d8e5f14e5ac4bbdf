/** Which workloads and pods of a cluster are examined: each workload once, and of the pods that fail alike one. */
import type { ObjectStore } from '../../controller/store.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { recordOf } from '../../rules/record.ts';
import { failureIn, runs } from '../doctor/complaint.ts';
import { imagesOf, podSpecIn } from '../pod-spec.ts';
import { rootOf, WORKLOAD_KINDS } from '../root-owner.ts';

/** One that is examined, and the pods that it stands for. */
export interface ChosenPod {
  readonly object: KubeObject;
  readonly pods: number;
}

/**
 * What fails to pull: of the pods of a workload that fail alike on one node one, which stands for them, and templates that have no
 * pod although some are wanted.
 *
 * @param namespace the one that is looked at; all where it is undefined
 */
export function failingPods(store: ObjectStore, namespace?: string): readonly ChosenPod[] {
  return [...familiesIn(store, namespace).values()].flatMap(({ template, pods }): readonly ChosenPod[] => {
    if (pods.length === 0)
      return template === undefined || isIdle(template) || isRunning(template)
        ? []
        : [{ object: template, pods: 0 }];
    const alike = new Map<string, ChosenPod>();
    for (const pod of pods) {
      const failure = failureIn(store, pod);
      if (failure === undefined) continue;
      const id = JSON.stringify([podSpecIn(pod)['nodeName'], failure.cause, failure.host, failure.image]);
      const before = alike.get(id);
      alike.set(id, { object: before?.object ?? pod, pods: (before?.pods ?? 0) + 1 });
    }
    return [...alike.values()];
  });
}

/** A workload that wants no pod now, or that makes them at its own times. */
function isIdle({ kind, spec, status }: KubeObject): boolean {
  if (kind === 'CronJob') return true;
  if (kind === 'Job') return recordOf(status)['completionTime'] !== undefined;
  if (kind === 'DaemonSet') return recordOf(status)['desiredNumberScheduled'] === 0;
  return recordOf(spec)['replicas'] === 0;
}

interface Family {
  readonly template?: KubeObject;
  readonly pods: KubeObject[];
}

/**
 * A workload stands for its pods, since they can be made anew; a pod that does not run comes beside it, because only it has what
 * the kubelet says.
 */
export function chosenPods(store: ObjectStore): readonly ChosenPod[] {
  return [...familiesIn(store).values()].flatMap(({ template, pods }): readonly ChosenPod[] => {
    const failing = pods.filter((pod) => failureIn(store, pod) !== undefined);
    const [bad] = failing;
    const [any] = pods;
    if (template !== undefined)
      return [
        { object: template, pods: pods.length },
        ...(bad === undefined ? [] : [{ object: bad, pods: failing.length }]),
      ];
    const shown = bad ?? any;
    return shown === undefined ? [] : [{ object: shown, pods: pods.length }];
  });
}

function familiesIn(store: ObjectStore, namespace?: string): ReadonlyMap<string, Family> {
  const families = new Map<string, Family>();
  for (const kind of WORKLOAD_KINDS)
    for (const object of store.list(kind, namespace)) {
      if (imagesOf(podSpecIn(object)).length === 0) continue;
      const root = rootOf(store, object);
      const id = `${object.metadata.namespace ?? ''} ${root.kind}/${root.name}`;
      const family = families.get(id) ?? { pods: [] };
      if (object.kind === 'Pod') family.pods.push(object);
      const isRoot = object.kind !== 'Pod' && object.kind === root.kind && object.metadata.name === root.name;
      families.set(id, isRoot ? { ...family, template: object } : family);
    }
  return families;
}

/** Whether all of it is past its pulls, as its status says; without a status it is not known, and counts as no. */
export function isRunning(object: KubeObject): boolean {
  if (object.kind === 'Pod') return runs(object);
  const { readyReplicas, numberReady, desiredNumberScheduled } = recordOf(object.status);
  if (object.kind === 'DaemonSet')
    return Number(numberReady ?? 0) > 0 && Number(numberReady) >= Number(desiredNumberScheduled);
  const wanted = Number(recordOf(object.spec)['replicas'] ?? 1);
  return wanted > 0 && Number(readyReplicas ?? 0) >= wanted;
}
