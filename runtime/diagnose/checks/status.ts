/** Every problem of a cluster with its cause, and problems of one cause together. */

import { textTable } from '../../cli/terminal.ts';
import type { Condition } from '../../core/kubernetes/conditions.ts';
import { GLOBAL_PULL_SECRET } from '../../core/kubernetes/hypershift.ts';
import { describeObject, type KubeObject, kubectl, startsReporting } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { counted } from '../../core/text.ts';
import type { ReportKeys } from '../model/cluster.ts';
import {
  byVerdict,
  type DoctorInput,
  type EntryOfPull,
  type EntryPlace,
  type ExplainedPlace,
  type Explanation,
  type Link,
  type LinkName,
  REPORT_SYSTEMS,
  type ReportCase,
  type ReportCause,
  type ReportKey,
  type ReportKubelet,
  type ReportMirrors,
  type ReportNodes,
  type ReportPlace,
  type ReportPull,
  type ReportSystemName,
  type ReportVerdict,
  type Sent,
} from '../model/types.ts';
import { firstBroken } from './chain.ts';

// The way of an image from a pod to a registry, out of what `doctor` and `explain` say.

/** One workload or pod that was examined. */
export interface ExaminedPod {
  readonly cluster: string;
  readonly input: DoctorInput;
  /** Of `input`. */
  readonly links: readonly Link[];
  /** Pods that it stands for. */
  readonly pods: number;
  /** Whether all of it runs now: then what is wrong shows with the next pull on a node that lacks the image. */
  readonly runs: boolean;
}

/** Entries that lost are listed up to here; they are about the image's own registry first. */
const MOST_LOST = 6;

/** One for each image. */
export function reportPulls({ cluster, input, links, pods, runs }: ExaminedPod): readonly ReportPull[] {
  const verdict = milder(verdictOf(links), runs);
  return input.images.map(({ text, explanation, fault }): ReportPull => {
    const base = {
      id: pullId(cluster, input.pod, text),
      namespace: input.namespace,
      object: input.pod,
      pods,
      image: text,
    };
    if (explanation === undefined)
      return {
        ...base,
        verdict: 'broken',
        secrets: [],
        kubelet: { blocked: fault ?? 'cannot be read', tried: [], lost: [], others: 0 },
        places: [],
        containerd: 'failure',
        skipped: [],
        findings: [],
      };
    return {
      ...base,
      verdict: milder(worseBy(explanation, verdict), runs),
      secrets: explanation.secrets.map(({ name, listedBy, state }) => ({ name, listedBy, state })),
      kubelet: kubeletOf(explanation),
      places: explanation.places.map(placeOf),
      containerd: containerdOf(explanation),
      skipped: explanation.skipped.map(({ reference, from, why }) => ({
        reference,
        ...(from === undefined ? {} : { from }),
        why,
      })),
      findings: explanation.findings.map(({ severity, message, fix }) => ({
        severity,
        message,
        ...(fix === undefined ? {} : { fix }),
      })),
    };
  });
}

/**
 * Names one pull in a report: for permalinks.
 */
export function pullId(cluster: string, object: string, image: string): string {
  return `${cluster} ${object} ${image}`;
}

function verdictOf(links: readonly Link[]): ReportVerdict {
  if (firstBroken(links) !== undefined) return 'broken';
  return links.some(({ state }) => state === 'unknown') ? 'unknown' : 'ok';
}

/** What is broken for the next pull keeps nothing from running that runs. */
export function milder(verdict: ReportVerdict, runs: boolean): ReportVerdict {
  return runs && verdict === 'broken' ? 'attention' : verdict;
}

/** What `explain` calls an error is one here too. */
function worseBy({ findings }: Explanation, verdict: ReportVerdict): ReportVerdict {
  if (verdict === 'broken' || findings.some(({ severity }) => severity === 'error')) return 'broken';
  return verdict === 'ok' && findings.some(({ severity }) => severity === 'warning') ? 'attention' : verdict;
}

function kubeletOf({ kubelet }: Explanation): ReportKubelet {
  const { blockedBy, tried, unused, others = 0 } = kubelet;
  const near = unused.filter((entry) => entry.near);
  const lost = near.slice(0, MOST_LOST).map((entry) => ({ ...entryOf(entry), why: entry.why }));
  return {
    ...(blockedBy === undefined ? {} : { blocked: `${blockedBy.source} ${blockedBy.why}` }),
    tried: tried.map(entryOf),
    lost,
    others: unused.length - lost.length + others,
  };
}

/** The kubelet hands every runtime the same; containerd checks no host and reads no auth file. */
function containerdOf({ kubelet, containerd }: Explanation): ReportPull['containerd'] {
  if (kubelet.blockedBy !== undefined) return 'failure';
  return containerd.what === 'kubelet' ? 'kubelet' : 'nothing';
}

/** Where it stands, and no more. */
function entryOf({ key, source, origin }: EntryPlace): EntryOfPull {
  return { key, source: origin ?? source };
}

function placeOf({ reference, kind, from, crio }: ExplainedPlace): ReportPlace {
  return { reference, kind, ...(from === undefined ? {} : { from }), ...sentOf(crio) };
}

function sentOf(sent: Sent): Pick<ReportPlace, 'sent' | 'entry' | 'why'> {
  switch (sent.what) {
    case 'kubelet':
      return { sent: 'kubelet' };
    case 'entry':
      return { sent: 'entry', entry: entryOf(sent.entry) };
    case 'helper':
      return { sent: 'helper', why: `the helper "${sent.helper}" of ${sent.source} is asked` };
    default:
      return { sent: sent.what, why: sent.why };
  }
}

/** A case with what it is a case of. */
export interface FoundProblem extends ReportCase {
  readonly cause: string;
  readonly system: ReportSystemName;
  readonly verdict: ReportVerdict;
  readonly title: string;
}

/** Objects as YAML. */
export type ToYaml = (object: KubeObject) => string;

const LINK_TITLES: Readonly<Record<LinkName, readonly [title: string, system: ReportSystemName]>> = {
  image: ['An image has a name that nobody can read', 'pulls'],
  places: ['An image may be pulled from nowhere', 'registry-overrides'],
  'service-account': ['The ServiceAccount of a workload does not exist', 'pulls'],
  injection: ['Pods lack a Secret that a profile gives them', 'pull-secret-injection'],
  'secrets-there': ['A pull secret that pods list does not exist', 'pulls'],
  'secrets-readable': ['A pull secret that pods list cannot be read', 'pulls'],
  credential: ['No credential that pods list matches their image', 'pulls'],
  'mirror-credential': ['A mirror is asked without a credential', 'credential-provider'],
  distribution: ['A Secret could not be brought to its namespace', 'pull-secret-injection'],
  node: ['A node reports trouble', 'global-pull-secret'],
  registry: ['The last pull of an image failed', 'pulls'],
};

/** The first link that is broken: what is behind it cannot be judged. */
export function podProblems(
  { cluster, input, links, runs }: ExaminedPod,
  toYaml: ToYaml,
): readonly FoundProblem[] {
  const broken = firstBroken(links);
  if (broken === undefined) return [];
  const [title, system] = LINK_TITLES[broken.link];
  const [image] = input.images;
  return [
    {
      cause: `link/${broken.link}`,
      system,
      verdict: milder('broken', runs),
      title: runs ? `${title}; it runs until the next pull` : title,
      cluster,
      object: input.pod,
      message: broken.message,
      ...(broken.advice === undefined ? {} : { advice: broken.advice }),
      ...fixOf(broken.fix ?? [], toYaml),
      ...(broken.commands === undefined ? {} : { commands: broken.commands }),
      ...(image === undefined ? {} : { pull: pullId(cluster, input.pod, image.text) }),
    },
  ];
}

function fixOf(objects: readonly KubeObject[], toYaml: ToYaml): Pick<ReportCase, 'fix'> {
  return objects.length === 0 ? {} : { fix: objects.map(toYaml).join('---\n') };
}

/** Entries that are left out, that end, and documents that cannot be used. */
export function keyProblems(cluster: string, { keys, faults }: ReportKeys): readonly FoundProblem[] {
  const base = { system: 'global-pull-secret', cluster } as const;
  return [
    ...faults.map(
      ({ source, message }): FoundProblem => ({
        ...base,
        cause: 'pull-secret/unusable',
        verdict: 'broken',
        title: 'A pull secret of the nodes cannot be used',
        object: source,
        message: `${source} ${message}`,
        advice: 'Write the Secret again; what was good in it stays in use until then',
      }),
    ),
    ...keys.flatMap((key) =>
      [...leftOut(key), ...ending(key)].map((one): FoundProblem => ({ ...base, ...one })),
    ),
  ];
}

type OfKey = Omit<FoundProblem, 'system' | 'cluster'>;

function leftOut({ key, source, state, why = '', winner }: ReportKey): readonly OfKey[] {
  if (state === 'rejected' || state === 'last-good')
    return [
      {
        cause: `entry/${state}`,
        verdict: 'attention',
        title: 'An entry of a pull secret is rejected',
        object: source,
        message: `"${key}" ${why}`,
        advice: `Correct the entry in ${source}; every other entry is in use`,
      },
    ];
  if (state !== 'shadowed') return [];
  return [
    {
      cause: 'entry/shadowed',
      verdict: 'attention',
      title: 'An entry of a pull secret is shadowed',
      object: source,
      message: `"${key}" ${why}`,
      advice:
        winner === undefined
          ? `Take it out of ${source}, or write it in another way`
          : `Take it out of ${source}, or name a path below "${winner.key}"`,
    },
  ];
}

function ending({ key, source, ends, expiresAt = '', state }: ReportKey): readonly OfKey[] {
  if (ends === undefined || state === 'shadowed' || state === 'rejected') return [];
  const isOver = ends === 'ended';
  return [
    {
      cause: `credential/${ends}`,
      verdict: isOver ? 'broken' : 'attention',
      title: isOver ? 'A credential has ended' : 'A credential ends soon',
      object: source,
      message: `"${key}" ${isOver ? 'ended' : 'ends'} at ${expiresAt}`,
      advice: `Renew the credential in ${source}`,
    },
  ];
}

/** Why the operator refuses mirror sets, and what of them does not come into force. */
export function mirrorProblems(
  cluster: string,
  { state, summary, refusals }: ReportMirrors,
): readonly FoundProblem[] {
  const base = { system: 'registry-overrides', cluster } as const;
  const said = refusals.map(
    ({ severity, code, object, message }): FoundProblem => ({
      ...base,
      cause: `mirrors/${code}`,
      verdict: severity === 'error' ? 'broken' : 'attention',
      title: severity === 'error' ? 'Mirror sets are refused' : 'A mirror set does not do what it says',
      object,
      message,
      advice:
        severity === 'error'
          ? `Correct ${object}: until then no mirror set comes into force. "pullwright mirrors" shows the result before it is applied`
          : `Correct ${object}, or leave it if the rest of it is what you mean; "pullwright mirrors" shows what comes of it`,
    }),
  );
  if (state === 'rendered' || said.some(({ verdict }) => verdict === 'broken')) return said;
  return [
    ...said,
    {
      ...base,
      cause: `mirrors/${state}`,
      verdict: 'attention',
      title: 'Nodes do not follow the mirror sets',
      object: 'MachineConfig/99-worker-generated-registries',
      message: summary,
      advice:
        'Ask the operator why it does not go on: kubectl get machineconfigpools, kubectl get clusteroperator machine-config -o yaml',
    },
  ];
}

/** Nodes that say themselves that they do not have what is meant for them. */
export function nodeProblems(cluster: string, { list }: ReportNodes): readonly FoundProblem[] {
  return list
    .filter(({ state }) => state === 'out-of-sync')
    .map(({ name, why = '' }) => ({
      cause: 'nodes/out-of-sync',
      system: 'global-pull-secret',
      verdict: 'broken',
      title: 'Nodes do not have the pull secret that is meant for them',
      cluster,
      object: `Node/${name}`,
      message: why,
      advice: `Look at the agent on the node: ${kubectl(['-n', 'kube-system', 'get', 'pods', '--field-selector', `spec.nodeName=${name}`], [name]) ?? ''}`,
    }));
}

/** Rows of `status` that want attention; what nodes report themselves is there already. */
export function statusProblems(cluster: string, rows: readonly StatusRow[]): readonly FoundProblem[] {
  return rows
    .filter(
      ({ state, object }) => state === 'Attention' && !object.startsWith('PullStatus/kube-system/node-'),
    )
    .map(({ system, object, reason, message }) => ({
      cause: `status/${reason}`,
      system: systemOf(system),
      verdict: 'attention',
      title: `${wordsOf(reason)} (${system})`,
      cluster,
      object,
      message,
      advice: lookAtIt(object),
    }));
}

/** `PullStatus/shop/pull-secret` says more of itself than one sentence. */
function lookAtIt(object: string): string {
  const [kind = '', ...rest] = object.split('/');
  const name = rest.at(-1) ?? '';
  const namespace = rest.length > 1 ? ['-n', rest[0] ?? ''] : [];
  const words = ['get', kind.toLowerCase(), name, ...namespace, '-o', 'yaml'];
  return `Its status says more: ${kubectl(words, [name, ...namespace.slice(1)]) ?? 'look at it'}`;
}

/**
 * The system that a reporter belongs to.
 */
export function systemOf(reporter: string): ReportSystemName {
  return REPORT_SYSTEMS.find((system) => reporter === system || reporter.startsWith(`${system}-`)) ?? 'pulls';
}

/** `EntriesRejected`: "Entries rejected". */
function wordsOf(reason: string): string {
  const words = reason.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
  return words === '' ? 'Not in order' : words.charAt(0).toUpperCase() + words.slice(1);
}

/** Problems of one cause together, the worst and the most frequent first. */
export function groupedByCause(problems: readonly FoundProblem[]): readonly ReportCause[] {
  const groups = new Map<string, FoundProblem[]>();
  for (const problem of problems) {
    const id = `${problem.verdict} ${problem.cause} ${problem.title}`;
    const group = groups.get(id);
    if (group === undefined) groups.set(id, [problem]);
    else group.push(problem);
  }
  return [...groups.values()]
    .flatMap((group): ReportCause[] => {
      const [first] = group;
      if (first === undefined) return [];
      const { cause, system, verdict, title } = first;
      const clusters = [...new Set(group.map(({ cluster }) => cluster))];
      return [{ cause, system, verdict, title, clusters, cases: group.map(caseOf) }];
    })
    .toSorted((a, b) => byVerdict(a.verdict, b.verdict) || b.cases.length - a.cases.length);
}

function caseOf({ cluster, object, message, advice, fix, commands, pull }: FoundProblem): ReportCase {
  return {
    cluster,
    object,
    message,
    ...(advice === undefined ? {} : { advice }),
    ...(fix === undefined ? {} : { fix }),
    ...(commands === undefined ? {} : { commands }),
    ...(pull === undefined ? {} : { pull }),
  };
}

// The state of every part of the product in one cluster, as rows: what `status` prints.

/** One line of the table. */
export interface StatusRow {
  /** Where several clusters are looked at. */
  readonly cluster?: string;
  readonly system: string;
  readonly object: string;
  readonly state: 'Ready' | 'Attention' | 'Progressing' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** Conditions that sum an object up, the first one that is there. */
const SUMMARIES: readonly string[] = ['Ready', 'Validated'];

/**
 * Judges an object that reports by conditions.
 *
 * @param system name of the system, for objects that do not say it themselves (a PullStatus does, as `reporter`)
 */
export function conditionRow(system: string, object: KubeObject): StatusRow {
  const status = (object.status ?? {}) as {
    conditions?: readonly Condition[];
    reporter?: unknown;
    verdicts?: readonly EntryStatus[];
  };
  const conditions = status.conditions ?? [];
  const summary = SUMMARIES.map((type) => conditions.find((condition) => condition.type === type)).find(
    (found) => found !== undefined,
  );
  const base = {
    system: typeof status.reporter === 'string' ? status.reporter : system,
    object: describeObject({ kind: object.kind, ...object.metadata }),
  };
  if (summary === undefined)
    return { ...base, state: 'Unknown', reason: 'NotReported', message: 'nothing has reported on it yet' };
  const { reason, message } = texts(summary);
  if (summary.status === 'True')
    return { ...base, state: 'Ready', reason, message: withCounts(message, status.verdicts ?? []) };
  const progressing = conditions.some(
    (condition) => condition.type === 'Reconciling' && condition.status === 'True',
  );
  return {
    ...base,
    state: progressing ? 'Progressing' : 'Attention',
    reason,
    message: withCounts(message, status.verdicts ?? []),
  };
}

/** In a folder anything can stand here. */
function texts({ reason, message }: Condition): Pick<StatusRow, 'reason' | 'message'> {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  return { reason: text(reason), message: text(message) };
}

function withCounts(message: string, verdicts: readonly EntryStatus[]): string {
  const count = (kind: EntryStatus['verdict']): number =>
    verdicts.filter((verdict) => verdict.verdict === kind).length;
  const parts = (['Accepted', 'Shadowed', 'Rejected'] as const).flatMap((kind) =>
    count(kind) === 0 ? [] : [`${count(kind)} ${kind.toLowerCase()}`],
  );
  return parts.length === 0 ? message : `${message} (${parts.join(', ')})`;
}

/**
 * Nodes that carry the label, against what agents report of them. A pod of the agent that is ready had the file in place when it
 * looked last: that it has the newest is said by `report`, the PullStatus of the platform's pull secret, alone.
 */
export function nodesRow(
  nodes: readonly KubeObject[],
  daemonSet: KubeObject | undefined,
  report?: KubeObject,
): StatusRow | undefined {
  const eligible = nodes.filter(
    (node) => node.metadata.labels?.[GLOBAL_PULL_SECRET.nodeLabel] === 'true',
  ).length;
  if (daemonSet === undefined && eligible === 0) return undefined;
  const base = {
    system: 'global-pull-secret',
    object: `DaemonSet/${GLOBAL_PULL_SECRET.namespace}/${GLOBAL_PULL_SECRET.syncer}`,
  };
  if (daemonSet === undefined)
    return {
      ...base,
      state: 'Attention',
      reason: 'DaemonSetMissing',
      message: `${counted(eligible, 'node is', 'nodes are')} eligible, and no agent runs`,
    };
  const message = `${eligible} of ${counted(nodes.length, 'node')} eligible`;
  return { ...base, ...checked(agentState(daemonSet, message), report, startsReporting(daemonSet)) };
}

type AgentState = Pick<StatusRow, 'state' | 'reason' | 'message'>;

/** Pods that are ready prove nothing where nodes report, and little where they do not. */
function checked(pods: AgentState, report: KubeObject | undefined, reporting: boolean): AgentState {
  if (pods.state !== 'Ready') return pods;
  const { conditions = [] } = (report?.status ?? {}) as { conditions?: readonly Condition[] };
  const found = conditions.find(({ type }) => type === 'NodesInSync');
  if (found === undefined && reporting)
    return {
      state: 'Progressing',
      reason: 'NodesNotCompared',
      message: `${pods.message}; there is no pull secret yet that nodes are compared with`,
    };
  if (found === undefined)
    return { ...pods, message: `${pods.message}; nodes do not report what they have (agent.report)` };
  const { message } = texts(found);
  return found.status === 'True'
    ? { ...pods, reason: 'NodesInSync', message }
    : { state: 'Progressing', reason: 'NodesBehind', message };
}

/**
 * What the DaemonSet's controller has counted. Before it has, and where it counts no node at all, nothing has been shown to be
 * in sync.
 */
function agentState({ status, metadata }: KubeObject, eligible: string): AgentState {
  // In a folder of rendered manifests.
  if (status === undefined)
    return { state: 'Unknown', reason: 'NotReported', message: 'nothing has reported on it yet' };
  const {
    numberReady = 0,
    desiredNumberScheduled = 0,
    observedGeneration = 0,
  } = status as Partial<Record<'numberReady' | 'desiredNumberScheduled' | 'observedGeneration', number>>;
  const message = `${numberReady} of ${counted(desiredNumberScheduled, 'agent')} ready, ${eligible}`;
  if (observedGeneration < (metadata.generation ?? 0))
    return {
      state: 'Progressing',
      reason: 'NodesNotCounted',
      message: `the change of the DaemonSet is not counted yet; ${eligible}`,
    };
  if (desiredNumberScheduled === 0) return { state: 'Attention', reason: 'NoNodes', message };
  return numberReady >= desiredNumberScheduled
    ? { state: 'Ready', reason: 'AgentsReady', message }
    : { state: 'Progressing', reason: 'AgentsNotReady', message };
}

/** Failed Jobs of the adapter want attention; running ones are under way. */
export function jobRow(job: KubeObject): StatusRow {
  const status = (job.status ?? {}) as { succeeded?: number; conditions?: readonly Condition[] };
  const failed = status.conditions?.find(
    (condition) => condition.type === 'Failed' && condition.status === 'True',
  );
  const base = { system: 'pull-secret-adapter', object: describeObject({ kind: 'Job', ...job.metadata }) };
  if (failed !== undefined) return { ...base, state: 'Attention', ...texts(failed) };
  if ((status.succeeded ?? 0) > 0)
    return { ...base, state: 'Ready', reason: 'Complete', message: 'the pull secret is stored' };
  return { ...base, state: 'Progressing', reason: 'Running', message: 'the Job has not ended' };
}

/** Replicas of a Deployment of ours: while none runs, every other row is as old as the last one that ran. */
export function deploymentRow(deployment: KubeObject): StatusRow {
  const { namespace = 'default' } = deployment.metadata;
  const base = {
    system: 'pullwright',
    object: describeObject({ kind: 'Deployment', ...deployment.metadata }),
  };
  const { replicas: wanted = 1 } = (deployment.spec ?? {}) as { replicas?: number };
  const status = deployment.status as { readyReplicas?: number } | undefined;
  // In a folder of rendered manifests.
  if (status === undefined)
    return { ...base, state: 'Unknown', reason: 'NotReported', message: 'nothing has reported on it yet' };
  const ready = status.readyReplicas ?? 0;
  const message = `${ready} of ${wanted} replicas ready`;
  if (ready >= wanted) return { ...base, state: 'Ready', reason: 'Available', message };
  if (ready > 0) return { ...base, state: 'Progressing', reason: 'ReplicasMissing', message };
  return {
    ...base,
    state: 'Attention',
    reason: 'NotRunning',
    message: `${message}: what is reported here may be out of date; ${kubectl(['describe', 'pods', '-n', namespace], [namespace]) ?? 'a look at its pods'} says why`,
  };
}

const ORDER: readonly StatusRow['state'][] = ['Attention', 'Progressing', 'Unknown', 'Ready'];

/** What wants attention first; else in the order in which it came. */
export function byUrgency(rows: readonly StatusRow[]): readonly StatusRow[] {
  return rows.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
}

/**
 * One row for the ready objects of each system that has more than `most` of them: a thousand good rows hide a bad one.
 */
export function foldReady(rows: readonly StatusRow[], most: number): readonly StatusRow[] {
  const groupOf = ({ cluster = '', system }: StatusRow): string => `${cluster} ${system}`;
  const ready = Map.groupBy(
    rows.filter(({ state }) => state === 'Ready'),
    groupOf,
  );
  const many = [...ready.values()].filter(({ length }) => length > most);
  const folded = new Set(many.flat());
  return [
    ...rows.filter((row) => !folded.has(row)),
    ...many.map(([first, ...rest]) => ({
      ...(first as StatusRow),
      object: `${rest.length + 1} objects`,
      reason: 'InOrder',
      message: '--all lists them',
    })),
  ];
}

/**
 * The table as text, cut to `columns`.
 *
 * @param columns width of the terminal; undefined: nothing is cut
 */
export function renderStatus(
  rows: readonly StatusRow[],
  columns: number | undefined,
  headers = true,
): string {
  if (rows.length === 0) return 'Nothing here is managed by Pullwright\n';
  const cells = rows.map((row) => [row.state, row.system, row.object, row.reason, row.message]);
  const table = [['STATE', 'SYSTEM', 'OBJECT', 'REASON', 'MESSAGE'], ...cells];
  const several = rows.some(({ cluster }) => cluster !== undefined);
  const whole = several
    ? table.map((line, index) => [index === 0 ? 'CLUSTER' : (rows[index - 1]?.cluster ?? ''), ...line])
    : table;
  return textTable(headers ? whole : whole.slice(1), columns);
}

// Pods that fail to pull, those that fail for one cause together, and what fixes each cause.

/** One that was examined, and how many pods it stands for; none for a template that makes no pod. */
export interface FailingPod {
  readonly namespace: string;
  /** `Pod/shop/web-1` */
  readonly object: string;
  readonly pods: number;
  readonly links: readonly Link[];
}

/** What several pods fail for. */
export interface PodCause {
  /** `unknown`: no link that could be judged is broken, and not all could be read. */
  readonly link: LinkName | 'unknown';
  readonly cause: string;
  readonly pods: number;
  readonly namespaces: readonly string[];
  /** What was examined, of pods that fail alike one. */
  readonly objects: readonly string[];
  /** What is said of the first. */
  readonly message: string;
  readonly advice?: string;
  /** To be applied with `kubectl apply --server-side`: for all of them, each object once. */
  readonly fix: readonly KubeObject[];
  /** To be run, each once. */
  readonly commands: readonly string[];
}

const CAUSES: Readonly<Record<PodCause['link'], string>> = {
  image: 'an image has a name that nobody can read',
  places: 'images may be pulled from nowhere',
  'service-account': 'the ServiceAccount does not exist',
  injection: 'pods lack a Secret that they should be given',
  'secrets-there': 'a Secret that pods list does not exist',
  'secrets-readable': 'a Secret that pods list cannot be read',
  credential: 'no credential that is listed matches',
  'mirror-credential': 'a mirror is asked without a credential that it takes',
  distribution: 'a Secret could not be brought to its namespace',
  node: 'a node lacks the pull secret that is there',
  registry: 'the last pull failed',
  unknown: 'not all could be read, so that the cause is not known',
};

/**
 * Groups by the first link that is broken, and by what that is about: a host, a Secret, a profile, a node. The cause of most pods
 * comes first. Total, and linear in the pods.
 */
export function podsByCause(found: readonly FailingPod[]): readonly PodCause[] {
  const groups = new Map<string, { readonly broken: Link | undefined; readonly all: FailingPod[] }>();
  for (const one of found) {
    const broken = firstBroken(one.links);
    // A template without pods is listed for what is broken, and not because not all could be read.
    if (broken === undefined && (one.pods === 0 || one.links.every(({ state }) => state === 'ok'))) continue;
    const id = JSON.stringify([broken?.link, broken?.about ?? broken?.message]);
    const group = groups.get(id);
    if (group === undefined) groups.set(id, { broken, all: [one] });
    else group.all.push(one);
  }
  return [...groups.values()].map(causeOf).toSorted((a, b) => b.pods - a.pods);
}

function causeOf({
  broken,
  all,
}: {
  readonly broken: Link | undefined;
  readonly all: readonly FailingPod[];
}): PodCause {
  const link = broken?.link ?? 'unknown';
  const about = broken?.about === undefined ? '' : `: ${broken.about}`;
  return {
    link,
    cause: `${CAUSES[link]}${about}`,
    pods: all.reduce((sum, { pods }) => sum + pods, 0),
    namespaces: [...new Set(all.map(({ namespace }) => namespace))].sort(),
    objects: all.map(({ object }) => object),
    message: broken?.message ?? 'not all could be read',
    ...(broken?.advice === undefined ? {} : { advice: broken.advice }),
    fix: once(all.flatMap(({ links }) => firstBroken(links)?.fix ?? [])),
    commands: [...new Set(all.flatMap(({ links }) => firstBroken(links)?.commands ?? []))],
  };
}

/** Objects that are the same are one; of those that differ under one name the first, as applying the second would undo it. */
function once(objects: readonly KubeObject[]): readonly KubeObject[] {
  const byName = new Map<string, KubeObject>();
  for (const object of objects) {
    const id = `${object.apiVersion} ${nameOf(object)}`;
    if (!byName.has(id)) byName.set(id, object);
  }
  return [...byName.values()];
}

export function nameOf({ kind, metadata: { namespace, name } }: KubeObject): string {
  return describeObject({ kind, namespace, name });
}

/** What fixes all causes, each object once. */
export function fixesOf(causes: readonly PodCause[]): readonly KubeObject[] {
  return once(causes.flatMap(({ fix }) => fix));
}
