/** Whether the nodes of a cluster can take part: which are eligible, what they run, and whether their pods are let in. */
import { GLOBAL_PULL_SECRET } from '../kubernetes/global-pull-secret.ts';
import { type LabelRequirement, selects } from '../kubernetes/label-selector.ts';
import type { KubeObject } from '../kubernetes/object.ts';
import { recordOf, textOf } from '../record.ts';
import { counted, countedOf } from '../text/counted.ts';
import { releaseMinor, templateSpec } from './cluster.ts';
import { type CheckInput, type CheckLine, fewNames, ofKind } from './types.ts';

const MACHINE_CONFIG = 'machineconfiguration.openshift.io/currentConfig';

/** Nodes that get what the fleet brings to nodes. */
export function eligibleLine(input: CheckInput): readonly CheckLine[] {
  if (!input.systems.includes('global-pull-secret')) return [];
  const check = 'eligible-nodes';
  const nodes = ofKind(input.objects, 'Node');
  if (nodes.length === 0)
    return [{ check, level: 'warn', message: `${input.live ? 'the cluster' : 'the folder'} has no node` }];
  const free = nodes.filter(({ metadata }) => metadata.annotations?.[MACHINE_CONFIG] === undefined);
  const taken = free.filter((node) => isTaken(node, input.nodes));
  const message = `${countedOf(taken.length, nodes.length, ['node', 'nodes'], ['is', 'are'])} eligible`;
  if (taken.length > 0) return [{ check, level: 'ok', message }];
  if (free.length === 0)
    return [
      {
        check,
        level: 'fail',
        message: `${message}: the Machine Config Operator looks after all of them`,
        fix: 'Put the entries into openshift-config/pull-secret: the Machine Config Operator brings that to its nodes',
      },
    ];
  const wants =
    input.nodes === 'pools'
      ? `the label ${GLOBAL_PULL_SECRET.nodeLabel}=true, which NodePools with upgradeType Replace give`
      : '"nodes" of global-pull-secret in the fleet';
  return [
    {
      check,
      level: 'fail',
      message: `${message}: none has ${wants}`,
      fix: 'Select nodes with "nodes" of global-pull-secret',
    },
  ];
}

function isTaken({ metadata: { labels = {} } }: KubeObject, wanted: CheckInput['nodes']): boolean {
  if (labels[GLOBAL_PULL_SECRET.nodeLabel] === 'true') return true;
  if (wanted === 'pools') return false;
  const requirements: readonly LabelRequirement[] =
    wanted === 'linux' ? [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }] : wanted;
  return selects(requirements, labels);
}

/** The Machine Config Operator. */
export function mcoLine({ objects }: CheckInput): readonly CheckLine[] {
  const nodes = ofKind(objects, 'Node').filter(
    ({ metadata }) => metadata.annotations?.[MACHINE_CONFIG] !== undefined,
  );
  if (nodes.length === 0) return [];
  return [
    {
      check: 'machine-config-operator',
      level: 'warn',
      message: `the Machine Config Operator looks after ${counted(nodes.length, 'node')} (${fewNames(nodes.map(({ metadata }) => metadata.name))}): ${nodes.length === 1 ? 'its' : 'their'} files are left to it`,
      fix: 'Entries for these nodes belong into openshift-config/pull-secret; the credential provider comes to them by a MachineConfig',
    },
  ];
}

/** Runtimes and kubelets, for what runs on nodes. */
export function runtimeLines({ objects, systems }: CheckInput): readonly CheckLine[] {
  const wantsCrio = systems.includes('credential-provider') || systems.includes('registry-overrides');
  const provider = systems.includes('credential-provider');
  const infos = ofKind(objects, 'Node').map(({ metadata, status }) => {
    const { containerRuntimeVersion, kubeletVersion } = recordOf(recordOf(status)['nodeInfo']);
    return {
      name: metadata.name,
      runtime: textOf(containerRuntimeVersion),
      kubelet: textOf(kubeletVersion),
    };
  });
  const known = infos.filter(({ runtime }) => runtime !== '');
  if (known.length === 0) return [];
  const others = known.filter(({ runtime }) => !runtime.startsWith('cri-o://'));
  const runtimes = fewNames([...new Set(known.map(({ runtime }) => runtime))]);
  const runtime: CheckLine =
    wantsCrio && others.length > 0
      ? {
          check: 'runtime',
          level: 'fail',
          message: `${countedOf(others.length, known.length, ['node', 'nodes'], ['does', 'do'])} not run CRI-O (${fewNames(others.map(({ name }) => name))}): ${provider ? 'credential-provider' : 'registry-overrides'} does nothing there`,
          fix: `Leave ${provider ? 'credential-provider' : 'registry-overrides'} out of the fleet for this cluster, or run CRI-O`,
        }
      : { check: 'runtime', level: 'ok', message: `the nodes run ${runtimes}` };
  const old = known.filter(({ kubelet }) => (releaseMinor(kubelet) ?? PROVIDER_MINOR) < PROVIDER_MINOR);
  if (!provider || old.length === 0) return [runtime];
  return [
    runtime,
    {
      check: 'kubelet',
      level: 'fail',
      message: `${countedOf(old.length, known.length, ['kubelet', 'kubelets'], ['is', 'are'])} older than 1.${PROVIDER_MINOR} (${fewNames(old.map(({ name }) => name))}): the credential provider is not put there`,
      fix: 'Upgrade these nodes',
    },
  ];
}

/** Kubelet and CRI-O that the credential provider needs. */
const PROVIDER_MINOR = 34;

const ENFORCE = 'pod-security.kubernetes.io/enforce';

/** Whether the namespaces of the plan let its pods in: pod security, and SecurityContextConstraints where the cluster has them. */
export function podSecurityLines({ objects, plan }: CheckInput): readonly CheckLine[] {
  const namespaces = new Map(ofKind(plan, 'Namespace').map((one) => [one.metadata.name, one]));
  for (const one of ofKind(objects, 'Namespace')) namespaces.set(one.metadata.name, one);
  const openshift = ofKind(objects, 'SecurityContextConstraints').length > 0;
  return plan.filter(isPrivileged).flatMap((workload): readonly CheckLine[] => {
    const { name, namespace = '' } = workload.metadata;
    const labels = namespaces.get(namespace)?.metadata.labels ?? {};
    const subject = `${workload.kind} ${namespace}/${name}`;
    const level = labels[ENFORCE];
    const security: CheckLine =
      level === undefined || level === 'privileged'
        ? {
            check: 'pod-security',
            level: 'ok',
            message: `${subject} is privileged, and its namespace lets it in`,
          }
        : {
            check: 'pod-security',
            level: 'fail',
            message: `${subject} is privileged, and its namespace enforces "${level}"`,
            fix: `kubectl label namespace ${namespace} ${ENFORCE}=privileged --overwrite`,
          };
    return openshift ? [security, sccLine(workload, labels, objects)] : [security];
  });
}

function isPrivileged(workload: KubeObject): boolean {
  const spec = templateSpec(workload);
  const list = (value: unknown): readonly Readonly<Record<string, unknown>>[] =>
    Array.isArray(value) ? value.map(recordOf) : [];
  return (
    spec['hostPID'] === true ||
    spec['hostNetwork'] === true ||
    list(spec['volumes']).some((volume) => volume['hostPath'] !== undefined) ||
    list(spec['containers']).some(
      (container) => recordOf(container['securityContext'])['privileged'] === true,
    )
  );
}

/** In namespaces of run level 0 and 1 SecurityContextConstraints do not apply. */
function sccLine(
  workload: KubeObject,
  labels: Readonly<Record<string, string>>,
  objects: readonly KubeObject[],
): CheckLine {
  const { namespace = '' } = workload.metadata;
  const account = textOf(templateSpec(workload)['serviceAccountName']) || 'default';
  const check = 'scc';
  const user = `system:serviceaccount:${namespace}:${account}`;
  if (['0', '1'].includes(labels['openshift.io/run-level'] ?? ''))
    return {
      check,
      level: 'ok',
      message: `namespace ${namespace} has a run level to which no constraints apply`,
    };
  const byUser = ofKind(objects, 'SecurityContextConstraints').some((scc) => {
    const users: unknown = scc['users'];
    return scc['allowPrivilegedContainer'] === true && Array.isArray(users) && users.includes(user);
  });
  const byRole = ofKind(objects, 'RoleBinding', 'ClusterRoleBinding').some((binding) => {
    const subjects: unknown = binding['subjects'];
    const role = recordOf(binding['roleRef'])['name'];
    return (
      role === 'system:openshift:scc:privileged' &&
      Array.isArray(subjects) &&
      subjects
        .map(recordOf)
        .some((one) => one['name'] === account && (one['namespace'] ?? namespace) === namespace)
    );
  });
  if (byUser || byRole) return { check, level: 'ok', message: `${user} may use the privileged constraints` };
  return {
    check,
    level: 'fail',
    message: `${user} may not use the privileged SecurityContextConstraints: its pods are refused`,
    fix: `oc adm policy add-scc-to-user privileged -z ${account} -n ${namespace}`,
  };
}
