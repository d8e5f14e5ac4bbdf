/** `pullwright status`: the health of all managed objects in one table. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import { type Given, namespaceFlag, noHeadersFlag, outputFlag, toggle } from '../../cli/flags.ts';
import { control, writeProblems } from '../../cli/terminal.ts';
import { describeError, PullwrightError } from '../../core/errors.ts';
import { GLOBAL_PULL_SECRET } from '../../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { PULL_STATUS, pullStatusName } from '../../core/kubernetes/pull-status.ts';
import { CONFIG_KINDS } from '../../credential-provider/platform.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { GRANT } from '../../pull-secret-injection/kinds/grant.ts';
import { PROFILE } from '../../pull-secret-injection/kinds/profile.ts';
import {
  byUrgency,
  conditionRow,
  deploymentRow,
  foldReady,
  jobRow,
  nodesRow,
  renderStatus,
  type StatusRow,
} from '../checks/status.ts';
import { SIDECAR_SETS } from '../model/admission.ts';
import { type Known, type ReadCluster, readCluster, readClusters } from '../model/look.ts';
import { DAEMON_SET, SYNC_REPORT } from '../model/nodes.ts';
import {
  chooseCluster,
  conditionOf,
  LOOK_FLAGS,
  type LookValues,
  type NextKinds,
  needFolderForCluster,
  type SourceKind,
} from '../model/objects.ts';
import { GLOBAL_SECRET, NODE } from '../model/pull.ts';
import { answer, OUTPUT_FORMS } from '../views/text.ts';

const ADDITIONAL_REPORT = { ...SYNC_REPORT, name: pullStatusName('Secret', GLOBAL_PULL_SECRET.additional) };
/** Not in {@link STATUS_KINDS}: evaluated only if Secrets are read for another purpose. */
const ADDITIONAL = { ...GLOBAL_SECRET, name: GLOBAL_PULL_SECRET.additional };
const DEPLOYMENTS: readonly SourceKind[] = ['pullwright-system', 'hyperfleet-system'].map((namespace) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  namespace,
  labelSelector: 'app.kubernetes.io/part-of=pullwright',
}));
const JOB: SourceKind = { apiVersion: 'batch/v1', kind: 'Job', namespace: 'hyperfleet-system' };

/** Kinds with conditions, and their system. */
const REPORTING: readonly (SourceKind & { readonly system: string })[] = [
  { ...PULL_STATUS, system: 'pullwright' },
  ...[PROFILE, GRANT, ...SIDECAR_SETS].map((kind) => ({ ...kind, system: 'pull-secret-injection' })),
  ...CONFIG_KINDS.map((kind) => ({ ...kind, system: 'credential-provider' })),
];

const NAMESPACED: ReadonlySet<string> = new Set([PULL_STATUS.kind, GRANT.kind]);

/** Kinds to read for {@link statusRows}. */
export const STATUS_KINDS: readonly SourceKind[] = [NODE, DAEMON_SET, JOB, ...DEPLOYMENTS, ...REPORTING];

const TABLE = {
  name: 'status',
  about: [
    "Prints one row for each reconciled pull secret, profile, grant, SidecarSet, mirror set and provider configuration, for the nodes, for Pullwright's Deployments, and for the adapter's Jobs: whether it is ready, and if not, why. Rows that are not ready are first.",
  ],
  flags: {
    namespace: { ...namespaceFlag, help: 'only objects of this namespace' },
    'all-namespaces': toggle({ short: 'A', help: 'all namespaces, as without --namespace' }),
    ...LOOK_FLAGS,
    all: toggle({ help: 'also list ready objects of systems with more than twenty' }),
    watch: toggle({ short: 'w', help: 'refresh every few seconds until interrupted' }),
    output: outputFlag(OUTPUT_FORMS, 'output format; wide: not truncated'),
    'no-headers': noHeadersFlag,
  },
  exitCodes: '0 all ready, 1 something not ready or unreadable, 2 wrong usage',
  examples: ['pullwright status --watch'],
  permissions: {
    hosts: ['the API server of the kubeconfig'],
    api: [
      'list pullstatuses, pullsecretprofiles, pullsecretgrants, sidecarsets (apps.kruise.io), criocredentialproviderconfigs, nodes',
      'get daemonsets/global-pull-secret-syncer (kube-system)',
      'list deployments (pullwright-system, hyperfleet-system); list jobs (hyperfleet-system)',
    ],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags: values }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const namespace = values['all-namespaces'] ? undefined : values.namespace;
  for (;;) {
    const { rows: all, problems } = await look(values, namespace, io).catch((error: unknown) => {
      // Keep watching until the cluster is reachable again.
      if (values.watch && error instanceof PullwrightError)
        return { rows: [], problems: [describeError(error)] };
      throw error;
    });
    const isMeant = ({ subject }: StatusRow): boolean =>
      namespace === undefined || subject.split('/').at(-2) === namespace;
    const rows = all.filter(isMeant);
    // Without rows, "nothing is managed" holds only if everything was read.
    const isKnown = rows.length > 0 || problems.length === 0;
    // On a terminal a new table replaces the old one; elsewhere it follows.
    if (values.watch && io.stdout.isTTY === true) io.stdout.write(control('\u001b[H\u001b[2J'));
    if (isKnown || values.output === 'json' || values.output === 'yaml')
      answer(io, values.output, {
        data: rows,
        names: rows.map(({ subject }) => subject),
        text: (columns) =>
          renderStatus(values.all ? rows : foldReady(rows, MANY), columns, !values['no-headers'], namespace),
        failed: false,
      });
    writeProblems(io, problems);
    const inOrder = problems.length === 0 && rows.every((row) => row.state === 'Ready');
    const { signal } = io;
    const isOver = !values.watch || !(await sleep(LOOK_AGAIN_MS, true, { signal }).catch(() => false));
    if (isOver) return inOrder ? 0 : 1;
  }
}

/** Reads the rows of each cluster; a folder may contain several. */
async function look(values: LookValues, namespace: string | undefined, io: CommandIo) {
  const found = await readEach(values, [() => kindsOf(namespace)], io);
  const rows = found.flatMap(({ name, given }) =>
    statusRows(given).map((row) => (found.length === 1 ? row : { cluster: name, ...row })),
  );
  return { rows: byUrgency(rows), problems: [...new Set(found.flatMap(({ problems }) => problems))] };
}

/** A cluster with its objects. */
export interface KnownCluster extends ReadCluster, Omit<Known, 'hosted'> {
  readonly name: string;
  readonly hostedCluster?: KubeObject;
}

/**
 * Reads the cluster of a kubeconfig, or the clusters in folders: all, or the one that --cluster names.
 *
 * @param steps kinds to read from a live cluster
 * @throws UsageError, PullwrightError if nothing can be read
 */
export async function readEach(
  { from, cluster: wanted, ...access }: LookValues,
  steps: readonly NextKinds[],
  io: CommandIo,
): Promise<readonly KnownCluster[]> {
  needFolderForCluster({ from, cluster: wanted });
  if (from === undefined) {
    const found = await readCluster(access, steps, io);
    return [{ ...found, unread: found.problems, live: true }];
  }
  const kinds = STATUS_KINDS.map(({ kind }) => kind);
  const clusters = await readClusters(from, kinds, io.stdin);
  const all = clusters.map(({ cluster, read }) => ({ ...cluster, read }));
  const chosen = wanted === undefined ? all : [chooseCluster(all, wanted)];
  return chosen.map(({ read, ...cluster }) => ({ ...cluster, ...read(), unread: [] }));
}

/** Restricts kinds to the namespace, because tenants may not list others. Nodes belong to the namespace of their agents. */
function kindsOf(namespace: string | undefined): readonly SourceKind[] {
  if (namespace === undefined) return STATUS_KINDS;
  return STATUS_KINDS.flatMap((kind): readonly SourceKind[] => {
    if (kind === NODE) return namespace === DAEMON_SET.namespace ? [kind] : [];
    return NAMESPACED.has(kind.kind) || kind.namespace === namespace ? [{ ...kind, namespace }] : [];
  });
}

/** Returns the rows of `store`, most severe first. */
export function statusRows(store: ObjectStore): readonly StatusRow[] {
  const nodes = nodesRow(store.list(NODE), store.get(DAEMON_SET), store.get(SYNC_REPORT));
  const input = store.get(ADDITIONAL_REPORT) === undefined ? store.get(ADDITIONAL) : undefined;
  const rows = [
    ...(input === undefined ? [] : [conditionRow('global-pull-secret', input)]),
    ...DEPLOYMENTS.flatMap((kind) => store.list(kind, kind.namespace))
      // Folders are read without label selectors.
      .filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/part-of'] === 'pullwright')
      .map(deploymentRow),
    ...(nodes === undefined ? [] : [nodes]),
    ...REPORTING.flatMap((kind) =>
      store
        .list(kind)
        // If Kruise is installed, it owns the status of SidecarSets, and a PullStatus reports instead.
        .filter((object) => kind.kind !== 'SidecarSet' || conditionOf(object, 'Ready') !== undefined)
        .map((object) => conditionRow(kind.system, object)),
    ),
    ...store
      .list(JOB, 'hyperfleet-system')
      .filter((job) => job.metadata.name.startsWith('pullsecret-'))
      .map(jobRow),
  ];
  // Deduplicate: a cluster returns an object in each served version.
  return byUrgency([...new Map(rows.map((row) => [row.subject, row])).values()]);
}

/** Maximum number of healthy objects of a system that are listed individually. */
const MANY = 20;

const LOOK_AGAIN_MS = 5000;
