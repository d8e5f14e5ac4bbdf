/** What is known of the node of a pod: whether an agent runs there, and whether it has brought the pull secret that is there now. */
import type { ObjectStore } from '../../controller/store.ts';
import { sourceDigestOf } from '../../global-pull-secret/agent/document.ts';
import { lackOf } from '../../global-pull-secret/reconciler/node-truth.ts';
import type { NodeEvidence } from '../../rules/diagnose/doctor-types.ts';
import type { Explanation } from '../../rules/diagnose/explain.ts';
import { secretDataText } from '../../rules/docker-config/secret-text.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import { describeObject, type KubeObject, type SecretObject } from '../../rules/kubernetes/object.ts';
import { startsReporting } from '../../rules/kubernetes/pod-template.ts';
import {
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatusName,
} from '../../rules/kubernetes/pull-status.ts';
import { recordOf } from '../../rules/record.ts';
import { GLOBAL_SECRET } from '../explain/node-file.ts';
import type { SourceKind } from '../object-source.ts';
import { podSpecIn } from '../pod-spec.ts';

const DAEMON_SET = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  namespace: NAMES.namespace,
  name: NAMES.syncer,
} as const;
const POD = { apiVersion: 'v1', kind: 'Pod' } as const;

/** What to read of a cluster about the agent of a node, where something is brought to it. */
export function agentKinds(store: ObjectStore, node: string): readonly SourceKind[] {
  if (store.get(GLOBAL_SECRET) === undefined || !takesPart(store, node)) return [];
  return [
    DAEMON_SET,
    {
      ...POD,
      namespace: NAMES.namespace,
      labelSelector: `name=${NAMES.syncer}`,
      fieldSelector: `spec.nodeName=${node}`,
    },
  ];
}

function takesPart(store: ObjectStore, node: string): boolean {
  const found = store.get({ apiVersion: 'v1', kind: 'Node', name: node });
  return found?.metadata.labels?.[NAMES.nodeLabel] === 'true';
}

/** What is looked at. */
export interface NodeLook {
  readonly node: string | undefined;
  readonly explanations: readonly Explanation[];
  /** All of a cluster could be read, so that what is not there does not exist. */
  readonly complete: boolean;
}

/** Gathers; undefined where no image is pulled with what is brought to the node. */
export function nodeFacts(
  store: ObjectStore,
  { node, explanations, complete }: NodeLook,
): NodeEvidence | undefined {
  if (node === undefined || !takesPart(store, node) || !explanations.some(usesGlobal)) return undefined;
  const daemonSet = store.get(DAEMON_SET);
  return {
    name: node,
    ...agentOn(store, node, { daemonSet, complete }),
    ...contentOf(store, node, daemonSet),
  };
}

/** Whether the kubelet or CRI-O takes an entry of the file that the agent writes. */
function usesGlobal({ kubelet, places }: Explanation): boolean {
  const name = describeObject({ kind: 'Secret', namespace: NAMES.namespace, name: NAMES.global });
  return (
    kubelet.tried.some(({ source }) => source === name) ||
    places.some(({ crio }) => crio.what === 'entry' && crio.entry.source === name)
  );
}

function agentOn(
  store: ObjectStore,
  node: string,
  { daemonSet, complete }: { readonly daemonSet: KubeObject | undefined; readonly complete: boolean },
): Pick<NodeEvidence, 'agent' | 'agentSays'> {
  const agents = store
    .list(POD, NAMES.namespace)
    .filter((pod) => pod.metadata.labels?.['name'] === NAMES.syncer && podSpecIn(pod)['nodeName'] === node);
  const waits = agents.filter((pod) => !isReady(pod));
  if (agents.length > waits.length) return { agent: 'ready' };
  const [first] = waits;
  if (first !== undefined) return { agent: 'not-ready', agentSays: whyNotReady(first) };
  if (daemonSet === undefined) return { agent: complete ? 'no-daemon-set' : 'unknown' };
  // A manifest has no status: that none of its pods are in the folder says nothing.
  return { agent: complete || daemonSet.status !== undefined ? 'absent' : 'unknown' };
}

function isReady({ status }: KubeObject): boolean {
  return conditionsOf(status).some((one) => one['type'] === 'Ready' && one['status'] === 'True');
}

function conditionsOf(status: unknown): readonly Readonly<Record<string, unknown>>[] {
  const { conditions } = recordOf(status);
  return Array.isArray(conditions) ? conditions.map(recordOf) : [];
}

/** `global-pull-secret-syncer-x7k2p waits: CrashLoopBackOff` */
function whyNotReady({ metadata, status }: KubeObject): string {
  const { containerStatuses, phase } = recordOf(status);
  const containers: readonly unknown[] = Array.isArray(containerStatuses) ? containerStatuses : [];
  const reason = containers
    .map((one) => recordOf(recordOf(recordOf(one)['state'])['waiting'])['reason'])
    .find((one) => typeof one === 'string');
  const condition = conditionsOf(status).find((one) => one['type'] === 'Ready')?.['message'];
  const said = [reason, condition, phase].find((one): one is string => typeof one === 'string' && one !== '');
  return `${metadata.name} waits: ${said ?? 'it has no status yet'}`;
}

/** Where agents report, what that of the node says of the file. */
function contentOf(
  store: ObjectStore,
  node: string,
  daemonSet: KubeObject | undefined,
): Pick<NodeEvidence, 'behind'> {
  if (daemonSet === undefined || !startsReporting(daemonSet)) return {};
  const report = store.get({
    apiVersion: PULL_STATUS_API_VERSION,
    kind: PULL_STATUS_KIND,
    namespace: NAMES.namespace,
    name: pullStatusName('Node', node),
  });
  const value = (store.get(GLOBAL_SECRET) as SecretObject | undefined)?.data?.[NAMES.dataKey];
  if (value === undefined) return {};
  return { behind: lackOf(report, sourceDigestOf(secretDataText(value))) ?? 'none' };
}
