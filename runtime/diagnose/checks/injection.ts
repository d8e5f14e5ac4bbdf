/** Why a pod lacks a Secret that a profile, a SidecarSet or its ServiceAccount lists. */

import { selects } from '../../core/kubernetes/label-selector.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { recreation } from '../../core/kubernetes/pod-owner.ts';
import { distinctBy } from '../../core/record.ts';
import type { ObjectStore } from '../../engine/store.ts';
import type { PullSecretProfile } from '../../pull-secret-injection/kinds/profile.ts';
import type { SidecarSet } from '../../pull-secret-injection/kinds/sidecar-set.ts';
import { INJECT_LABEL } from '../../pull-secret-injection/plan/plan.ts';
import { type PlannedFor, plannedFor, plannedNames, profileOf } from '../model/admission.ts';
import { failuresIn } from '../model/events.ts';
import { conditionOf } from '../model/objects.ts';
import { hasOwnList, isAdmitted, isStatic, ownSecrets, type PullModel, podSpecIn } from '../model/pull.ts';

// Profiles and SidecarSets that add a Secret to pods of the namespace but skip this pod, and why.

/** For each Secret, the first profile or SidecarSet that could add it to the pod. Those for other namespaces are ignored. */
export function notGivenIn(store: ObjectStore, template: KubeObject) {
  const { pod, profiles, sets } = plannedFor(store, template);
  const labels = pod.namespaceLabels;
  const ofProfiles = profiles
    // Secrets of a profile that only distributes must be listed manually.
    .filter(({ injects, namespaceSelector }) => injects && selects(namespaceSelector, labels))
    .flatMap((profile) =>
      said(
        profile.secrets.map(({ name }) => name),
        `PullSecretProfile/${profile.name}`,
        optedOut(pod) ?? profileSays(profile, pod),
      ),
    );
  const ofSets = sets
    .filter(({ namespaceSelector: of }) => of === undefined || (of.ok && selects(of.requirements, labels)))
    .flatMap((set) =>
      said(
        set.imagePullSecrets.filter((name) => name !== ''),
        `SidecarSet/${set.name}`,
        setSays(set, pod) ?? optedOut(pod),
      ),
    );
  return distinctBy([...ofProfiles, ...ofSets], ({ secret }) => secret);
}

/** @param by `PullSecretProfile/team` */
function said(secrets: readonly string[], by: string, why: string | undefined) {
  return why === undefined ? [] : secrets.map((secret) => ({ secret, by, why }));
}

const MISSES = 'its selector does not match the labels of the pod';

function profileSays({ suspended, selector }: PullSecretProfile, pod: PlannedFor['pod']): string | undefined {
  if (suspended) return 'its spec.suspend is set';
  return selects(selector, pod.labels) ? undefined : MISSES;
}

function setSays({ paused, selector }: SidecarSet, pod: PlannedFor['pod']): string | undefined {
  if (paused) return 'its injectionStrategy.paused is set';
  if (!selector.ok) return 'its spec.selector cannot be read';
  if (selector.requirements.length === 0) return 'its spec.selector is empty and selects no pod';
  return selects(selector.requirements, pod.labels) ? undefined : MISSES;
}

function optedOut({ labels, namespaceLabels }: PlannedFor['pod']): string | undefined {
  const who = labels[INJECT_LABEL] === 'false' ? 'the pod' : 'the namespace';
  const isOut = labels[INJECT_LABEL] === 'false' || namespaceLabels[INJECT_LABEL] === 'false';
  return isOut ? `${who} has the label ${INJECT_LABEL}: "false"` : undefined;
}

// Secrets that a pod should list but does not.

type NotInjected = readonly {
  readonly secret: string;
  readonly by: string;
  /** For a template: a pod that lacks the Secret, although a new pod would list it. */
  readonly pod?: string;
  /** How to recreate an existing pod. */
  readonly remedy?: string;
  /** Why a new pod would lack it too, from the conditions of the profile. */
  readonly hindrance?: string;
}[];

interface Examined {
  readonly template: KubeObject;
  readonly model: PullModel;
  readonly account: { readonly name: string; readonly object: KubeObject | undefined };
  /** Pods of the template. */
  readonly pods: readonly KubeObject[];
  /** False for a folder: admission is computed as by the reconciler, because no conditions are observed. */
  readonly live: boolean;
}

/** Secrets that a pod lacks. For a template: those that its next pod would lack, else those that its failing pod lacks. */
export function notInjectedIn(store: ObjectStore, examined: Examined): NotInjected {
  const lacking = namesLacking(store, examined);
  return examined.live ? lacking.map((one) => ({ ...one, ...hindranceOf(store, one.by) })) : lacking;
}

function namesLacking(store: ObjectStore, { template, model, account, pods }: Examined): NotInjected {
  if (isStatic(template)) return [];
  if (template.kind === 'Pod') return lackingOf(store, template, account);
  // These Secrets include those that admission adds. Others are missing if nothing injects, or the account forbids it.
  const listed = model.secrets.map(({ name }) => name);
  const next = notInjectedInto(store, template, listed);
  if (next.length > 0) return next;
  const failing = pods.find((pod) => failuresIn(store, pod).length > 0);
  if (failing === undefined) return [];
  return lackingOf(store, failing, account).map((one) => ({ ...one, pod: failing.metadata.name }));
}

function lackingOf(store: ObjectStore, pod: KubeObject, { name, object }: Examined['account']): NotInjected {
  const spec = podSpecIn(pod);
  const by = `ServiceAccount/${object?.metadata.namespace ?? ''}/${name}`;
  const remedy = recreation(pod);
  // Admission copies the list of the ServiceAccount when a pod is created, and never updates it.
  const copied = isAdmitted(pod) && !hasOwnList(spec) ? ownSecrets(object) : [];
  const lacking = [
    ...copied.map((secret) => ({ secret, by })),
    ...notInjectedInto(store, pod, ownSecrets(spec)),
  ];
  return lacking.map((one) => ({ ...one, remedy }));
}

/** Secrets that profiles and SidecarSets add to such pods and that are not in the list. */
function notInjectedInto(store: ObjectStore, object: KubeObject, listed: readonly string[]): NotInjected {
  return plannedNames(store, object, listed).map(({ name, by }) => ({ secret: name, by }));
}

/** Why admission does not inject, from the profile's `Injecting` condition; empty while the policy is pending. */
function hindranceOf(store: ObjectStore, by: string): { readonly hindrance?: string } {
  const profile = profileOf(store, by);
  const said = profile && conditionOf(profile, 'Injecting');
  if (said?.status !== 'False' || said.reason === 'PolicyPending') return {};
  return { hindrance: `${said.reason}: ${said.message}` };
}
