/** Whether what was applied is there, served and at work. */

import { GLOBAL_PULL_SECRET } from '../../core/kubernetes/hypershift.ts';
import { type LabelRequirement, selects } from '../../core/kubernetes/label-selector.ts';
import { describeObject, type KubeObject, kubectl } from '../../core/kubernetes/object.ts';
import { recordOf, recordsIn, scalarText, textOf, textsIn } from '../../core/record.ts';
import { counted, countedOf, shellWord } from '../../core/text.ts';
import { conditionOf, nodeInfoOf, readinessOf } from '../model/objects.ts';
import { podSpecIn } from '../model/pull.ts';
import { type Check, error, ok, type Told, warning } from './findings.ts';
import {
  type CheckInput,
  crdLines,
  fewNames,
  foreignLines,
  hypershiftLine,
  kindLines,
  kubernetesLine,
  namespaceLine,
  ofKind,
  ownerLines,
  priorityLines,
  releaseMinor,
  rightsLine,
} from './installation.ts';

const keyOf = ({ kind, metadata }: KubeObject): string =>
  describeObject({ kind, namespace: metadata.namespace, name: metadata.name });

/** Objects of the plan that are not there. */
function presentLine({ objects, plan }: CheckInput): Told {
  const there = new Set(objects.map(keyOf));
  const missing = plan.map(keyOf).filter((key) => !there.has(key));
  if (missing.length === 0)
    return ok(
      plan.length === 1
        ? 'the object of the plan is there'
        : `all ${plan.length} objects of the plan are there`,
    );
  return error(
    `${countedOf(missing.length, plan.length, ['object', 'objects'], ['of the plan is', 'of the plan are'])} not there: ${fewNames(missing)}`,
    'Apply what synth renders for this cluster, or look at what the GitOps tool says of it',
  );
}

/** Objects of the plan that are there, as they are. */
function present({ objects, plan }: CheckInput, ...kinds: readonly string[]): readonly KubeObject[] {
  const there = new Map(ofKind(objects, ...kinds).map((one) => [keyOf(one), one]));
  return ofKind(plan, ...kinds).flatMap((one) => there.get(keyOf(one)) ?? []);
}

/** Whether the API server serves a definition. */
function servedLine(crd: KubeObject): Told {
  const { name } = crd.metadata;
  const established = conditionOf(crd, 'Established');
  if (established?.status === 'True') return ok(`${name} is served`);
  return error(
    `${name} is not served: ${established?.message || 'the API server says nothing of it'}`,
    kubectl(['get', 'crd', name, '-o', 'yaml'], [name]) ?? 'Look at it',
  );
}

/** As many pods ready as desired. */
function workloadLine(workload: KubeObject): Told {
  const { metadata, kind } = workload;
  const name = `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
  const { ready, desired, observed } = readinessOf(workload);
  const { namespace = '' } = metadata;
  const words = ['describe', kind.toLowerCase(), '-n', namespace, metadata.name];
  const look = kubectl(words, [namespace, metadata.name]) ?? 'Look at it';
  const fix = `${look}; for a pod that does not pull, pullwright doctor --all -n ${shellWord(namespace)}`;
  if (observed < Math.max(1, metadata.generation ?? 0))
    return error(`${name} has not been looked at by its controller yet`, fix);
  if (desired === 0)
    return error(
      `${name} needs no pod${kind === 'DaemonSet' ? ': no node is eligible' : ''}`,
      kind === 'DaemonSet'
        ? 'pullwright check --pre says which nodes are eligible, and why not'
        : 'Set its replicas',
    );
  if (ready < desired) return error(`${name} has ${ready} of ${desired} pods ready`, fix);
  return ok(`${name} has all ${desired} pods ready`);
}

/** Admission: policies whose expressions the API server has checked, with a binding; webhooks with a CA and an answering service. */
function admissionLines(input: CheckInput): readonly Told[] {
  const { objects } = input;
  const hooks = ofKind(objects, 'MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration').filter(
    ({ metadata }) => metadata.labels?.['app.kubernetes.io/part-of'] === 'pullwright',
  );
  return [
    ...present(input, 'ValidatingAdmissionPolicy', 'MutatingAdmissionPolicy').map((policy) =>
      policyLine(policy, objects),
    ),
    ...hooks.map((hook) => webhookLine(hook, objects)),
  ];
}

function policyLine(policy: KubeObject, objects: readonly KubeObject[]): Told {
  const { name } = policy.metadata;
  const bound = ofKind(objects, `${policy.kind}Binding`).some(
    ({ spec }) => recordOf(spec)['policyName'] === name,
  );
  const { typeChecking, observedGeneration } = recordOf(policy.status);
  const warnings = recordsIn(recordOf(typeChecking)['expressionWarnings']);
  if (!bound)
    return error(
      `${policy.kind} ${name} has no binding: it refuses nothing`,
      'Apply its binding, which is rendered beside it',
    );
  if (warnings.length > 0)
    return error(
      `${policy.kind} ${name} has expressions that the API server does not accept`,
      kubectl(['get', policy.kind.toLowerCase(), name, '-o', 'jsonpath={.status.typeChecking}'], [name]) ??
        'Look at its status',
    );
  const seen = policy.kind === 'MutatingAdmissionPolicy' || observedGeneration !== undefined;
  return seen
    ? ok(`${policy.kind} ${name} is bound, and its expressions are accepted`)
    : warning(
        `${policy.kind} ${name} is bound, and the controller manager has not checked its expressions yet`,
      );
}

function webhookLine(hook: KubeObject, objects: readonly KubeObject[]): Told {
  const { name } = hook.metadata;
  const configs = recordsIn(hook['webhooks']).map(({ clientConfig }) => recordOf(clientConfig));
  if (configs.some(({ caBundle }) => typeof caBundle !== 'string' || caBundle === ''))
    return error(
      `${name} has no caBundle: the API server cannot trust the webhook`,
      'Look at what brings its certificate: the log of the webhook, or cert-manager',
    );
  const silent = configs
    .map(({ service }) => recordOf(service))
    .map((service) => ({ namespace: scalarText(service['namespace']), name: scalarText(service['name']) }))
    .filter((service) => !answers(objects, service));
  if (silent.length > 0)
    return error(
      `${name} leads to a service without a ready pod: ${silent.map((one) => `${one.namespace}/${one.name}`).join(', ')}`,
      'Look at the pods of the webhook: kubectl get pods -n NAMESPACE -l app.kubernetes.io/part-of=pullwright',
    );
  return ok(`${name} has a CA, and its service a ready pod`);
}

function answers(
  objects: readonly KubeObject[],
  service: { readonly namespace: string; readonly name: string },
): boolean {
  return ofKind(objects, 'EndpointSlice')
    .filter(
      ({ metadata }) =>
        metadata.namespace === service.namespace &&
        metadata.labels?.['kubernetes.io/service-name'] === service.name,
    )
    .flatMap((slice) => recordsIn(slice['endpoints']))
    .some(({ conditions }) => recordOf(conditions)['ready'] === true);
}

/** What reports by conditions, nodes among it: one line for all that is in order, and one for each that is not. */
function statusLines({ rows }: CheckInput): readonly Told[] {
  if (rows.length === 0) return [warning('nothing reports yet', 'pullwright status --watch')];
  const bad = rows.filter(({ state }) => state !== 'Ready');
  const good = rows.length - bad.length;
  return [
    ...(good === 0 ? [] : [ok(`${good} of ${rows.length} that report are in order`)]),
    ...bad.map(({ subject, check, message, state }) => {
      const said = `${subject}: ${check}: ${message}`;
      const told =
        state === 'Attention'
          ? error(said, 'pullwright status says more')
          : warning(said, 'Wait, and look again');
      return { ...told, subject };
    }),
  ];
}

// Whether the nodes of a cluster can take part: which are eligible, what they run, and whether their pods are let in.

const MACHINE_CONFIG = 'machineconfiguration.openshift.io/currentConfig';

/** Nodes that are eligible for node components of the fleet. */
function eligibleLine(input: CheckInput): readonly Told[] {
  if (!input.systems.includes('global-pull-secret')) return [];
  const nodes = ofKind(input.objects, 'Node');
  if (nodes.length === 0) return [warning(`${input.live ? 'the cluster' : 'the folder'} has no node`)];
  const free = nodes.filter(({ metadata }) => metadata.annotations?.[MACHINE_CONFIG] === undefined);
  const taken = free.filter((node) => isTaken(node, input.nodes));
  const message = `${countedOf(taken.length, nodes.length, ['node', 'nodes'], ['is', 'are'])} eligible`;
  if (taken.length > 0) return [ok(message)];
  if (free.length === 0)
    return [
      error(
        `${message}: the Machine Config Operator manages all of them`,
        'Put the entries into openshift-config/pull-secret: the Machine Config Operator delivers it to its nodes',
      ),
    ];
  const wants =
    input.nodes === 'pools'
      ? `the label ${GLOBAL_PULL_SECRET.nodeLabel}=true, which NodePools with upgradeType Replace give`
      : '"nodes" of global-pull-secret in the fleet';
  return [error(`${message}: none has ${wants}`, 'Select nodes with "nodes" of global-pull-secret')];
}

function isTaken({ metadata: { labels = {} } }: KubeObject, wanted: CheckInput['nodes']): boolean {
  if (labels[GLOBAL_PULL_SECRET.nodeLabel] === 'true') return true;
  if (wanted === 'pools') return false;
  const requirements: readonly LabelRequirement[] =
    wanted === 'linux' ? [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }] : wanted;
  return selects(requirements, labels);
}

/** The Machine Config Operator. */
function mcoLine({ objects }: CheckInput): readonly Told[] {
  const nodes = ofKind(objects, 'Node').filter(
    ({ metadata }) => metadata.annotations?.[MACHINE_CONFIG] !== undefined,
  );
  if (nodes.length === 0) return [];
  return [
    warning(
      `the Machine Config Operator looks after ${counted(nodes.length, 'node')} (${fewNames(nodes.map(({ metadata }) => metadata.name))}): ${nodes.length === 1 ? 'its' : 'their'} files are left to it`,
      'Entries for these nodes belong into openshift-config/pull-secret; the credential provider comes to them by a MachineConfig',
    ),
  ];
}

/** Runtimes and kubelets, for what runs on nodes. */
function runtimeLines({ objects, systems }: CheckInput): readonly Told[] {
  const provider = systems.includes('credential-provider');
  const system = ['credential-provider', 'registry-overrides'].find((one) => systems.includes(one));
  const known = ofKind(objects, 'Node')
    .map((node) => ({ name: node.metadata.name, ...nodeInfoOf(node) }))
    .filter(({ runtime }) => runtime !== '');
  if (known.length === 0) return [];
  const others = known.filter(({ runtime }) => !runtime.startsWith('cri-o://'));
  const old = known.filter(({ kubelet }) => (releaseMinor(kubelet) ?? PROVIDER_MINOR) < PROVIDER_MINOR);
  return [
    system !== undefined && others.length > 0
      ? error(
          `${countedOf(others.length, known.length, ['node', 'nodes'], ['does', 'do'])} not run CRI-O (${fewNames(others.map(({ name }) => name))}): ${system} does nothing there`,
          `Leave ${system} out of the fleet for this cluster, or run CRI-O`,
        )
      : ok(`the nodes run ${fewNames([...new Set(known.map(({ runtime }) => runtime))])}`),
    ...(provider && old.length > 0
      ? [
          {
            ...error(
              `${countedOf(old.length, known.length, ['kubelet', 'kubelets'], ['is', 'are'])} older than 1.${PROVIDER_MINOR} (${fewNames(old.map(({ name }) => name))}): the credential provider is not put there`,
              'Upgrade these nodes',
            ),
            check: 'kubelet',
          },
        ]
      : []),
  ];
}

/** Kubelet and CRI-O that the credential provider needs. */
const PROVIDER_MINOR = 34;

const ENFORCE = 'pod-security.kubernetes.io/enforce';

/** Whether the namespaces of the plan let its pods in: pod security, and SecurityContextConstraints where the cluster has them. */
function podSecurityLines({ objects, plan }: CheckInput): readonly Told[] {
  const namespaces = new Map(ofKind(plan, 'Namespace').map((one) => [one.metadata.name, one]));
  for (const one of ofKind(objects, 'Namespace')) namespaces.set(one.metadata.name, one);
  const openshift = ofKind(objects, 'SecurityContextConstraints').length > 0;
  return plan.filter(isPrivileged).flatMap((workload): readonly Told[] => {
    const { name, namespace = '' } = workload.metadata;
    const labels = namespaces.get(namespace)?.metadata.labels ?? {};
    const subject = `${workload.kind} ${namespace}/${name}`;
    const level = labels[ENFORCE];
    const security: Told =
      level === undefined || level === 'privileged'
        ? ok(`${subject} is privileged, and its namespace lets it in`)
        : error(
            `${subject} is privileged, and its namespace enforces "${level}"`,
            kubectl(['label', 'namespace', namespace, `${ENFORCE}=privileged`, '--overwrite'], [namespace]) ??
              'Label the namespace',
          );
    return openshift ? [security, { ...sccLine(workload, labels, objects), check: 'scc' }] : [security];
  });
}

function isPrivileged(workload: KubeObject): boolean {
  const spec = podSpecIn(workload);
  return (
    spec['hostPID'] === true ||
    spec['hostNetwork'] === true ||
    recordsIn(spec['volumes']).some(({ hostPath }) => hostPath !== undefined) ||
    recordsIn(spec['containers']).some(
      ({ securityContext }) => recordOf(securityContext)['privileged'] === true,
    )
  );
}

/** In namespaces of run level 0 and 1 SecurityContextConstraints do not apply. */
function sccLine(
  workload: KubeObject,
  labels: Readonly<Record<string, string>>,
  objects: readonly KubeObject[],
): Told {
  const { namespace = '' } = workload.metadata;
  const account = textOf(podSpecIn(workload)['serviceAccountName']) || 'default';
  const user = `system:serviceaccount:${namespace}:${account}`;
  if (['0', '1'].includes(labels['openshift.io/run-level'] ?? ''))
    return ok(`namespace ${namespace} has a run level to which no constraints apply`);
  const byUser = ofKind(objects, 'SecurityContextConstraints').some(
    (scc) => scc['allowPrivilegedContainer'] === true && textsIn(scc['users']).includes(user),
  );
  const byRole = ofKind(objects, 'RoleBinding', 'ClusterRoleBinding').some(
    (binding) =>
      recordOf(binding['roleRef'])['name'] === 'system:openshift:scc:privileged' &&
      recordsIn(binding['subjects']).some(
        (one) => one['name'] === account && (one['namespace'] ?? namespace) === namespace,
      ),
  );
  if (byUser || byRole) return ok(`${user} may use the privileged constraints`);
  return error(
    `${user} may not use the privileged SecurityContextConstraints: its pods are refused`,
    `oc adm policy add-scc-to-user privileged -z ${shellWord(account)} -n ${shellWord(namespace)}`,
  );
}

/** Whether the cluster can take what is rendered. */
export const BEFORE_CHECKS: readonly Check<CheckInput>[] = [
  { id: 'kubernetes', run: kubernetesLine },
  { id: 'crds', run: crdLines },
  { id: 'kinds', run: kindLines },
  { id: 'namespaces', run: namespaceLine },
  { id: 'priority-class', run: priorityLines },
  { id: 'pod-security', run: podSecurityLines },
  { id: 'eligible-nodes', run: eligibleLine },
  { id: 'runtime', run: runtimeLines },
  { id: 'machine-config-operator', run: mcoLine },
  { id: 'hypershift', run: hypershiftLine },
  { id: 'other-operators', run: ownerLines },
  { id: 'foreign-objects', run: foreignLines },
  { id: 'rights', run: rightsLine },
];

/** Whether what was applied is there and at work. */
export const AFTER_CHECKS: readonly Check<CheckInput>[] = [
  { id: 'objects', run: presentLine },
  { id: 'crds', run: (input) => present(input, 'CustomResourceDefinition').map(servedLine) },
  {
    id: 'workloads',
    run: (input) => present(input, 'Deployment', 'DaemonSet', 'StatefulSet').map(workloadLine),
  },
  { id: 'admission', run: admissionLines },
  { id: 'status', run: statusLines },
];
