/** Whether a cluster can take what is rendered: its version, definitions, kinds, priority classes, and what the account may do. */

import { GLOBAL_PULL_SECRET, operatorOf } from '../../core/kubernetes/hypershift.ts';
import type { LabelRequirement } from '../../core/kubernetes/label-selector.ts';
import { describeObject, type KubeObject, kubectl } from '../../core/kubernetes/object.ts';
import { isRecord, recordOf, recordsIn, scalarText, textOf } from '../../core/record.ts';
import { someOf } from '../../core/text.ts';
import { imagesOf, podSpecIn } from '../model/pull.ts';
import { error, ok, type Told, warning } from './findings.ts';
import type { StatusRow } from './status.ts';

/** A right of the calling account. */
export interface AskedRight {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly allowed: boolean;
}

/** What is looked at. */
export interface CheckInput {
  /** Objects of the cluster. */
  readonly objects: readonly KubeObject[];
  /** What the fleet renders for it. */
  readonly plan: readonly KubeObject[];
  /** Names of the systems that the fleet switches on. */
  readonly systems: readonly string[];
  /** Nodes that the fleet takes into the global pull secret; all Linux nodes where it says nothing of a stand-alone cluster. */
  readonly nodes: readonly LabelRequirement[] | 'linux' | 'pools';
  /** Of the API server, such as `v1.36.2`; undefined in a folder. */
  readonly serverVersion?: string;
  /** What `status` says. */
  readonly rows: readonly StatusRow[];
  /** Undefined for a folder, which has no account. */
  readonly rights?: readonly AskedRight[];
  /** A cluster, where what is not found does not exist; a folder may hold a part of one. */
  readonly live: boolean;
}

/** Objects of a kind. */
export function ofKind(objects: readonly KubeObject[], ...kinds: readonly string[]): readonly KubeObject[] {
  return objects.filter(({ kind }) => kinds.includes(kind));
}

/** Names of a list, the first few of them. */
export const fewNames = (names: readonly string[]): string => someOf(names, 4);

/** The newest release that the suites run on. */
const NEWEST_MINOR = 36;

/** What a kind of the plan needs of the API server, by the release in which it became v1. */
const SINCE: Readonly<Record<string, number>> = {
  ValidatingAdmissionPolicy: 30,
  MutatingAdmissionPolicy: 36,
};

/** The minor release in `v1.36.2+k3s1`; undefined for anything else. */
export function releaseMinor(version: string): number | undefined {
  const found = /^v?1\.(\d{1,3})(?:\D|$)/.exec(version)?.[1];
  return found === undefined ? undefined : Number(found);
}

/** The oldest release, unless a kind of the plan requires a newer one. */
const OLDEST_MINOR = 25;

/** The kind of the plan that requires the newest API server. */
function mostWanted(plan: readonly KubeObject[]): { readonly kind?: string; readonly since: number } {
  const wants = plan.map(({ kind }) => ({ kind, since: SINCE[kind] ?? OLDEST_MINOR }));
  const [most] = wants.toSorted((a, b) => b.since - a.since);
  return most === undefined || most.since === OLDEST_MINOR ? { since: OLDEST_MINOR } : most;
}

/** The API server. */
export function kubernetesLine({ serverVersion = '', plan, live }: CheckInput): Told {
  const minor = releaseMinor(serverVersion);
  const { kind, since } = mostWanted(plan);
  const wanted = `1.${since} or newer is required${kind === undefined ? '' : ` for ${kind} v1`}`;
  const where = live ? '' : ' from a folder';
  if (minor === undefined) return warning(`the version of the API server is not known${where}; ${wanted}`);
  const message = `the API server is ${serverVersion}; ${wanted}`;
  if (minor < since)
    return error(
      message,
      kind === 'MutatingAdmissionPolicy'
        ? 'Upgrade the cluster, or choose admission: webhook in the fleet'
        : 'Upgrade the cluster',
    );
  if (minor > NEWEST_MINOR)
    return warning(
      `the API server is ${serverVersion}; the newest release that is tested is 1.${NEWEST_MINOR}`,
    );
  return ok(message);
}

interface Definition {
  /** `PullStatus of pullwright.dev` */
  readonly name: string;
  readonly versions: readonly string[];
  /** Property names by path: defaults that an API server adds make no difference. */
  readonly schema: string;
}

function definitionOf({ spec }: KubeObject): Definition {
  const { group, names, versions } = recordOf(spec);
  const list = recordsIn(versions);
  const schemas = list.map(({ schema }) => paths(recordOf(recordOf(schema)['openAPIV3Schema'])).join());
  return {
    name: `${textOf(recordOf(names)['kind'])} of ${textOf(group)}`,
    versions: list.filter(({ served }) => served === true).map(({ name }) => scalarText(name)),
    schema: schemas.join(';'),
  };
}

const CRD = 'CustomResourceDefinition';

/** CustomResourceDefinitions of the plan: absent, present, or present with another schema. */
export function crdLines({ objects, plan }: CheckInput): readonly Told[] {
  const there = new Map(ofKind(objects, CRD).map((crd) => [crd.metadata.name, definitionOf(crd)]));
  return ofKind(plan, CRD).map((crd): Told => {
    const { name } = crd.metadata;
    const [present, { versions, schema }] = [there.get(name), definitionOf(crd)];
    if (present === undefined) return ok(`${name} is not installed yet: it comes with crds/`);
    const missing = versions.filter((version) => !present.versions.includes(version));
    if (missing.length > 0)
      return error(
        `${name} is there and does not serve ${missing.join(', ')}`,
        'Apply crds/ before the rest: kubectl apply --server-side -k crds',
      );
    if (present.schema !== schema)
      return warning(
        `${name} is there with another schema than the one that is rendered`,
        'Apply crds/ before the rest; where another operator brings this definition, leave it to that',
      );
    return ok(`${name} is there, as it is rendered`);
  });
}

function paths(schema: Readonly<Record<string, unknown>>, at = ''): readonly string[] {
  const properties = Object.entries(recordOf(schema['properties'])).flatMap(([name, child]) => [
    `${at}.${name}`,
    ...paths(recordOf(child), `${at}.${name}`),
  ]);
  const inside = ['items', 'additionalProperties'].flatMap((key) =>
    isRecord(schema[key]) ? paths(schema[key], `${at}[]`) : [],
  );
  return [...properties, ...inside].sort();
}

/** Kinds of the plan that another operator defines: without its definition, what stands in an overlay cannot be applied. */
export function kindLines({ objects, plan, live }: CheckInput): readonly Told[] {
  const known = ofKind([...objects, ...plan], CRD).map((crd) => definitionOf(crd).name);
  const groups = new Map(
    plan.map(({ apiVersion, kind }) => {
      const [group = ''] = apiVersion.split('/', 1);
      return [`${kind} of ${group}`, group];
    }),
  );
  return [...groups].flatMap(([name, group]): readonly Told[] => {
    // Every kube-apiserver serves groups without a domain, and those of k8s.io.
    if (known.includes(name) || !group.includes('.') || group.endsWith('.k8s.io')) return [];
    return [
      (live ? error : warning)(
        `${name} is rendered, and ${live ? 'the cluster' : 'the folder'} has no definition of it`,
        `Install the operator of ${group}, or leave overlays/${group} and its option out of the fleet`,
      ),
    ];
  });
}

/** What every API server makes for itself; a dump often lacks them. */
const BUILT_IN = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/** Namespaces that the plan writes into and does not create. */
export function namespaceLine({ objects, plan, live }: CheckInput): Told {
  const there = new Set(ofKind([...objects, ...plan], 'Namespace').map(({ metadata }) => metadata.name));
  const wanted = new Set(plan.flatMap(({ metadata }) => metadata.namespace ?? []));
  const missing = [...wanted].filter((name) => !there.has(name) && !BUILT_IN.includes(name));
  const [first] = missing;
  if (first === undefined) return ok('every namespace that is written into is there, or is rendered');
  const [are, them] = missing.length === 1 ? ['is', 'it'] : ['are', 'them'];
  return (live ? error : warning)(
    `${fewNames(missing)} ${are} not ${live ? 'there' : 'in the folder'}, and nothing that is rendered makes ${them}`,
    `${kubectl(['create', 'namespace', first], missing) ?? 'Create them'}; openshift-config is rendered with createConfigNamespace: true`,
  );
}

/** Priority classes that pods of the plan name. */
export function priorityLines({ objects, plan, live }: CheckInput): readonly Told[] {
  const names = new Set(plan.flatMap((object) => textOf(podSpecIn(object)['priorityClassName']) || []));
  const there = ofKind([...objects, ...plan], 'PriorityClass').map(({ metadata }) => metadata.name);
  return [...names].map((name): Told => {
    if (name.startsWith('system-')) return ok(`${name} is there in every cluster`);
    if (there.includes(name)) return ok(`${name} is there`);
    return (live ? error : warning)(
      `${name} is not ${live ? 'there: pods that name it are refused' : 'in the folder'}`,
      'Create it, or name another with agent.priorityClassName in the fleet',
    );
  });
}

/** Rights to apply the plan that the calling account lacks. */
export function rightsLine({ rights }: CheckInput): Told {
  if (rights === undefined) return warning('not checked: a folder has no account');
  const denied = rights.filter(({ allowed }) => !allowed);
  if (denied.length === 0)
    return ok(`this account may write all ${rights.length} kinds and places of the plan`);
  const names = denied.map(
    ({ verb, resource, group, namespace }) =>
      `${verb} ${resource}${group === '' ? '' : `.${group}`}${namespace === undefined ? '' : ` in ${namespace}`}`,
  );
  return error(
    `this account may not ${fewNames(names)}`,
    'Apply as an account with these rights, such as that of the GitOps tool (--as system:serviceaccount:NAMESPACE:NAME)',
  );
}

/** Objects of the plan whose names other owners use. */
export function foreignLines({ objects, plan }: CheckInput): readonly Told[] {
  const idOf = ({ apiVersion, kind, metadata }: KubeObject): string =>
    `${apiVersion.split('/')[0]} ${describeObject({ kind, namespace: metadata.namespace, name: metadata.name })}`;
  const there = new Map(objects.map((object) => [idOf(object), object]));
  const foreign = plan.flatMap((object) => {
    if (object.kind === 'Namespace' || object.kind === CRD) return [];
    const present = there.get(idOf(object));
    const isOurs = present?.metadata.labels?.['app.kubernetes.io/managed-by'] === 'pullwright';
    return present === undefined || isOurs ? [] : [idOf(object).split(' ')[1] ?? ''];
  });
  if (foreign.length === 0) return [];
  return [
    warning(
      `${fewNames(foreign)} ${foreign.length === 1 ? 'is' : 'are'} there and not ours`,
      'Look at who owns them (kubectl get -o yaml --show-managed-fields) before anything is applied over them',
    ),
  ];
}

// Other tools that write the same objects: which are there, and what to settle before ours runs beside them.

interface Tool {
  readonly name: string;
  /** API groups of its own definitions. */
  readonly groups?: readonly string[];
  /** Names of its images, behind the last slash. */
  readonly image?: RegExp;
  /** Annotations that it reads or leaves on Secrets. */
  readonly annotation?: RegExp;
  readonly does: string;
  readonly fix: string;
}

const STOP =
  'Write a profile for what it does (docs/import.md), and stop it before Pullwright serves the same Secrets';

/** Source of the rule: the documents and charts of each tool. */
const TOOLS: readonly Tool[] = [
  {
    name: 'Kruise',
    groups: ['apps.kruise.io'],
    image: /^kruise-manager\b/,
    does: 'injects the pull secrets of SidecarSets at admission',
    fix: 'Both may run: names that both add are added once; move SidecarSets to profiles one by one',
  },
  {
    name: 'reflector',
    image: /^kubernetes-reflector\b/,
    annotation: /^reflector\.v1\.k8s\.emberstack\.com\//,
    does: 'copies Secrets between namespaces',
    fix: STOP,
  },
  {
    name: 'replicator',
    image: /^kubernetes-replicator\b/,
    annotation: /^replicator\.v1\.mittwald\.de\//,
    does: 'copies Secrets between namespaces',
    fix: STOP,
  },
  {
    name: 'imps',
    groups: ['images.banzaicloud.io'],
    image: /^imagepullsecrets?\b/,
    does: 'writes pull secrets into namespaces',
    fix: STOP,
  },
  {
    name: 'imagepullsecret-patcher',
    image: /^imagepullsecret-patcher\b/,
    does: 'writes a pull secret into every namespace and into the lists of ServiceAccounts',
    fix: STOP,
  },
  {
    name: 'registry-creds',
    groups: ['ops.alexellis.io'],
    image: /^registry-creds\b/,
    does: 'writes pull secrets into namespaces and into the lists of ServiceAccounts',
    fix: STOP,
  },
  {
    name: 'External Secrets',
    groups: ['external-secrets.io'],
    does: 'writes Secrets out of a vault',
    fix: 'Name its Secrets as sources of profiles, and let no ExternalSecret write a name that a profile brings',
  },
];

/** The tools that are there, by their definitions, Deployments or annotations. */
export function ownerLines(input: CheckInput): readonly Told[] {
  const found = TOOLS.flatMap((tool): readonly Told[] => {
    const seen = input.objects.find((object) => shows(tool, object));
    if (seen === undefined) return [];
    const { namespace, name } = seen.metadata;
    const where = `${seen.kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
    return [warning(`${tool.name} is there (${where}): it ${tool.does}`, tool.fix)];
  });
  if (found.length > 0) return found;
  return [ok('no other tool that writes pull secrets was found')];
}

/** Whether an object is a definition of the tool's group or of such a kind, runs the tool, or is a Secret that it marks. */
function shows({ groups = [], image, annotation }: Tool, object: KubeObject): boolean {
  const { apiVersion, kind, spec, metadata } = object;
  const group = kind === CRD ? scalarText(recordOf(spec)['group']) : (apiVersion.split('/')[0] ?? '');
  if (groups.includes(group)) return true;
  if (kind === 'Deployment')
    return imagesOf(podSpecIn(object)).some((one) => image?.test(one.split('/').at(-1) ?? ''));
  return kind === 'Secret' && Object.keys(metadata.annotations ?? {}).some((key) => annotation?.test(key));
}

/** HyperShift's Hosted Cluster Config Operator, where it deploys the agent itself. */
export function hypershiftLine({ objects }: CheckInput): readonly Told[] {
  const daemonSet = ofKind(objects, 'DaemonSet').find(
    ({ metadata }) =>
      metadata.namespace === GLOBAL_PULL_SECRET.namespace && metadata.name === GLOBAL_PULL_SECRET.syncer,
  );
  const operator = daemonSet === undefined ? undefined : operatorOf(daemonSet);
  if (operator === undefined) return [];
  return [
    warning(
      `${operator} brings DaemonSet ${GLOBAL_PULL_SECRET.namespace}/${GLOBAL_PULL_SECRET.syncer} itself: ours observes it, and writes nothing`,
      'Leave it so, or take over with mode: own after its plan was read (docs/global-pull-secret.md)',
    ),
  ];
}
