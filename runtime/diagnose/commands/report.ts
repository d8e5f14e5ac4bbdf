/** What a report is made from: every cluster of folders, or the one of a kubeconfig, with its workloads examined. */

import { writeFile } from 'node:fs/promises';
import { parse as parseToml } from 'smol-toml';
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import { CLUSTER_FLAGS, file, fromFlag, type Given, outputFlag, toggle } from '../../cli/flags.ts';
import { areWarnings, paintFor, writeProblems } from '../../cli/terminal.ts';
import { errnoOf, PullwrightError, UsageError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { recordOf } from '../../core/record.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { nodeMirrors } from '../../registry-overrides/machine-config/node-mirrors.ts';
import { type ExaminedPod, judgePod } from '../checks/chain.ts';
import { clusterKinds } from '../model/cluster.ts';
import { failureIn, runs } from '../model/events.ts';
import { type Known, lookAt, readClusters } from '../model/look.ts';
import { placesOf } from '../model/mirrors.ts';
import { type ClusterAccess, type NextKinds, readinessOf, readObjects } from '../model/objects.ts';
import { imagesOf, nodeObjects, podSpecIn, rootOf, WORKLOAD_KINDS } from '../model/pull.ts';
import { headline, type Report } from '../model/types.ts';
import { reportMarkdown } from '../views/markdown.ts';
import { type ClusterFacts, makeReport } from '../views/report.ts';
import { answer, OUTPUT_FORMS, reportText } from '../views/text.ts';
import { STATUS_KINDS, statusRows } from './status.ts';

// Which workloads and pods of a cluster are examined: each workload once, and of the pods that fail alike one.

/** One that is examined, and the pods that it stands for. */
export interface ChosenPod {
  readonly object: KubeObject;
  readonly pods: number;
}

/**
 * What fails to pull: of the pods of a workload that fail alike on one node one, which stands for them, and templates that have no
 * pod although some are desired.
 *
 * @param namespace the one that is looked at; all where it is undefined
 */
export function failingPods(store: ObjectStore, namespace?: string): readonly ChosenPod[] {
  return [...familiesIn(store, namespace).values()].flatMap(({ template, pods }): readonly ChosenPod[] => {
    if (pods.length === 0)
      return template === undefined || isIdle(template) || isRunning(template)
        ? []
        : [{ object: template, pods: 0 }];
    const alike = new Map<string, ChosenPod>();
    for (const pod of pods) {
      const failure = failureIn(store, pod);
      if (failure === undefined) continue;
      const id = JSON.stringify([podSpecIn(pod)['nodeName'], failure.cause, failure.host, failure.image]);
      const before = alike.get(id);
      alike.set(id, { object: before?.object ?? pod, pods: (before?.pods ?? 0) + 1 });
    }
    return [...alike.values()];
  });
}

/** A workload that is scaled to zero, or that creates pods on a schedule. */
function isIdle({ kind, spec, status }: KubeObject): boolean {
  if (kind === 'CronJob') return true;
  if (kind === 'Job') return recordOf(status)['completionTime'] !== undefined;
  if (kind === 'DaemonSet') return recordOf(status)['desiredNumberScheduled'] === 0;
  return recordOf(spec)['replicas'] === 0;
}

interface Family {
  readonly template?: KubeObject;
  readonly pods: KubeObject[];
}

/**
 * A workload stands for its pods, since they can be made anew; a pod that does not run comes beside it, because only it has what
 * the kubelet says.
 */
export function chosenPods(store: ObjectStore): readonly ChosenPod[] {
  return [...familiesIn(store).values()].flatMap(({ template, pods }): readonly ChosenPod[] => {
    const failing = pods.filter((pod) => failureIn(store, pod) !== undefined);
    const [bad] = failing;
    const [any] = pods;
    if (template !== undefined)
      return [
        { object: template, pods: pods.length },
        ...(bad === undefined ? [] : [{ object: bad, pods: failing.length }]),
      ];
    const shown = bad ?? any;
    return shown === undefined ? [] : [{ object: shown, pods: pods.length }];
  });
}

function familiesIn(store: ObjectStore, namespace?: string): ReadonlyMap<string, Family> {
  const families = new Map<string, Family>();
  for (const kind of WORKLOAD_KINDS)
    for (const object of store.list(kind, namespace)) {
      if (imagesOf(podSpecIn(object)).length === 0) continue;
      const root = rootOf(store, object);
      const id = `${object.metadata.namespace ?? ''} ${root.kind}/${root.name}`;
      const family = families.get(id) ?? { pods: [] };
      if (object.kind === 'Pod') family.pods.push(object);
      const isRoot = object.kind !== 'Pod' && object.kind === root.kind && object.metadata.name === root.name;
      families.set(id, isRoot ? { ...family, template: object } : family);
    }
  return families;
}

/** Whether all of it is past its pulls, as its status says; without a status it is not known, and counts as no. */
export function isRunning(object: KubeObject): boolean {
  if (object.kind === 'Pod') return runs(object);
  const { ready, desired } = readinessOf(object);
  return desired > 0 && ready >= desired;
}

/** What was found, and what could not be read. */
export interface Gathered {
  readonly clusters: readonly ClusterFacts[];
  readonly unread: readonly string[];
}

/** All clusters of the folders. @throws PullwrightError where nothing can be read */
export async function gatherFolders(
  dirs: readonly string[],
  stdin: NodeJS.ReadableStream,
): Promise<Gathered> {
  const kinds = STATUS_KINDS.map(({ kind }) => kind);
  const found = await readClusters(dirs, kinds, stdin);
  const clusters = found.map(({ cluster, read }) => ({ cluster, ...read() }));
  return {
    clusters: clusters.map(({ cluster: { name, hostedCluster }, store, given, hosted }) =>
      factsOf(store, { name, hostedCluster, hosted, unread: [] }, given),
    ),
    unread: [...new Set(clusters.flatMap(({ problems, notes }) => [...problems, ...notes]))],
  };
}

/** Of all namespaces. */
const LIVE_KINDS: readonly NextKinds[] = clusterKinds(
  undefined,
  STATUS_KINDS.filter(({ kind }) => kind !== 'DaemonSet'),
);

/** The one cluster. @throws PullwrightError where it does not answer */
export async function gatherCluster(access: ClusterAccess, name: string, io: CommandIo): Promise<Gathered> {
  const { store, problems } = await readObjects(access, LIVE_KINDS, io);
  const facts = factsOf(store, {
    name,
    hostedCluster: undefined,
    hosted: false,
    unread: problems,
    live: true,
  });
  return { clusters: [facts], unread: problems };
}

interface About extends Known {
  readonly name: string;
  readonly hostedCluster: KubeObject | undefined;
}

function factsOf(store: ObjectStore, about: About, given = store): ClusterFacts {
  const mirrors = nodeMirrors(nodeObjects(store), parseToml);
  const { name: cluster, ...known } = about;
  const pods = examine(store, chosenPods(store), { cluster, nodes: mirrors, ...known });
  return {
    name: about.name,
    store,
    mirrors,
    place: placesOf(about.hostedCluster),
    pods,
    rows: statusRows(given),
  };
}

/** Checks each. */
export function examine(
  store: ObjectStore,
  chosen: readonly ChosenPod[],
  { cluster, ...known }: Known & { readonly cluster: string },
): readonly ExaminedPod[] {
  return chosen.map(({ object, pods }) => {
    const { name, namespace = '' } = object.metadata;
    const puller = { namespace, serviceAccount: 'default', pod: { kind: object.kind, name } };
    const input = lookAt(store, puller, known);
    return { cluster, input, findings: judgePod(input), pods, runs: isRunning(object) };
  });
}

// `pullwright report`: one page that shows what is wrong in a fleet, where, and what to do.

const TABLE = {
  name: 'report',
  about: [
    'Looks at every cluster of a folder of manifests, or at the cluster of a kubeconfig, and says what is wrong, where, and what to do: clusters by system, the registry keys that nodes get, the way of each image from pod to registry, namespaces with their pull secrets, mirror sets as the operator takes them. With --html as one page that needs no network. Shows no password and no user name.',
  ],
  flags: {
    from: fromFlag,
    ...CLUSTER_FLAGS,
    html: file({ help: 'write the page to this file', touches: 'writes' }),
    markdown: toggle({ help: 'print Markdown, for the comment of a change' }),
    output: outputFlag(
      OUTPUT_FORMS,
      'the form of the result; wide: not cut to the terminal; name: only the objects with a problem',
    ),
  },
  exitCodes: '0 nothing is broken, 1 something is or could not be read, 2 wrong usage',
  examples: ['pullwright report --from examples/fleet --html report.html'],
  permissions: {
    hosts: ['the API server of the kubeconfig; none with --from'],
    api: [
      'list secrets, serviceaccounts, namespaces, nodes, pods, deployments, statefulsets, daemonsets, replicasets, jobs, cronjobs, events, roles, rolebindings',
      'list pullstatuses, pullsecretprofiles, pullsecretgrants, sidecarsets, criocredentialproviderconfigs',
      'list imagedigestmirrorsets, imagetagmirrorsets, imagecontentsourcepolicies',
      'get mutatingadmissionpolicies, mutatingadmissionpolicybindings, mutatingwebhookconfigurations',
      'get images.config.openshift.io/cluster, criocredentialproviderconfigs/cluster, clusterversions/version, machineconfigs/99-worker-generated-registries',
    ],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);

type Values = Given<typeof TABLE.flags>['flags'];

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  if (flags.markdown && flags.output !== 'text')
    throw new UsageError('Cannot print --markdown: it is a form of its own, beside --output');
  const report = await reportFrom(flags, io);
  writeProblems(io, report.unread);
  if (flags.html !== undefined) await writePage(flags.html, report);
  if (flags.markdown) io.stdout.write(reportMarkdown(report));
  else
    answer(io, flags.output, {
      data: report,
      names: report.problems.flatMap(({ cases }) => cases.map(({ subject }) => subject)),
      text: (columns) => reportText(report, paintFor(io), columns),
      nothing: headline(report),
      failed: false,
    });
  if (flags.html !== undefined) io.stderr.write(`Wrote ${flags.html}\n`);
  return areWarnings(report.unread) && report.clusters.every(({ verdict }) => verdict !== 'broken') ? 0 : 1;
}

async function reportFrom(flags: Values, io: CommandIo): Promise<Report> {
  const { from, context } = flags;
  const found =
    from === undefined
      ? await gatherCluster(flags, context ?? 'cluster', io)
      : await gatherFolders(from, io.stdin);
  return makeReport({
    ...found,
    now: new Date(),
    source: from?.join(', ') ?? context ?? 'the current context',
  });
}

async function writePage(path: string, report: Report): Promise<void> {
  // Loaded on demand: it holds the script of the page.
  const { reportHtml } = await import('../views/html.ts');
  await writeFile(path, reportHtml(report)).catch((error: unknown) => {
    throw new PullwrightError(
      `Cannot write "${path}": ${codeOf(error)}, expected a file in an existing folder`,
      {
        code: 'OutputNotWritten',
        retryPolicy: 'terminal',
        cause: error,
      },
    );
  });
}

function codeOf(error: unknown): string {
  return errnoOf(error) ?? 'unknown';
}
