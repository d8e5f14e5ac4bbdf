/** Checks whether a cluster accepts the rendered manifests, and whether applied objects exist, are served and work. */

import { GLOBAL_PULL_SECRET, operatorOf } from '../../core/kubernetes/hypershift.ts';
import { type LabelRequirement, selects } from '../../core/kubernetes/label-selector.ts';
import { describeObject, type KubeObject, kubectl } from '../../core/kubernetes/object.ts';
import { isRecord, recordOf, recordsIn, scalarText, textOf, textsIn } from '../../core/record.ts';
import { counted, countedOf, shellWord, someOf } from '../../core/text.ts';
import { CREDENTIAL_PROVIDER } from '../../credential-provider/platform.ts';
import { minorOf } from '../../registry-overrides/olm-catalogs.ts';
import { DAEMON_SET } from '../model/nodes.ts';
import { conditionOf, nodeInfoOf, readinessOf } from '../model/objects.ts';
import { imagesOf, podSpecIn } from '../model/pull.ts';
import { type Check, error, ok, type Told, warning } from './findings.ts';
import type { StatusRow } from './status.ts';

/** A permission of the calling account. */
interface AskedRight {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly allowed: boolean;
}

/** Input of the checks. */
export interface CheckInput {
  /** Objects of the cluster. */
  readonly objects: readonly KubeObject[];
  /** Manifests that the fleet renders for the cluster. */
  readonly plan: readonly KubeObject[];
  /** Names of the systems enabled in the fleet. */
  readonly systems: readonly string[];
  /** Nodes eligible for the global pull secret: by labels, all Linux nodes (default if stand-alone), or labelled by NodePools. */
  readonly nodes: readonly LabelRequirement[] | 'linux' | 'pools';
  /** Version of the API server, such as `v1.36.2`; undefined for a folder. */
  readonly serverVersion?: string;
  /** Rows of `pullwright status`. */
  readonly rows: readonly StatusRow[];
  /** Undefined for a folder, which has no calling account. */
  readonly rights?: readonly AskedRight[];
  /** True for a cluster. In a folder, which may be incomplete, a missing object may exist in the cluster. */
  readonly live: boolean;
}

function ofKind(objects: readonly KubeObject[], ...kinds: readonly string[]): readonly KubeObject[] {
  return objects.filter(({ kind }) => kinds.includes(kind));
}

const fewNames = (names: readonly string[]): string => someOf(names, 4);

const nameOf = ({ metadata }: KubeObject): string => metadata.name;

const groupOf = ({ apiVersion }: KubeObject): string => apiVersion.split('/')[0] ?? '';

const lookAt = (words: readonly string[], ...names: readonly string[]): string =>
  kubectl(words, names) ?? 'Look at it';

const idOf = (object: KubeObject): string => `${groupOf(object)} ${describeObject(object)}`;

/** Live objects that the plan contains. */
function presentOf({ objects, plan }: CheckInput, ...kinds: readonly string[]): readonly KubeObject[] {
  const there = new Map(ofKind(objects, ...kinds).map((one) => [idOf(one), one]));
  return ofKind(plan, ...kinds).flatMap((one) => there.get(idOf(one)) ?? []);
}

/** The newest release that the tests cover. */
const NEWEST_MINOR = 36;

/** Minor release in which a kind of the plan became v1; the newest first. */
const SINCE = [
  ['MutatingAdmissionPolicy', 36],
  ['ValidatingAdmissionPolicy', 30],
] as const;

/** The oldest supported release, unless a kind of the plan requires a newer one. */
const OLDEST_MINOR = 25;

/** Checks the version of the API server. */
function kubernetesLine({ serverVersion = '', plan, live }: CheckInput): Told {
  const minor = minorOf(serverVersion)?.minor;
  const [newest, since] = SINCE.find(([kind]) => ofKind(plan, kind).length > 0) ?? ['', OLDEST_MINOR];
  const wanted = `1.${since} or newer is required${newest === '' ? '' : ` for ${newest} v1`}`;
  const where = live ? '' : ' in a folder';
  if (minor === undefined) return warning(`the version of the API server is unknown${where}; ${wanted}`);
  const message = `the API server is ${serverVersion}; `;
  const instead = newest === 'MutatingAdmissionPolicy' ? ', or choose admission: webhook in the fleet' : '';
  if (minor < since) return error(`${message}${wanted}`, `Upgrade the cluster${instead}`);
  return minor > NEWEST_MINOR
    ? warning(`${message}the newest release that is tested is 1.${NEWEST_MINOR}`)
    : ok(`${message}${wanted}`);
}

/** Property paths of each served version. Only paths are compared, as API servers add defaults. */
function schemasOf({ spec }: KubeObject): ReadonlyMap<string, string> {
  const served = recordsIn(recordOf(spec)['versions']).filter((version) => version['served'] === true);
  return new Map(
    served.map(({ name, schema }) => [scalarText(name), paths(recordOf(schema)['openAPIV3Schema']).join()]),
  );
}

const CRD = 'CustomResourceDefinition';

/** CustomResourceDefinitions of the plan: missing, installed, or installed with a different schema. */
function crdLines({ objects, plan }: CheckInput): readonly Told[] {
  const there = new Map(ofKind(objects, CRD).map((crd) => [nameOf(crd), schemasOf(crd)]));
  return ofKind(plan, CRD).map((crd): Told => {
    const name = nameOf(crd);
    const [present, rendered] = [there.get(name), schemasOf(crd)];
    if (present === undefined) return ok(`${name} is not installed yet: crds/ contains it`);
    const missing = [...rendered.keys()].filter((version) => !present.has(version));
    if (missing.length > 0)
      return error(
        `${name} is installed but does not serve ${missing.join(', ')}`,
        'Apply crds/ before the rest: kubectl apply --server-side -k crds',
      );
    if (JSON.stringify([...present]) !== JSON.stringify([...rendered]))
      return warning(
        `${name} is installed with a different schema than rendered`,
        'Apply crds/ before the rest; if another operator installs this definition, keep it',
      );
    return ok(`${name} is installed, as rendered`);
  });
}

function paths(schema: unknown, at = ''): readonly string[] {
  const { properties, items, additionalProperties } = recordOf(schema);
  const named = Object.entries(recordOf(properties)).flatMap(([name, child]) => [
    `${at}.${name}`,
    ...paths(child, `${at}.${name}`),
  ]);
  const inside = [items, additionalProperties].filter(isRecord).flatMap((one) => paths(one, `${at}[]`));
  return [...named, ...inside].sort();
}

/** Kinds of the plan that another operator defines: without its CRD, the overlay cannot be applied. */
function kindLines({ objects, plan, live }: CheckInput): readonly Told[] {
  const known = ofKind([...objects, ...plan], CRD).map(({ spec }) => {
    const { group, names } = recordOf(spec);
    return `${textOf(recordOf(names)['kind'])} of ${textOf(group)}`;
  });
  const groups = new Map(plan.map((one) => [`${one.kind} of ${groupOf(one)}`, groupOf(one)]));
  return [...groups].flatMap(([name, group]): Told | [] => {
    // Every kube-apiserver serves the built-in groups: those without a domain, or of k8s.io.
    if (known.includes(name) || !group.includes('.') || group.endsWith('.k8s.io')) return [];
    return (live ? error : warning)(
      `${name} is rendered, but ${live ? 'the cluster' : 'the folder'} has no CustomResourceDefinition for it`,
      `Install the operator of ${group}, or remove overlays/${group} and its option from the fleet`,
    );
  });
}

/** Namespaces that every API server creates; dumps often lack them. */
const BUILT_IN = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/** Namespaces that the plan writes to but does not create. */
function namespaceLine({ objects, plan, live }: CheckInput): Told {
  const there = new Set([...BUILT_IN, ...ofKind([...objects, ...plan], 'Namespace').map(nameOf)]);
  const wanted = new Set(plan.flatMap(({ metadata }) => metadata.namespace ?? []));
  const missing = [...wanted].filter((name) => !there.has(name));
  const [first] = missing;
  if (first === undefined) return ok('every namespace exists or is rendered');
  const [are, them] = missing.length === 1 ? ['is', 'it'] : ['are', 'them'];
  return (live ? error : warning)(
    `${fewNames(missing)} ${are} not found${live ? '' : ' in the folder'}, and no rendered manifest creates ${them}`,
    `${kubectl(['create', 'namespace', first], missing) ?? 'Create them'}; openshift-config is rendered with createConfigNamespace: true`,
  );
}

/** Checks the PriorityClasses of the plan's pods. */
function priorityLines({ objects, plan, live }: CheckInput): readonly Told[] {
  const names = new Set(plan.flatMap((object) => textOf(podSpecIn(object)['priorityClassName']) || []));
  const there = ofKind([...objects, ...plan], 'PriorityClass').map(nameOf);
  return [...names].map((name): Told => {
    if (name.startsWith('system-')) return ok(`${name} exists in every cluster`);
    if (there.includes(name)) return ok(`${name} exists`);
    return (live ? error : warning)(
      `${name} is not found${live ? ': pods that name it are rejected' : ' in the folder'}`,
      'Create it, or set another with agent.priorityClassName in the fleet',
    );
  });
}

/** Permissions for applying the plan that the calling account lacks. */
function rightsLine({ rights }: CheckInput): Told {
  if (rights === undefined) return warning('not checked: a folder has no user');
  const denied = rights.filter(({ allowed }) => !allowed);
  if (denied.length === 0) return ok(`this account may write all ${rights.length} kinds of the plan`);
  const names = denied.map(
    ({ verb, resource, group, namespace }) =>
      `${verb} ${resource}${group === '' ? '' : `.${group}`}${namespace === undefined ? '' : ` in ${namespace}`}`,
  );
  return error(
    `this account may not ${fewNames(names)}`,
    'Apply as an account with these rights, such as that of the GitOps tool (--as system:serviceaccount:NAMESPACE:NAME)',
  );
}

/** Objects of the plan that exist with another owner. */
function foreignLine(input: CheckInput): Told | undefined {
  const foreign = presentOf(input, ...new Set(input.plan.map(({ kind }) => kind))).filter(
    ({ kind, metadata }) =>
      kind !== 'Namespace' &&
      kind !== CRD &&
      metadata.labels?.['app.kubernetes.io/managed-by'] !== 'pullwright',
  );
  if (foreign.length === 0) return undefined;
  return warning(
    `${fewNames(foreign.map(describeObject))} ${foreign.length === 1 ? 'exists and is' : 'exist and are'} not managed by Pullwright`,
    'Check their owner (kubectl get -o yaml --show-managed-fields) before you overwrite them',
  );
}

// Detects installed tools that write the same objects, and what to resolve before Pullwright runs alongside.

interface Tool {
  readonly name: string;
  /** API groups that the tool defines. */
  readonly groups?: readonly string[];
  /** Matches image names, after the last slash. */
  readonly image?: RegExp;
  /** Annotations that the tool reads or sets on Secrets. */
  readonly annotation?: RegExp;
  readonly does: string;
  /** @default {STOP} */
  readonly fix?: string;
}

const STOP =
  'Write a profile in its place (docs/import.md), and stop it before Pullwright manages the same Secrets';

/** Source of the rule: the documents and charts of each tool. */
const TOOLS: readonly Tool[] = [
  {
    name: 'Kruise',
    groups: ['apps.kruise.io'],
    image: /^kruise-manager\b/,
    does: 'injects the pull secrets of SidecarSets at admission',
    fix: 'Both may run: a name that both add is added once; migrate SidecarSets to profiles one by one',
  },
  {
    name: 'reflector',
    image: /^kubernetes-reflector\b/,
    annotation: /^reflector\.v1\.k8s\.emberstack\.com\//,
    does: 'copies Secrets between namespaces',
  },
  {
    name: 'replicator',
    image: /^kubernetes-replicator\b/,
    annotation: /^replicator\.v1\.mittwald\.de\//,
    does: 'copies Secrets between namespaces',
  },
  {
    name: 'imps',
    groups: ['images.banzaicloud.io'],
    image: /^imagepullsecrets?\b/,
    does: 'writes pull secrets into namespaces',
  },
  {
    name: 'imagepullsecret-patcher',
    image: /^imagepullsecret-patcher\b/,
    does: 'writes a pull secret into every namespace and into the lists of ServiceAccounts',
  },
  {
    name: 'registry-creds',
    groups: ['ops.alexellis.io'],
    image: /^registry-creds\b/,
    does: 'writes pull secrets into namespaces and into the lists of ServiceAccounts',
  },
  {
    name: 'External Secrets',
    groups: ['external-secrets.io'],
    does: 'writes Secrets from a vault',
    fix: 'Use its Secrets as sources of profiles, and let no ExternalSecret write a Secret that a profile delivers',
  },
];

/** Reports installed tools, found by their definitions, Deployments or annotations. */
function ownerLines({ objects }: CheckInput): readonly Told[] {
  return TOOLS.flatMap((tool): Told | [] => {
    const seen = objects.find((object) => shows(tool, object));
    if (seen === undefined) return [];
    const { namespace, name } = seen.metadata;
    const where = `${seen.kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
    return warning(`${tool.name} is installed (${where}): it ${tool.does}`, tool.fix ?? STOP);
  });
}

/** Whether the object is a CRD or resource of the tool, its Deployment, or a Secret with its annotation. */
function shows({ groups = [], image, annotation }: Tool, object: KubeObject): boolean {
  const { kind, spec, metadata } = object;
  if (groups.includes(kind === CRD ? scalarText(recordOf(spec)['group']) : groupOf(object))) return true;
  if (kind === 'Deployment')
    return imagesOf(podSpecIn(object)).some((one) => image?.test(one.split('/').at(-1) ?? ''));
  return kind === 'Secret' && Object.keys(metadata.annotations ?? {}).some((key) => annotation?.test(key));
}

/** Warns if HyperShift's Hosted Cluster Config Operator deploys the agent itself. */
function hypershiftLine({ objects }: CheckInput): Told | undefined {
  const { namespace, name } = DAEMON_SET;
  const operator = operatorOf(objects.find((one) => describeObject(one) === describeObject(DAEMON_SET)));
  if (operator === undefined) return undefined;
  return warning(
    `${operator} deploys DaemonSet ${namespace}/${name}: Pullwright only observes it`,
    'Keep it, or take over with mode: own after reading its plan (docs/global-pull-secret.md)',
  );
}

/** Objects of the plan that are missing. */
function presentLine({ objects, plan }: CheckInput): Told {
  const there = new Set(objects.map(idOf));
  const missing = plan.filter((one) => !there.has(idOf(one))).map(describeObject);
  if (missing.length > 0)
    return error(
      `${countedOf(missing.length, plan.length, ['object', 'objects'], ['of the plan is', 'of the plan are'])} not found: ${fewNames(missing)}`,
      'Apply what synth renders for this cluster, or check the GitOps tool',
    );
  if (plan.length === 1) return ok('the object of the plan exists');
  return ok(`all ${plan.length} objects of the plan exist`);
}

/** Whether the API server serves the CRD. */
function servedLine(crd: KubeObject): Told {
  const { name } = crd.metadata;
  const established = conditionOf(crd, 'Established');
  if (established?.status === 'True') return ok(`${name} is served`);
  const why = established?.message || 'the API server reports no reason';
  return error(`${name} is not served: ${why}`, lookAt(['get', 'crd', name, '-o', 'yaml'], name));
}

/** Whether all desired pods are ready. */
function workloadLine(workload: KubeObject): Told {
  const { metadata, kind } = workload;
  const { namespace = '' } = metadata;
  const name = `${kind} ${namespace}/${metadata.name}`;
  const { ready, desired, observed } = readinessOf(workload);
  const words = ['describe', kind.toLowerCase(), '-n', namespace, metadata.name];
  const look = lookAt(words, namespace, metadata.name);
  const fix = `${look}; for a pod that fails to pull, pullwright doctor --all -n ${shellWord(namespace)}`;
  if (observed < Math.max(1, metadata.generation ?? 0))
    return error(`${name} has not been reconciled yet`, fix);
  if (desired === 0)
    return kind === 'DaemonSet'
      ? error(
          `${name} expects no pod: no node is eligible`,
          'pullwright check --pre shows which nodes are eligible, and why others are not',
        )
      : error(`${name} expects no pod`, 'Set its replicas');
  if (ready < desired) return error(`${name} has ${ready} of ${desired} pods ready`, fix);
  return ok(`${name} has all ${desired} pods ready`);
}

/** Policies need a binding and expressions that the API server accepts; webhooks need a CA and a ready endpoint. */
function admissionLines(input: CheckInput): readonly Told[] {
  const { objects } = input;
  const policies = presentOf(input, 'ValidatingAdmissionPolicy', 'MutatingAdmissionPolicy');
  return [
    ...policies.map((policy) => policyLine(policy, objects)),
    ...ofKind(objects, 'MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration')
      .filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/part-of'] === 'pullwright')
      .map((hook) => webhookLine(hook, objects)),
  ];
}

function policyLine({ kind, metadata: { name }, status }: KubeObject, objects: readonly KubeObject[]): Told {
  const policy = `${kind} ${name}`;
  const bindings = ofKind(objects, `${kind}Binding`).map(({ spec }) => recordOf(spec)['policyName']);
  const { typeChecking, observedGeneration } = recordOf(status);
  if (!bindings.includes(name))
    return error(
      `${policy} has no binding: it rejects nothing`,
      'Apply its binding, which is rendered with it',
    );
  if (recordsIn(recordOf(typeChecking)['expressionWarnings']).length > 0)
    return error(
      `${policy} has expressions that the API server rejects`,
      lookAt(['get', kind.toLowerCase(), name, '-o', 'jsonpath={.status.typeChecking}'], name),
    );
  if (kind !== 'MutatingAdmissionPolicy' && observedGeneration === undefined)
    return warning(`${policy} is bound, but the controller manager has not checked its expressions yet`);
  return ok(`${policy} is bound, and its expressions are accepted`);
}

function webhookLine(hook: KubeObject, objects: readonly KubeObject[]): Told {
  const { name } = hook.metadata;
  const configs = recordsIn(hook['webhooks']).map(({ clientConfig }) => recordOf(clientConfig));
  if (configs.some(({ caBundle }) => textOf(caBundle) === ''))
    return error(
      `${name} has no caBundle: the API server cannot trust the webhook`,
      'Check the issuer of its certificate: the log of the webhook, or cert-manager',
    );
  const answering = ofKind(objects, 'EndpointSlice')
    .filter((slice) =>
      recordsIn(slice['endpoints']).some(({ conditions }) => recordOf(conditions)['ready'] === true),
    )
    .map(({ metadata: { namespace, labels } }) => `${namespace}/${labels?.['kubernetes.io/service-name']}`);
  const silent = configs
    .map(({ service }) => recordOf(service))
    .map(({ namespace, name: of }) => `${scalarText(namespace)}/${scalarText(of)}`)
    .filter((service) => !answering.includes(service));
  if (silent.length > 0)
    return error(
      `${name} points to a Service without a ready pod: ${silent.join(', ')}`,
      'Check the pods of the webhook: kubectl get pods -n NAMESPACE -l app.kubernetes.io/part-of=pullwright',
    );
  return ok(`${name} has a CA, and its Service has a ready pod`);
}

/** Conditions of objects and nodes: one line for all ready ones, and one for each other. */
function statusLines({ rows }: CheckInput): readonly Told[] {
  if (rows.length === 0) return [warning('no status reported yet', 'pullwright status --watch')];
  const bad = rows.filter(({ state }) => state !== 'Ready');
  const good = rows.length - bad.length;
  return [
    ...(good === 0 ? [] : [ok(`${good} of ${rows.length} objects are ready`)]),
    ...bad.map(({ subject, check, message, state }) => ({
      ...(state === 'Attention'
        ? error(`${subject}: ${check}: ${message}`, 'pullwright status shows details')
        : warning(`${subject}: ${check}: ${message}`, 'Wait, then check again')),
      subject,
    })),
  ];
}

// Checks nodes: which are eligible, what they run, and whether privileged pods are admitted.

const isOfMco = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.['machineconfiguration.openshift.io/currentConfig'] !== undefined;

/** Counts the nodes that are eligible for the node components of the fleet. */
function eligibleLine({ systems, objects, live, nodes: wanted }: CheckInput): Told | undefined {
  if (!systems.includes('global-pull-secret')) return undefined;
  const nodes = ofKind(objects, 'Node');
  if (nodes.length === 0) return warning(`${live ? 'the cluster' : 'the folder'} has no node`);
  const free = nodes.filter((node) => !isOfMco(node));
  const taken = free.filter((node) => isTaken(node, wanted));
  const message = `${countedOf(taken.length, nodes.length, ['node', 'nodes'], ['is', 'are'])} eligible`;
  if (taken.length > 0) return ok(message);
  if (free.length === 0)
    return error(
      `${message}: the Machine Config Operator manages all of them`,
      'Put the entries into openshift-config/pull-secret: the Machine Config Operator delivers it to its nodes',
    );
  const advice = 'Select nodes with "nodes" of global-pull-secret';
  if (wanted !== 'pools')
    return error(`${message}: none has "nodes" of global-pull-secret in the fleet`, advice);
  const labels = `the reconciler sets the label ${GLOBAL_PULL_SECRET.nodeLabel}=true on nodes of NodePools with upgradeType Replace`;
  return warning(`${message} yet: ${labels}`, `${advice} if the NodePools have InPlace`);
}

function isTaken({ metadata: { labels = {} } }: KubeObject, wanted: CheckInput['nodes']): boolean {
  if (labels[GLOBAL_PULL_SECRET.nodeLabel] === 'true') return true;
  if (wanted === 'pools') return false;
  return wanted === 'linux' ? labels['kubernetes.io/os'] === 'linux' : selects(wanted, labels);
}

/** Warns about nodes that the Machine Config Operator manages. */
function mcoLine({ objects }: CheckInput): Told | undefined {
  const nodes = ofKind(objects, 'Node').filter(isOfMco);
  if (nodes.length === 0) return undefined;
  return warning(
    `the Machine Config Operator manages ${counted(nodes.length, 'node')} (${fewNames(nodes.map(nameOf))}): ${nodes.length === 1 ? 'its' : 'their'} files belong to it`,
    'Entries for these nodes belong in openshift-config/pull-secret; a MachineConfig delivers the credential provider',
  );
}

/** Runtimes and kubelet versions, for the components that run on nodes. */
function runtimeLines({ objects, systems }: CheckInput): readonly Told[] {
  const system = ['credential-provider', 'registry-overrides'].find((one) => systems.includes(one));
  const known = ofKind(objects, 'Node')
    .map((node) => ({ name: nameOf(node), ...nodeInfoOf(node) }))
    .filter(({ runtime }) => runtime !== '');
  if (known.length === 0) return [];
  const others = known.filter(({ runtime }) => !runtime.startsWith('cri-o://'));
  const oldest = CREDENTIAL_PROVIDER.minimumMinor;
  const old = known.filter(({ kubelet }) => (minorOf(kubelet)?.minor ?? oldest) < oldest);
  const runtime =
    system !== undefined && others.length > 0
      ? error(
          `${countedOf(others.length, known.length, ['node', 'nodes'], ['does', 'do'])} not run CRI-O (${fewNames(others.map(({ name }) => name))}): ${system} has no effect there`,
          `Remove ${system} from the fleet for this cluster, or run CRI-O`,
        )
      : ok(`the nodes run ${fewNames([...new Set(known.map(({ runtime }) => runtime))])}`);
  if (!systems.includes('credential-provider') || old.length === 0) return [runtime];
  const kubelet = error(
    `${countedOf(old.length, known.length, ['kubelet', 'kubelets'], ['is', 'are'])} older than 1.${oldest} (${fewNames(old.map(({ name }) => name))}): the credential provider is not installed there`,
    'Upgrade these nodes',
  );
  return [runtime, { ...kubelet, check: 'kubelet' }];
}

const ENFORCE = 'pod-security.kubernetes.io/enforce';

/** Whether namespaces admit the plan's pods: pod security, and SecurityContextConstraints if the cluster has them. */
function podSecurityLines({ objects, plan }: CheckInput): readonly Told[] {
  const namespaces = new Map(ofKind([...plan, ...objects], 'Namespace').map((one) => [nameOf(one), one]));
  const openshift = ofKind(objects, 'SecurityContextConstraints').length > 0;
  return plan.filter(isPrivileged).flatMap((workload): readonly Told[] => {
    const { name, namespace = '' } = workload.metadata;
    const labels = namespaces.get(namespace)?.metadata.labels ?? {};
    const subject = `${workload.kind} ${namespace}/${name} is privileged, and its namespace`;
    const level = labels[ENFORCE] ?? 'privileged';
    const security =
      level === 'privileged'
        ? ok(`${subject} admits it`)
        : error(
            `${subject} enforces "${level}"`,
            lookAt(['label', 'namespace', namespace, `${ENFORCE}=privileged`, '--overwrite'], namespace),
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

/** SecurityContextConstraints do not apply in namespaces with run level 0 or 1. */
function sccLine(
  workload: KubeObject,
  labels: Readonly<Record<string, string>>,
  objects: readonly KubeObject[],
): Told {
  const { namespace = '' } = workload.metadata;
  const account = textOf(podSpecIn(workload)['serviceAccountName']) || 'default';
  const user = `system:serviceaccount:${namespace}:${account}`;
  if (['0', '1'].includes(labels['openshift.io/run-level'] ?? ''))
    return ok(`namespace ${namespace} has a run level that exempts it from constraints`);
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
    `${user} may not use the privileged SecurityContextConstraints: its pods are rejected`,
    `oc adm policy add-scc-to-user privileged -z ${shellWord(account)} -n ${shellWord(namespace)}`,
  );
}

/** Checks before apply: whether the cluster accepts the rendered manifests. */
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
  { id: 'other-operators', run: ownerLines, ok: 'no other tool that writes pull secrets found' },
  { id: 'foreign-objects', run: foreignLine },
  { id: 'rights', run: rightsLine },
];

/** Checks after apply: whether all objects exist and work. */
export const AFTER_CHECKS: readonly Check<CheckInput>[] = [
  { id: 'objects', run: presentLine },
  { id: 'crds', run: (input) => presentOf(input, CRD).map(servedLine) },
  {
    id: 'workloads',
    run: (input) => presentOf(input, 'Deployment', 'DaemonSet', 'StatefulSet').map(workloadLine),
  },
  { id: 'admission', run: admissionLines },
  { id: 'status', run: statusLines },
];
