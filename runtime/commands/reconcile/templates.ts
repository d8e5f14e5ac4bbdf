/**
 * What the pods of templates will pull with, for `reconcile --from`: templates are never changed, so that no diff shows what admission
 * adds to their pods.
 */
import type { ObjectStore } from '../../controller/store.ts';
import { describeObject, type KubeObject } from '../../rules/kubernetes/object.ts';
import { plannedNames } from '../explain/injected.ts';
import { effectiveNames } from '../explain/world.ts';
import { type PodPuller, podMetadataIn, podSpecIn, WORKLOADS } from '../pod-spec.ts';

/** A pull secret of the pods of a template. */
export interface TemplateSecret {
  readonly name: string;
  /** `Deployment/shop/web`, `ServiceAccount/shop/default`, `PullSecretProfile/team`. */
  readonly by: string;
  /** Whether it is in the namespace, or will be brought there. */
  readonly present: boolean;
}

/** A template whose pods are given Secrets by profiles or SidecarSets. */
export interface TemplatePull {
  readonly template: string;
  /** In the order in which a kubelet tries them. */
  readonly secrets: readonly TemplateSecret[];
  /** Names that would be added and are not, because nothing injects into such pods. */
  readonly notInjected: readonly string[];
}

/** Kinds that are read for it, beside those of the reconcilers. */
export const TEMPLATE_KINDS: readonly string[] = [
  ...new Set(Object.values(WORKLOADS).map(({ kind }) => kind)),
  'ServiceAccount',
  'MutatingWebhookConfiguration',
];

/**
 * What stands in the store after the run counts: copies that were made, and the policy that was compiled.
 *
 * @param isOff the configuration says that nobody injects
 */
export function templatePulls(store: ObjectStore, isOff: boolean): readonly TemplatePull[] {
  const kinds = [...new Map(Object.values(WORKLOADS).map((one) => [one.kind, one])).values()];
  return kinds
    .filter(({ kind }) => kind !== 'Pod')
    .flatMap((kind) => store.list(kind).filter((object) => !isMade(object)))
    .flatMap((object) => pullOf(store, object, isOff) ?? []);
}

/** By another template, which is listed itself: a ReplicaSet of a Deployment, a Job of a CronJob. */
function isMade({ metadata }: KubeObject): boolean {
  return (metadata.ownerReferences ?? []).some(({ controller }) => controller === true);
}

function pullOf(store: ObjectStore, object: KubeObject, isOff: boolean): TemplatePull | undefined {
  const { namespace = 'default', name } = object.metadata;
  const puller: PodPuller = { namespace, serviceAccount: 'default', pod: { kind: object.kind, name } };
  const names = effectiveNames(store, puller, podSpecIn(object));
  const given = names.filter(({ listedBy }) => /^(PullSecretProfile|SidecarSet)\//.test(listedBy));
  const { labels = {}, annotations = {} } = podMetadataIn(object);
  const listed = names.map((one) => one.name);
  const planned = plannedNames(store, { namespace, labels, annotations, listed, account: undefined });
  if (given.length + planned.length === 0) return undefined;
  return {
    template: describeObject({ kind: object.kind, namespace, name }),
    secrets: names
      .filter((one) => !isOff || !given.includes(one))
      .map((one) => ({
        name: one.name,
        by: one.listedBy,
        present: store.get({ apiVersion: 'v1', kind: 'Secret', namespace, name: one.name }) !== undefined,
      })),
    notInjected: [...(isOff ? given : []), ...planned].map((one) => one.name),
  };
}

/** One line for each. */
export function templateLine({ template, secrets, notInjected }: TemplatePull): string {
  const names = secrets.map(
    ({ name, by, present }) => `${name} (${by === template ? 'its own' : by}${present ? '' : ', not there'})`,
  );
  const list = names.length === 0 ? 'nothing' : names.join(', ');
  const rest = notInjected.length === 0 ? '' : `; nothing injects ${notInjected.join(', ')}`;
  return `${template}: ${list}${rest}`;
}
