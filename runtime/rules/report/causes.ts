/** Every problem of a cluster with its cause, and problems of one cause together. */
import { firstBroken } from '../diagnose/doctor.ts';
import type { LinkName } from '../diagnose/doctor-types.ts';
import type { StatusRow } from '../diagnose/status-table.ts';
import type { KubeObject } from '../kubernetes/object.ts';
import type { ReportKeys } from './keys.ts';
import { type ExaminedPod, milder, pullId } from './pulls.ts';
import type {
  ReportCase,
  ReportCause,
  ReportKey,
  ReportMirrors,
  ReportNodes,
  ReportSystemName,
  ReportVerdict,
} from './types.ts';
import { REPORT_SYSTEMS } from './types.ts';
import { byVerdict } from './verdict.ts';

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
      advice: `Look at the agent on the node: kubectl -n kube-system get pods --field-selector spec.nodeName=${name}`,
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
  const namespace = rest.length > 1 ? ` -n ${rest[0] ?? ''}` : '';
  return `Its status says more: kubectl get ${kind.toLowerCase()} ${name}${namespace} -o yaml`;
}

/**
 * The system that a reporter belongs to.
 *
 * @example
 * ```ts
 * import { systemOf } from './causes.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(systemOf('global-pull-secret-agent'), 'global-pull-secret');
 * assert.equal(systemOf('verify'), 'pulls');
 * ```
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

function caseOf({ cluster, object, message, advice, fix, pull }: FoundProblem): ReportCase {
  return {
    cluster,
    object,
    message,
    ...(advice === undefined ? {} : { advice }),
    ...(fix === undefined ? {} : { fix }),
    ...(pull === undefined ? {} : { pull }),
  };
}
