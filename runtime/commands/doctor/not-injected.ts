/** Names that a pod should list, and does not. */
import type { ObjectStore } from '../../controller/store.ts';
import type { DoctorInput } from '../../rules/diagnose/doctor-types.ts';
import { PROFILE_API_VERSION, PROFILE_KIND } from '../../rules/injection/profile.ts';
import type { Condition } from '../../rules/kubernetes/conditions.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { recreation } from '../../rules/kubernetes/pod-owner.ts';
import { plannedNames } from '../explain/injected.ts';
import type { FoundWorld } from '../explain/world.ts';
import {
  hasOwnList,
  isStatic,
  ownSecrets,
  type PlainPodSpec,
  podMetadataIn,
  podSpecIn,
} from '../pod-spec.ts';
import { failureIn } from './complaint.ts';

type NotInjected = DoctorInput['notInjected'];

interface Account {
  readonly name: string;
  readonly object: KubeObject | undefined;
}

interface Examined {
  readonly template: KubeObject;
  readonly world: FoundWorld;
  readonly account: Account;
  /** The template's. */
  readonly pods: readonly KubeObject[];
  /** What a folder says of admission is how our reconciler would find it there, not how a cluster is. */
  readonly live: boolean;
}

/** Of a pod that exists, what it lacks; of a template, what its next pod would lack, else what the one lacks that fails. */
export function notInjectedIn(store: ObjectStore, examined: Examined): NotInjected {
  const lacking = namesLacking(store, examined);
  return examined.live ? lacking.map((one) => ({ ...one, ...hindranceOf(store, one.by) })) : lacking;
}

function namesLacking(store: ObjectStore, { template, world, account, pods }: Examined): NotInjected {
  if (isStatic(template)) return [];
  if (template.kind === 'Pod') return lackingOf(store, template, account);
  const next = lackingIn(store, world, template);
  if (next.length > 0) return next;
  const failing = pods.find((pod) => failureIn(store, pod) !== undefined);
  if (failing === undefined) return [];
  return lackingOf(store, failing, account).map((one) => ({ ...one, pod: failing.metadata.name }));
}

function lackingOf(store: ObjectStore, pod: KubeObject, account: Account): NotInjected {
  const spec = podSpecIn(pod);
  const remedy = recreation(pod);
  const lacking = [...notCopied(spec, account), ...notInjectedInto(store, pod, ownSecrets(spec))];
  return lacking.map((one) => ({ ...one, remedy }));
}

/** Names that profiles and SidecarSets give such pods, and that this one does not list. */
function notInjectedInto(
  store: ObjectStore,
  pod: KubeObject,
  listed: readonly string[],
): DoctorInput['notInjected'] {
  const { namespace = '', labels = {}, annotations = {} } = pod.metadata;
  const planned = plannedNames(store, { namespace, labels, annotations, listed, account: undefined });
  return planned.map(({ name, by }) => ({ secret: name, by }));
}

/** The same of a template, whose pods come with what admission adds: what is left when nothing injects, or the account forbids. */
function lackingIn(
  store: ObjectStore,
  { secrets }: FoundWorld,
  template: KubeObject,
): DoctorInput['notInjected'] {
  const { labels = {}, annotations = {} } = podMetadataIn(template);
  const { namespace = '' } = template.metadata;
  const listed = secrets.map(({ name }) => name);
  const planned = plannedNames(store, { namespace, labels, annotations, listed, account: undefined });
  return planned.map(({ name, by }) => ({ secret: name, by }));
}

/** What the profile says of admission, unless it is on its way. */
function hindranceOf(store: ObjectStore, by: string): { readonly hindrance?: string } {
  const [sort, name = ''] = by.split('/');
  if (sort !== 'profile') return {};
  const profile = store.get({ apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND, name });
  const { conditions = [] } = (profile?.status ?? {}) as { readonly conditions?: readonly Condition[] };
  const said = conditions.find(({ type }) => type === 'Injecting');
  if (said?.status !== 'False' || said.reason === 'PolicyPending') return {};
  return { hindrance: `${said.reason}: ${said.message}` };
}

/** Admission copies the list of the ServiceAccount when a pod is made, and never again. */
function notCopied(spec: PlainPodSpec, { name, object }: Account): DoctorInput['notInjected'] {
  if (hasOwnList(spec)) return [];
  const ofAccount = ownSecrets({ imagePullSecrets: object?.['imagePullSecrets'] });
  return ofAccount.map((secret) => ({
    secret,
    by: `ServiceAccount/${object?.metadata.namespace ?? ''}/${name}`,
  }));
}
