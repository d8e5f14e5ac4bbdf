/** The node agent's objects in the hosted cluster: applied by us, or expected from git. */

import { GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { PULL_STATUS_CRD_NAME } from '../../core/kubernetes/pull-status.ts';
import { pullStatusCrd } from '../../core/kubernetes/pull-status-kind.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import { refOf } from '../../engine/changes.ts';
import {
  type ApplyObject,
  OWNER_LABEL,
  type Reader,
  type ReconcileError,
  type Ref,
  type Watch,
} from '../../engine/contract.ts';
import {
  AGENT_POLICY_NAME,
  additionalSecretPolicies,
  agentBounds,
  agentRbac,
  POLICY_NAME,
} from '../agent-access.ts';
import { agentDaemonSet, upstreamDaemonSet } from '../daemon-set.ts';
import { configHash } from '../eligibility.ts';
import type { GlobalPullSecretOptions } from '../options.ts';

const NAMESPACES: readonly string[] = [NAMES.namespace, NAMES.configNamespace];

/** An object of the cluster whose nodes get the pull secret. */
function hosted(apiVersion: string, kind: string, name: string, namespace?: string): Ref {
  return { role: 'hosted', apiVersion, kind, ...(namespace === undefined ? {} : { namespace }), name };
}

/** A Secret of the system there. */
export function secretRef(name: string): Ref {
  return hosted('v1', 'Secret', name, NAMES.namespace);
}

export const DAEMON_SET: Ref = hosted('apps/v1', 'DaemonSet', NAMES.syncer, NAMES.namespace);
const CRD: Ref = hosted('apiextensions.k8s.io/v1', 'CustomResourceDefinition', PULL_STATUS_CRD_NAME);
const RBAC = 'rbac.authorization.k8s.io/v1';

/** Never pruned: with the kind go all reports of it. */
export const AGENT_KEPT: readonly Ref[] = [CRD];

export const AGENT_READS: readonly Watch[] = [
  CRD,
  DAEMON_SET,
  hosted('v1', 'ServiceAccount', NAMES.syncer, NAMES.namespace),
  hosted('coordination.k8s.io/v1', 'Lease', NAMES.turns, NAMES.namespace),
  ...[POLICY_NAME, `${POLICY_NAME}-deny`, AGENT_POLICY_NAME].flatMap((name) =>
    ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'].map((kind) =>
      hosted('admissionregistration.k8s.io/v1', kind, name),
    ),
  ),
  ...['ClusterRole', 'ClusterRoleBinding'].map((kind) => hosted(RBAC, kind, NAMES.syncer)),
  ...NAMESPACES.flatMap((namespace) => [
    hosted('v1', 'Namespace', namespace),
    hosted(RBAC, 'Role', NAMES.syncer, namespace),
    hosted(RBAC, 'RoleBinding', NAMES.syncer, namespace),
  ]),
];

let crd: ApplyObject['object'] | undefined;

/** The same for every cluster: rendered once, or a process of many spends half of its start on it. */
function reportCrd(): ApplyObject['object'] {
  crd ??= pullStatusCrd();
  return crd;
}

/** What the objects depend on. */
export interface AgentState {
  /** Whether there is a merged secret. */
  readonly merged: boolean;
  /** Whether the platform's secret can be used: without it there is nothing to bring to nodes. */
  readonly usable: boolean;
  /** Base64 of what nodes should have; for the hash of upstream's shape. */
  readonly value: Redacted<string> | undefined;
}

/** Objects to apply with `delivery: reconciler`; none with `gitops`. */
export function agentObjects(
  reader: Reader,
  options: GlobalPullSecretOptions,
  state: AgentState,
): readonly ApplyObject[] {
  if (options.delivery === 'gitops') return [];
  const rbac = agentRbac(options.agent).filter(
    ({ metadata: { namespace } }) => namespace === undefined || hasNamespace(reader, namespace),
  );
  // Upstream's pods do not start before there is a secret to mount.
  const runs = options.agent.shape !== 'upstream' || state.value !== undefined;
  const workload = state.usable && runs ? [daemonSet(options, state)] : [];
  // In a cluster without GitOps nothing else installs the CRD of our reports.
  return [
    reportCrd(),
    ...rbac,
    ...agentBounds(options.agent),
    ...workload,
    ...additionalSecretPolicies(options.enforce),
  ]
    .filter((object) => !isFromGit(reader.get(refOf('hosted', object))))
    .map((object) => ({ role: 'hosted', object, ...(isAdoptable(object) ? { forceOwnership: true } : {}) }));
}

/**
 * Rendered by `synth` and applied by a GitOps tool, whatever our configuration says: one owner per object. A definition that
 * a person installed stays theirs too.
 */
function isFromGit(object: KubeObject | undefined): boolean {
  const labels = object?.metadata.labels;
  if (object?.kind === CRD.kind) return labels?.[OWNER_LABEL] === undefined;
  return labels?.['app.kubernetes.io/part-of'] === 'pullwright' && labels[OWNER_LABEL] === undefined;
}

/** Upstream's objects of these names have no marks; they are the same objects, so they are taken over. */
function isAdoptable(object: KubeObject): boolean {
  return ['DaemonSet', 'ServiceAccount', 'Role', 'RoleBinding'].includes(object.kind);
}

function daemonSet(options: GlobalPullSecretOptions, state: AgentState): KubeObject {
  if (options.agent.shape !== 'upstream' || state.value === undefined) return agentDaemonSet(options.agent);
  return upstreamDaemonSet(options.agent, {
    merged: state.merged,
    configHash: configHash(redact(Buffer.from(reveal(state.value), 'base64').toString('utf8'))),
  });
}

/** A plain Kubernetes cluster has no `openshift-config`. A folder without any Namespace says nothing about them. */
function hasNamespace(reader: Reader, name: string): boolean {
  const known = reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' });
  return (
    known.length === 0 ||
    known.some(
      (namespace) => namespace.metadata.name === name && namespace.metadata.deletionTimestamp === undefined,
    )
  );
}

/** With `delivery: gitops`, a DaemonSet that git did not bring is worth a word. */
export function missingAgent(reader: Reader, options: GlobalPullSecretOptions): readonly ReconcileError[] {
  if (options.delivery === 'reconciler' || reader.get(DAEMON_SET) !== undefined) return [];
  return [
    {
      retryPolicy: 'waiting',
      afterMs: 60_000,
      code: 'DaemonSetMissing',
      message: `Cannot sync pull secrets to nodes: DaemonSet/${NAMES.namespace}/${NAMES.syncer} not found, and a GitOps tool must apply it`,
      hint: 'Sync the rendered manifests, or choose delivery "reconciler"',
      regarding: DAEMON_SET,
    },
  ];
}
