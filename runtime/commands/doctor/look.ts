/** What `doctor` looks at: the pod, what it lists, what would be injected, what reports trouble, and what the kubelet said. */
import type { ObjectStore } from '../../controller/store.ts';
import { lookupForContainers } from '../../rules/auth-lookup/containers.ts';
import { parseImageReference } from '../../rules/auth-lookup/image-reference.ts';
import { type AuthSource, kubeletKeyring, lookupForKubelet } from '../../rules/auth-lookup/kubelet.ts';
import type { DoctorImage, DoctorInput } from '../../rules/diagnose/doctor-types.ts';
import type { Explanation } from '../../rules/diagnose/explain.ts';
import { PROFILE_API_VERSION, PROFILE_KIND } from '../../rules/injection/profile.ts';
import type { Condition } from '../../rules/kubernetes/conditions.ts';
import { describeObject, type KubeObject } from '../../rules/kubernetes/object.ts';
import type { NodeMirrors } from '../../rules/node-registries/node-mirrors.ts';
import { recordOf } from '../../rules/record.ts';
import { injectionKinds, plannedNames } from '../explain/injected.ts';
import { nodeNameOf } from '../explain/node-file.ts';
import { podSource } from '../explain/secret-sources.ts';
import { explainIn, type FoundWorld, findWorld } from '../explain/world.ts';
import type { NextKinds, SourceKind } from '../object-source.ts';
import {
  accountName,
  findPod,
  hasOwnList,
  imagesOf,
  isStatic,
  ownSecrets,
  type PlainPodSpec,
  type PodPuller,
  podMetadataIn,
  podSpecIn,
  podSpecOf,
} from '../pod-spec.ts';
import { eventsAbout, failureIn, podKinds, podsOf, providerFailure } from './complaint.ts';
import { agentKinds, nodeFacts } from './node-facts.ts';
import { PULL_STATUS, reportsAbout, troublesIn } from './node-reports.ts';
import { notGivenIn } from './not-given.ts';
import { notInjectedIn } from './not-injected.ts';
import { providerMayRead } from './rights.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';

/** Kinds beside those of `explain`. */
export function doctorKinds({ namespace, pod }: PodPuller): readonly SourceKind[] {
  return [
    { apiVersion: 'v1', kind: 'Event', namespace, fieldSelector: eventsAbout(pod) },
    { ...PULL_STATUS, namespace },
    { apiVersion: RBAC, kind: 'Role', namespace },
    { apiVersion: RBAC, kind: 'RoleBinding', namespace },
    ...(pod?.kind === 'Pod' ? injectionKinds(namespace) : []),
  ];
}

/** Kinds of a folder beside those of `explain`. */
export const DOCTOR_FOLDER_KINDS: readonly string[] = [
  'Event',
  PULL_STATUS.kind,
  'Role',
  'RoleBinding',
  'DaemonSet',
];

/** What is named by the pod: its ServiceAccount, and the report of its node. */
export function doctorNext(puller: PodPuller): readonly NextKinds[] {
  return [
    (store) => {
      const found = findPod(store, puller);
      if (found === undefined) return [];
      const spec = podSpecIn(found);
      const name = accountName(spec, puller.serviceAccount);
      const node = nodeOf(spec);
      return [
        { apiVersion: 'v1', kind: 'ServiceAccount', namespace: puller.namespace, name },
        ...podKinds(found),
        ...(node === undefined ? [] : reportsAbout(node)),
      ];
    },
    (store) => {
      const node = nodeNameOf(store, puller);
      return node === undefined ? [] : agentKinds(store, node);
    },
  ];
}

/** What is known beside the objects. */
export interface Known {
  readonly unread: readonly string[];
  readonly hosted: boolean;
  readonly nodes?: NodeMirrors;
  /** Whether it is a cluster, where what is not found does not exist. @default {false} */
  readonly live?: boolean;
}

/**
 * Gathers.
 *
 * @param known what could not be read, whether the nodes are those of a hosted cluster, and where they pull from, where that is known
 * @throws PullwrightError when the pod is not there
 */
export function lookAt(store: ObjectStore, puller: PodPuller, known: Known): DoctorInput {
  const { unread, hosted, nodes, live = false } = known;
  const spec = podSpecOf(store, puller) ?? {};
  const template = findPod(store, puller) as KubeObject;
  const { namespace } = puller;
  const isPod = template.kind === 'Pod';
  const account = accountName(spec, 'default');
  // The list of a pod that exists is complete: its ServiceAccount no longer counts.
  const world = findWorld(store, puller, { complete: unread.length === 0, hosted, nodes });
  const object = store.get({ apiVersion: 'v1', kind: 'ServiceAccount', namespace, name: account });
  const synced = findWorld(store, puller, { complete: unread.length === 0, hosted, synced: true });
  const pods = podsOf(store, template);
  const [refusal] = pods.flatMap((pod) => failureIn(store, pod) ?? []);
  const [failure] = pods.flatMap((pod) => providerFailure(store, pod) ?? []);
  const [mayRead, node] = [providerMayRead(store, namespace, account), nodeNameOf(store, puller)];
  const images = imagesOf(spec).map((image) => ({
    ...imageIn(store, { world, namespace, image, mayRead, isStatic: isStatic(template) }),
    ...leftOut(image, { world, synced, node }),
  }));
  const facts = nodeFacts(store, {
    node,
    explanations: images.flatMap(({ explanation }) => explanation ?? []),
    complete: live && unread.length === 0,
  });
  return {
    namespace,
    pod: describeObject({ kind: template.kind, namespace, name: template.metadata.name }),
    isPod,
    ownList: hasOwnList(spec) && !(isPod && sameList(spec, object)),
    isStatic: isStatic(template),
    template,
    account: { name: account, object, known: unread.length === 0 },
    images,
    notInjected: notInjectedIn(store, { template, world, account: { name: account, object }, pods, live }),
    notGiven: notGivenIn(store, template, namespace),
    givers: giversOf(store, template, namespace),
    troubles: troublesIn(store, { namespace, account, node: nodeOf(spec) }),
    provider: { ...providerIn(store), mayRead, ...(failure === undefined ? {} : { failure }) },
    pods: pods.length,
    ...(refusal === undefined ? {} : { failure: refusal }),
    ...(facts === undefined ? {} : { node: facts }),
    unread,
  };
}

/** Profiles whose copies such pods are to have, listed already or not. */
function giversOf(store: ObjectStore, pod: KubeObject, namespace: string): DoctorInput['givers'] {
  const { labels = {}, annotations = {} } = podMetadataIn(pod);
  const planned = plannedNames(store, { namespace, labels, annotations, listed: [], account: undefined });
  return planned.flatMap(({ name: secret, by }) => {
    const [sort, name = ''] = by.split('/');
    if (sort !== 'profile') return [];
    const profile = store.get({ apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND, name });
    if (profile === undefined || !brings(profile, secret)) return [];
    const says = readyText(profile);
    return [{ secret, by: `${PROFILE_KIND}/${name}`, ...(says === undefined ? {} : { says }) }];
  });
}

/** A name without sources is listed for pods, and its Secret is somebody else's to make. */
function brings({ spec }: KubeObject, secret: string): boolean {
  const { secrets } = recordOf(spec);
  return (Array.isArray(secrets) ? secrets : []).some((one) => {
    const { name, sources } = recordOf(one);
    return name === secret && Array.isArray(sources) && sources.length > 0;
  });
}

function readyText({ status }: KubeObject): string | undefined {
  const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly Condition[] };
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined) return 'nothing has answered it yet; is the reconciler running?';
  return ready.status === 'True' ? undefined : `${ready.reason}: ${ready.message}`;
}

function sameList(spec: PlainPodSpec, account: KubeObject | undefined): boolean {
  const ofAccount = ownSecrets({ imagePullSecrets: account?.['imagePullSecrets'] });
  return JSON.stringify(ofAccount) === JSON.stringify(ownSecrets(spec));
}

interface ImageLook {
  readonly world: FoundWorld;
  readonly namespace: string;
  readonly image: string;
  readonly mayRead: boolean;
  /** It cannot list any Secret. */
  readonly isStatic: boolean;
}

/** Of entries for other registries nothing is said. */
const BRIEF = { brief: true } as const;

function imageIn(
  store: ObjectStore,
  { world, namespace, image, mayRead, isStatic: listsNone }: ImageLook,
): DoctorImage {
  const parsed = parseImageReference(image);
  if (!parsed.ok) return { text: image, fault: parsed.goText, elsewhere: [], mirrors: [] };
  const explanation = explainIn(world, parsed.reference, BRIEF);
  const listed = new Set(explanation.secrets.map(({ name }) => name));
  const sources = store.list({ apiVersion: 'v1', kind: 'Secret' }, namespace).flatMap((object) => {
    const source = podSource(object);
    return source === undefined ? [] : [{ name: object.metadata.name, source }];
  });
  const { repository } = parsed.reference;
  return {
    text: image,
    explanation,
    elsewhere: sources
      .filter(({ name, source }) => !listsNone && !listed.has(name) && matchesFor(source, repository))
      .map(({ name }) => name),
    mirrors: bareMirrors(explanation, mayRead).filter((mirror) =>
      sources.some(({ source }) => lookupForContainers([source], withoutTag(mirror)).found === 'credential'),
    ),
  };
}

/** The node's label keeps the credential from it: on a node that has it there would be one. */
function leftOut(
  image: string,
  {
    world,
    synced,
    node,
  }: { readonly world: FoundWorld; readonly synced: FoundWorld; readonly node: string | undefined },
): Pick<DoctorImage, 'leftOutNode'> {
  const parsed = parseImageReference(image);
  if (!parsed.ok || node === undefined) return {};
  const isBare = ({ kubelet }: Explanation): boolean => kubelet.anonymous && kubelet.blockedBy === undefined;
  const isLeftOut =
    isBare(explainIn(world, parsed.reference, BRIEF)) && !isBare(explainIn(synced, parsed.reference, BRIEF));
  return isLeftOut ? { leftOutNode: node } : {};
}

function matchesFor(source: AuthSource, repository: string): boolean {
  const keyring = kubeletKeyring({ secrets: [source] });
  return keyring.ok && lookupForKubelet(keyring.rings, repository).length > 0;
}

/** Mirrors that get no credential: none is known, or the provider may not read it. */
function bareMirrors({ places }: Explanation, mayRead: boolean): readonly string[] {
  return places
    .filter(({ kind, crio }) => {
      if (kind !== 'mirror') return false;
      return (
        crio.what === 'nothing' ||
        (!mayRead && crio.what === 'entry' && crio.entry.source.startsWith('auth file'))
      );
    })
    .map(({ reference }) => reference);
}

function withoutTag(reference: string): string {
  const [name = ''] = reference.split('@', 1);
  const colon = name.lastIndexOf(':');
  return colon > name.lastIndexOf('/') ? name.slice(0, colon) : name;
}

function providerIn(store: ObjectStore): {
  readonly matchImages: readonly string[];
  readonly present: boolean;
} {
  const [config] = store.list({ apiVersion: 'config.openshift.io/v1', kind: 'CRIOCredentialProviderConfig' });
  const images = (config?.spec as { readonly matchImages?: unknown } | undefined)?.matchImages;
  const list: readonly unknown[] = Array.isArray(images) ? images : [];
  return { present: config !== undefined, matchImages: list.filter((one) => typeof one === 'string') };
}

function nodeOf(spec: PlainPodSpec): string | undefined {
  return typeof spec['nodeName'] === 'string' && spec['nodeName'] !== '' ? spec['nodeName'] : undefined;
}
