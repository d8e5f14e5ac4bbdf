/** Builds a report of all clusters in folders, or of the cluster of a kubeconfig. */

import { writeFile } from 'node:fs/promises';
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import { file, type Given, outputFlag, toggle } from '../../cli/flags.ts';
import { areWarnings, paintFor, writeProblems } from '../../cli/terminal.ts';
import { errnoOf, PullwrightError, UsageError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { recordOf } from '../../core/record.ts';
import { counted, countedOf } from '../../core/text.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { brokenIn, type ExaminedPod, judgeImage, judgePod, pullId, warningsIn } from '../checks/chain.ts';
import { groupedByCause, judge, systemOf, VERDICTS } from '../checks/findings.ts';
import { CLUSTER_CHECKS, type StatusRow } from '../checks/status.ts';
import {
  clusterKinds,
  type Report,
  type ReportCluster,
  type ReportPull,
  type ReportSystem,
  reportKeys,
  reportMirrors,
  reportNamespaces,
  type WithoutUsers,
} from '../model/cluster.ts';
import { failuresIn, runs } from '../model/events.ts';
import { type Known, lookAt } from '../model/look.ts';
import { placesOf } from '../model/mirrors.ts';
import { nodeCoverage, runtimesOf } from '../model/nodes.ts';
import { LOOK_FLAGS, type LookValues, type NextKinds, readinessOf } from '../model/objects.ts';
import { hasEnded, imagesOf, mirrorsOf, podSpecIn, pullBy, rootOf, WORKLOAD_KINDS } from '../model/pull.ts';
import {
  byVerdict,
  type FoundIn,
  headline,
  REPORT_SYSTEMS,
  type ReportSystemName,
  worstOf,
} from '../model/types.ts';
import { answer, OUTPUT_FORMS, reportMarkdown, reportText } from '../views/text.ts';
import { type KnownCluster, readEach, STATUS_KINDS, statusRows } from './status.ts';

// Selection of the workloads and pods to examine: each workload once, and one of several pods with the same failure.

/** An object to examine, and the number of pods that it represents. */
type ChosenPod = ReturnType<typeof chosenPods>[number];

/**
 * Selects the template of each workload, which represents its pods, and one of several pods with the same failure on the same
 * node, because only pods have the kubelet's message. Omits what has ended: it never pulls again.
 *
 * @param failing select only failing pods, and templates without the desired pods
 * @param namespace the only namespace to examine; undefined for all
 */
export function chosenPods(store: ObjectStore, failing: boolean, namespace?: string) {
  const objects = WORKLOAD_KINDS.flatMap((kind) => store.list(kind, namespace)).filter(
    (object) => imagesOf(podSpecIn(object)).length > 0,
  );
  const families = Map.groupBy(objects, (object) => idIn(object, rootOf(store, object)));
  return [...families].flatMap(([id, family]) => {
    const all = family.filter(({ kind }) => kind === 'Pod');
    const pods = all.filter((pod) => !hasEnded(pod));
    const template = family.find(
      (object) =>
        object.kind !== 'Pod' &&
        !hasEnded(object) &&
        idIn(object, { kind: object.kind, name: object.metadata.name }) === id,
    );
    const { '': sound = [], ...alike } = Object.groupBy(pods, (pod) => {
      const failed = failuresIn(store, pod).map(({ cause, host, image }) => [cause, host, image]);
      return failed.length === 0 ? '' : JSON.stringify([podSpecIn(pod)['nodeName'], failed]);
    });
    const bad = Object.values(alike).flatMap((same = []) =>
      same.slice(0, 1).map((object) => ({ object, pods: same.length })),
    );
    const whole = template ?? (bad.length === 0 ? sound[0] : undefined);
    const isShown =
      !failing || (template !== undefined && all.length === 0 && !isIdle(template) && !isRunning(template));
    return whole !== undefined && isShown ? [{ object: whole, pods: pods.length }, ...bad] : bad;
  });
}

/** A workload that is scaled to zero, or that creates pods on a schedule. */
function isIdle({ kind, spec, status }: KubeObject): boolean {
  if (kind === 'CronJob') return true;
  if (kind === 'DaemonSet') return recordOf(status)['desiredNumberScheduled'] === 0;
  return recordOf(spec)['replicas'] === 0;
}

/** Identifies `owner` in the namespace of `object`. */
function idIn({ metadata }: KubeObject, owner: ReturnType<typeof rootOf>): string {
  return `${metadata.namespace ?? ''} ${owner.kind}/${owner.name}`;
}

/** Reports whether all pods are past their image pulls, according to the status. Without a status, returns false. */
export function isRunning(object: KubeObject): boolean {
  if (object.kind === 'Pod') return runs(object);
  const { ready, desired } = readinessOf(object);
  return desired > 0 && ready >= desired;
}

/** Kinds to read, in all namespaces. */
const LIVE_KINDS: readonly NextKinds[] = clusterKinds(
  undefined,
  STATUS_KINDS.filter(({ kind }) => kind !== 'DaemonSet'),
);

/** Runs the pod checks on each selected object. */
export function examine(
  store: ObjectStore,
  chosen: readonly ChosenPod[],
  { cluster, ...known }: Known & { readonly cluster: string },
): readonly ExaminedPod[] {
  return chosen.map(({ object, pods }) => {
    const input = lookAt(store, pullBy(object), known);
    return { cluster, input, findings: judgePod(input), pods, runs: isRunning(object) };
  });
}

// The pulls of a report, from the results of `doctor` and `explain`.

/** Returns one pull per image. */
function reportPulls({ cluster, input, findings, pods, runs }: ExaminedPod): readonly ReportPull[] {
  const { pod: object, namespace } = input;
  return input.images.map(({ text: image, explanation, fault = 'cannot be read' }): ReportPull => {
    const base = { id: pullId(cluster, object, image), namespace, object, pods, image };
    if (explanation === undefined) return { ...base, verdict: 'broken', fault };
    const { secrets, kubelet, places, skipped, containerd, findings: own } = explanation;
    // Include the findings of `explain` for the image.
    const verdict = worstOf(
      [...(input.images.length === 1 ? findings : judgeImage(input, image)), ...own].map(
        ({ severity }) => VERDICTS[severity],
      ),
      'ok',
    );
    return {
      ...base,
      // Running pods already have the image: only the next pull would fail.
      verdict: runs && verdict === 'broken' ? 'attention' : verdict,
      explanation: withoutUsers({ secrets, kubelet, places, skipped, containerd, findings: own }),
    };
  });
}

function withoutUsers<T>(value: T): WithoutUsers<T> {
  const text = JSON.stringify(value, (name, one: unknown) => (name === 'username' ? undefined : one));
  return JSON.parse(text) as WithoutUsers<T>;
}

/** Maximum number of pulls per cluster before healthy ones are omitted. Unhealthy pulls are always shown. */
const MOST_PULLS = 100;

/** Builds the report of one cluster, and its problems. */
function reportOn(read: KnownCluster, now: Date) {
  const { name, store, given, hostedCluster } = read;
  const onNodes = mirrorsOf(store);
  const pods = examine(store, chosenPods(store, false), { ...read, cluster: name, nodes: onNodes });
  const rows = statusRows(given);
  const nodes = nodeCoverage(store);
  const keys = reportKeys(store, nodes, now);
  const mirrors = reportMirrors(onNodes, placesOf(hostedCluster));
  const pulls = pods.flatMap(reportPulls).toSorted((a, b) => byVerdict(a.verdict, b.verdict));
  const problems = [
    ...pods.flatMap(brokenIn),
    ...pods.flatMap(warningsIn),
    ...judge(CLUSTER_CHECKS, { keys, mirrors, nodes, rows }).map((one) => ({ ...one, cluster: name })),
  ];
  const systems = systemsOf({ problems, rows, pulls, keys: keys.keys, mirrors, nodes });
  const shown = pulls.filter(({ verdict }, at) => verdict !== 'ok' || at < MOST_PULLS);
  const cluster: ReportCluster = {
    name,
    verdict: systems.map(({ verdict }) => verdict).toSorted(byVerdict)[0] ?? 'unknown',
    systems,
    nodes,
    runtimes: runtimesOf(store),
    keys: keys.keys,
    pulls: shown,
    pullsLeftOut: pulls.length - shown.length,
    namespaces: reportNamespaces(store, pulls),
    mirrors,
  };
  return { cluster, problems };
}

interface Parts extends Pick<ReportCluster, 'keys' | 'mirrors' | 'nodes' | 'pulls'> {
  readonly problems: readonly FoundIn[];
  readonly rows: readonly StatusRow[];
}

function systemsOf(parts: Parts): readonly ReportSystem[] {
  return REPORT_SYSTEMS.flatMap((system): ReportSystem[] => {
    const own = parts.problems.filter((problem) => systemOf(problem) === system);
    const rows = parts.rows.filter((row) => row.system === system);
    const evidence = EVIDENCE[system]?.(parts);
    if (own.length + rows.length === 0 && evidence === undefined) return [];
    const verdicts = [...own, ...rows].map(({ severity }) => VERDICTS[severity]);
    const ready = rows.filter(({ state }) => state === 'Ready').length;
    const reported = `${countedOf(ready, rows.length, ['object', 'objects'], ['reports', 'report'])} Ready`;
    return [
      {
        system,
        verdict: worstOf([...verdicts, evidence?.verdict ?? []].flat(), 'unknown'),
        summary: own.length > 0 ? counted(own.length, 'problem') : (evidence?.summary ?? reported),
      },
    ];
  });
}

/** Evidence for the state of a system, besides problems and reporters; undefined if the system is not in use. */
type Evidence = (parts: Parts) => Omit<ReportSystem, 'system'> | undefined;

const EVIDENCE: Readonly<Partial<Record<ReportSystemName, Evidence>>> = {
  // Sorted, worst first.
  pulls: ({ pulls, pulls: [worst] }) =>
    worst && { verdict: worst.verdict, summary: `${counted(pulls.length, 'image')} examined` },
  'global-pull-secret': ({ keys, nodes: { eligible, inSync } }) => {
    const summary = `${inSync} of ${eligible} eligible nodes are known to be in sync`;
    if (eligible > 0) return { verdict: inSync === eligible ? 'ok' : 'unknown', summary };
    const isUnused = keys.every(({ source }) => source.endsWith('/pull-secret'));
    return isUnused ? undefined : { verdict: 'unknown', summary: 'no node is eligible yet' };
  },
  'registry-overrides': ({ mirrors }) =>
    mirrors.rules.length + mirrors.refusals.length === 0
      ? undefined
      : { verdict: mirrors.state === 'rendered' ? 'ok' : 'attention', summary: mirrors.summary },
};

// `pullwright report`: the problems of a fleet and their fixes, as text, Markdown or a web page.

const TABLE = {
  name: 'report',
  about: [
    'Examines the clusters of a folder of manifests, or the cluster of a kubeconfig, and reports each problem with its fix: systems of each cluster, registry keys on nodes, the path of each image from pod to registry, namespaces with their pull secrets, mirror sets as the operator applies them. With --html, writes one page that needs no network. Shows no password and no user name.',
  ],
  flags: {
    ...LOOK_FLAGS,
    html: file({ help: 'write the page to this file', touches: 'writes' }),
    markdown: toggle({ help: 'print Markdown, for a pull request comment' }),
    output: outputFlag(
      OUTPUT_FORMS,
      'output format; wide: not truncated; name: only the objects with a problem',
    ),
  },
  exitCodes: '0 nothing broken, 1 something broken or unreadable, 2 wrong usage',
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

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  if (flags.markdown && flags.output !== 'text')
    throw new UsageError(`Cannot use --markdown with --output ${flags.output}`);
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

async function reportFrom(flags: LookValues, io: CommandIo): Promise<Report> {
  const { from, context } = flags;
  const clusters = await readEach(flags, LIVE_KINDS, io);
  const now = new Date();
  const made = clusters.map((one) => reportOn(one, now));
  return {
    version: 1,
    madeAt: `${now.toISOString().slice(0, 19)}Z`,
    source: from?.join(', ') ?? context ?? 'the current context',
    clusters: made
      .map(({ cluster }) => cluster)
      .toSorted((a, b) => byVerdict(a.verdict, b.verdict) || (a.name < b.name ? -1 : 1)),
    problems: groupedByCause(made.flatMap(({ problems }) => problems)),
    unread: [...new Set(clusters.flatMap(({ problems, notes }) => [...problems, ...notes]))],
  };
}

async function writePage(path: string, report: Report): Promise<void> {
  // Loaded on demand, because it contains the script of the page.
  const { reportHtml } = await import('../views/html.ts');
  await writeFile(path, reportHtml(report)).catch((error: unknown) => {
    throw new PullwrightError(
      `Cannot write "${path}": ${errnoOf(error) ?? 'unknown'}, expected a file in an existing folder`,
      { code: 'OutputNotWritten', retryPolicy: 'terminal', cause: error },
    );
  });
}
