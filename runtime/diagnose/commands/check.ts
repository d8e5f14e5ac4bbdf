/** `pullwright check`: whether a cluster meets the prerequisites of a fleet, and whether the fleet is installed. */

import type { Fleet, FleetCluster } from '../../../charts/mod.ts';
import { loadFleet } from '../../../charts/synth.ts';
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import { CLUSTER_FLAGS, file, fromFlag, type Given, outputFlag, text, toggle } from '../../cli/flags.ts';
import { type Paint, paintFor } from '../../cli/terminal.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import { readSelector } from '../../core/kubernetes/label-selector.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { inParallel } from '../../core/parallel.ts';
import { defined, distinctBy, recordOf } from '../../core/record.ts';
import { oneLined } from '../../core/text.ts';
import type { KubeClient } from '../../kube/client.ts';
import { firstBroken, judge } from '../checks/findings.ts';
import { AFTER_CHECKS, BEFORE_CHECKS, type CheckInput } from '../checks/installation.ts';
import { type FoundCluster, readClusters } from '../model/look.ts';
import { pluralOf, readSteps, type SourceKind, withClient } from '../model/objects.ts';
import type { Finding } from '../model/types.ts';
import { answer, COLOUR_OF } from '../views/text.ts';
import { STATUS_KINDS, statusRows } from './status.ts';

// Objects that `check` reads: those of the plan by name, and those that they depend on.

const RBAC = 'rbac.authorization.k8s.io/v1';
const ADMISSION = 'admissionregistration.k8s.io/v1';

/** Kinds that are listed completely. Secrets are not read. */
const WHOLE: readonly SourceKind[] = [
  { apiVersion: 'v1', kind: 'Node' },
  { apiVersion: 'v1', kind: 'Namespace' },
  { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass' },
  { apiVersion: 'security.openshift.io/v1', kind: 'SecurityContextConstraints' },
  { apiVersion: 'apps/v1', kind: 'Deployment' },
  { apiVersion: RBAC, kind: 'ClusterRoleBinding' },
  { apiVersion: ADMISSION, kind: 'MutatingWebhookConfiguration' },
  { apiVersion: ADMISSION, kind: 'ValidatingWebhookConfiguration' },
];

/** Kinds to read from a live cluster. */
function clusterRequests(plan: readonly KubeObject[]): readonly SourceKind[] {
  const namespaces = [...new Set(plan.flatMap(({ metadata }) => metadata.namespace ?? []))];
  const whole = new Set(WHOLE.map(({ kind }) => kind));
  return [
    ...WHOLE,
    ...namespaces.flatMap((namespace) => [
      { apiVersion: RBAC, kind: 'RoleBinding', namespace },
      { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', namespace },
    ]),
    ...STATUS_KINDS.filter(({ kind }) => !whole.has(kind)),
    ...plan
      .filter(({ kind }) => !whole.has(kind) && kind !== 'RoleBinding')
      .map(({ apiVersion, kind, metadata: { name, namespace } }) => {
        return { apiVersion, kind, name, ...defined({ namespace }) };
      }),
  ];
}

// Permissions of the calling account.

/** Maximum number of parallel requests. */
const CONCURRENCY = 8;

/** Reviews the permissions for server-side apply: one request per verb, kind and namespace of the plan. */
async function askRights(client: KubeClient, plan: readonly KubeObject[]) {
  const rights = plan.flatMap(({ apiVersion, kind, metadata: { namespace } }) =>
    ['create', 'patch'].map((verb) => ({
      verb,
      group: /^(.*)\//.exec(apiVersion)?.[1] ?? '',
      resource: pluralOf(kind),
      ...defined({ namespace }),
    })),
  );
  const asked = distinctBy(rights, JSON.stringify);
  const answers = await inParallel(asked, CONCURRENCY, async (right) => {
    const review: KubeObject = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      // Reviews are not stored, so they need no name.
      metadata: { name: '' },
      spec: { resourceAttributes: right },
    };
    const { status } = await client.create(review, 'pullwright-check');
    return { ...right, allowed: recordOf(status)['allowed'] === true };
  });
  return answers.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

const TABLE = {
  name: 'check',
  about: [
    'Renders the fleet for one cluster and compares it with that cluster. Before an installation (--pre): version, CRDs, priority classes, pod security or SecurityContextConstraints, eligible nodes and their runtime, the Machine Config Operator, HyperShift, other tools that write the same objects, and permissions of the account. After it: objects exist, CRDs are served, workloads are ready, admission works, nodes and pull secrets are healthy. Each line shows ok, warn or fail, and the fix. Changes nothing, and reads no Secret of the cluster.',
  ],
  flags: {
    pre: toggle({ help: 'check the prerequisites, before an installation' }),
    fleet: file({ help: 'fleet file; if unset, fleet.yaml here, else the built-in fleet of one cluster' }),
    cluster: text({
      value: 'NAME',
      help: 'cluster of the fleet, if it has several; else cluster of the folder',
    }),
    from: fromFlag,
    ...CLUSTER_FLAGS,
    output: outputFlag(['text', 'json', 'yaml']),
  },
  exitCodes: '0 no check failed (warnings are shown), 1 a check or a read failed, 2 wrong usage',
  examples: ['pullwright check --pre --fleet fleet.yaml', 'pullwright check --fleet fleet.yaml'],
  permissions: {
    hosts: ['the API server of the kubeconfig; none with --from'],
    api: [
      'list nodes, namespaces, customresourcedefinitions, priorityclasses, securitycontextconstraints, deployments, clusterrolebindings, mutatingwebhookconfigurations, validatingwebhookconfigurations',
      'list rolebindings, endpointslices (namespaces of the fleet)',
      'list pullstatuses, pullsecretprofiles, criocredentialproviderconfigs; list jobs (hyperfleet-system)',
      'get every object that the fleet renders',
      'create selfsubjectaccessreviews',
    ],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);

type Values = Given<typeof TABLE.flags>['flags'];

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const charts = await import('../../../charts/mod.ts');
  const { fleet, name } = await loadFleet(charts, flags.fleet, io.cwd);
  const cluster = chosen(fleet, name, flags);
  const plan = charts.renderCluster(fleet, cluster).objects;
  if (plan.length === 0)
    throw new PullwrightError(
      `Cannot check cluster "${cluster.context.name}": the fleet renders no objects for it`,
      {
        code: 'NothingToCheck',
        retryPolicy: 'terminal',
        hint: 'The reconciler delivers its objects: check the management cluster, then run pullwright status here',
      },
    );
  const seen = await look(flags, plan, cluster, fleet.clusters.length === 1, io);
  const input = { ...seen.input, plan, rows: statusRows(seen.store), ...askedOf(cluster) };
  const findings = [
    ...judge(flags.pre ? BEFORE_CHECKS : AFTER_CHECKS, input),
    ...unreadFindings(seen.problems),
  ];
  return answer(io, flags.output, {
    data: { cluster: cluster.context.name, findings },
    text: () => asText(oneLined(findings), paintFor(io)),
    failed: firstBroken(findings) !== undefined,
  });
}

/** Selects the cluster of the fleet. @throws UsageError */
function chosen({ clusters }: Fleet, name: string, { cluster: wanted, from }: Values): FleetCluster {
  const names = clusters.map(({ context }) => context.name).join(', ');
  // For a fleet with one cluster, --cluster selects a cluster of the folder.
  const isOnly = wanted === undefined || (clusters.length === 1 && from !== undefined);
  const found = isOnly ? clusters[0] : clusters.find(({ context }) => context.name === wanted);
  if (found === undefined)
    throw new UsageError(`Cannot find cluster "${wanted ?? ''}" in fleet "${name}": must be one of ${names}`);
  if (wanted === undefined && clusters.length > 1)
    throw new UsageError(`Cannot select a cluster of fleet "${name}": choose one with --cluster: ${names}`);
  return found;
}

/** Systems that the fleet enables, and the nodes that it selects. */
function askedOf({ sections, context }: FleetCluster): Pick<CheckInput, 'systems' | 'nodes'> {
  const section = sections.find(({ system }) => system.name === 'global-pull-secret');
  const read = readSelector(recordOf(section?.config)['nodes']);
  const otherwise = context.kind === 'standalone' ? 'linux' : 'pools';
  return {
    // Sections of a management cluster apply to its hosted clusters: its own nodes are not eligible.
    systems: context.kind === 'management' ? [] : sections.map(({ system }) => system.name),
    nodes: read.ok ? read.requirements : otherwise,
  };
}

async function look(
  flags: Values,
  plan: readonly KubeObject[],
  cluster: FleetCluster,
  isOnly: boolean,
  io: CommandIo,
) {
  if (flags.from !== undefined) {
    const kinds = [...WHOLE, ...STATUS_KINDS, ...plan].map(({ kind }) => kind);
    const more = [...kinds, 'EndpointSlice', 'ImagePullSecret', 'ClusterPullSecret'];
    const all = await readClusters(flags.from, more, io.stdin);
    const { given: store, problems } = folderOf(all, flags.cluster, cluster, isOnly).read();
    return { store, problems, input: { objects: [...store], live: false } };
  }
  return withClient(flags, io, async (client) => {
    const { store, problems } = await readSteps(client, [() => clusterRequests(plan)]);
    const serverVersion = await client.serverVersion();
    const rights = flags.pre ? await askRights(client, plan) : [];
    return { store, problems, input: { objects: [...store], live: true, serverVersion, rights } };
  });
}

/**
 * Selects a cluster of the folders, which are parts of one dump: that of `--cluster`, else the one named like the fleet's
 * cluster, else the only one, else the objects outside the folders of hosted clusters.
 *
 * @param isOnly true if the fleet has no other cluster
 * @throws UsageError if the cluster is ambiguous
 */
function folderOf(
  all: readonly FoundCluster[],
  wanted: string | undefined,
  { context: { name, kind } }: FleetCluster,
  isOnly: boolean,
): FoundCluster {
  const named = (one: string): FoundCluster | undefined => all.find(({ cluster }) => cluster.name === one);
  const isOutside = kind === 'management' || (kind === 'standalone' && !isOnly);
  const other = isOutside ? named('management') : undefined;
  const own = named(name) ?? (all.length === 1 ? all[0] : other);
  const meant = wanted === undefined || wanted === name ? own : named(wanted);
  if (meant !== undefined) return meant;
  throw new UsageError(
    `Cannot find cluster "${wanted ?? name}" in --from: found ${all.map(({ cluster }) => cluster.name).join(', ')}; ${isOnly ? 'choose one with --cluster, or ' : ''}pass only its folder`,
  );
}

/** Read errors become findings, because missing objects prove nothing then. */
function unreadFindings(problems: readonly string[]): readonly Finding[] {
  return problems.map((message) => ({
    check: 'read',
    severity: message.startsWith('warning: ') ? 'warning' : 'error',
    subject: '',
    message: message.replace(/^warning: /, ''),
    advice: 'Grant the permission, or fix the file',
  }));
}

const WORDS = { ok: 'ok', info: 'info', unknown: 'warn', warning: 'warn', error: 'fail' } as const;

function asText(findings: readonly Finding[], paint: Paint): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const rows = findings.flatMap(({ check, severity, message, advice }) => [
    `${paint(COLOUR_OF[severity], WORDS[severity].padEnd(4))}  ${check.padEnd(width)}  ${message}`,
    ...(advice === undefined ? [] : [`      ${' '.repeat(width)}  ${paint('dim', 'fix:')} ${advice}`]),
  ]);
  const count = (word: string): number => findings.filter(({ severity }) => WORDS[severity] === word).length;
  return `${rows.join('\n')}\n\n${count('ok')} ok, ${count('warn')} warn, ${count('fail')} fail\n`;
}
