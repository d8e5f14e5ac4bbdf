/** What a check is, how a list of them examines a model, and how findings of one cause come together. */

import { describeObject, type KubeObject } from '../../core/kubernetes/object.ts';
import {
  byVerdict,
  type Cause,
  type Finding,
  type FoundIn,
  type ReportSystemName,
  type ReportVerdict,
  type Severity,
} from '../model/types.ts';

/** What a check says of what it found; {@link judge} fills the rest in. */
export type Told = Omit<Finding, Filled> & Partial<Pick<Finding, Filled>>;
type Filled = 'check' | 'severity' | 'subject';

/** What is in order. */
export function ok(message: string): Told {
  return { severity: 'ok', message };
}

/** What works, and should be known. */
export function warning(message: string, advice?: string): Told {
  return { severity: 'warning', message, advice };
}

/** What does not work, and what to do. */
export function error(message: string, advice: string): Told {
  return { severity: 'error', message, advice };
}

/** One thing that is looked at. */
export interface Check<Model> {
  /** Stable: that of its findings, unless they have a finer one. */
  readonly id: string;
  /**
   * Where a part could not be read and nothing is found, the answer is `unknown`, and never `ok`; unless it needs `nothing`.
   *
   * @default {all}
   */
  readonly needs?: 'nothing';
  /** Pure and total. A finding without a severity is an error. */
  readonly run: (model: Model) => Told | readonly Told[] | undefined;
  /** What to say where nothing is found. @default nothing is said */
  readonly ok?: string | ((model: Model) => string);
}

/** What a model is about, and what of it could not be read. */
export interface Judged {
  readonly subject: string;
  readonly unread?: readonly string[];
}

/** The findings of all `checks`, in their order. Total. */
export function judge<Model>(
  checks: readonly Check<Model>[],
  model: Model,
  { subject, unread = [] }: Judged,
): readonly Finding[] {
  return checks.flatMap(({ id: check, needs, run, ok }): readonly Finding[] => {
    const found = [run(model) ?? []].flat();
    if (found.length > 0) return found.map((told) => ({ check, severity: 'error', subject, ...told }));
    if (needs === undefined && unread.length > 0)
      return [{ check, severity: 'unknown', subject, message: 'not all could be read' }];
    const message = typeof ok === 'function' ? ok(model) : ok;
    return message === undefined ? [] : [{ check, severity: 'ok', subject, message }];
  });
}

/** The first broken check; those after it depend on it. */
export function firstBroken(findings: readonly Finding[]): Finding | undefined {
  return findings.find(({ severity }) => severity === 'error');
}

const WORST_FIRST: readonly Severity[] = ['error', 'warning', 'unknown', 'info', 'ok'];

/** Orders findings, the worst first. */
export function bySeverity(a: Finding, b: Finding): number {
  return WORST_FIRST.indexOf(a.severity) - WORST_FIRST.indexOf(b.severity);
}

/** What a finding makes of its object. */
export const VERDICTS: Readonly<Record<Severity, ReportVerdict>> = {
  error: 'broken',
  warning: 'attention',
  unknown: 'unknown',
  info: 'ok',
  ok: 'ok',
};

/** What findings of a check are called together, and whose they are unless they say it. */
const TITLES: Readonly<Record<string, readonly [title: string, system: ReportSystemName]>> = {
  image: ['An image name is invalid', 'pulls'],
  'pull-sources': ['No usable pull source for an image', 'registry-overrides'],
  'service-account': ['The ServiceAccount of a workload does not exist', 'pulls'],
  injection: ['Pods lack a Secret that a profile adds', 'pull-secret-injection'],
  'secrets-exist': ['A pull secret that pods list does not exist', 'pulls'],
  'secrets-readable': ['A pull secret that pods list cannot be read', 'pulls'],
  credential: ['No usable credential for an image', 'pulls'],
  'mirror-credential': ['No credential that a mirror accepts', 'credential-provider'],
  distribution: ['A Secret could not be synced to its namespace', 'pull-secret-injection'],
  node: ['A node lacks its pull secret', 'global-pull-secret'],
  registry: ['The last pull of an image failed', 'pulls'],
  'pull-secret/unusable': ['A pull secret of the nodes cannot be used', 'global-pull-secret'],
  'entry/rejected': ['An entry of a pull secret is rejected', 'global-pull-secret'],
  'entry/shadowed': ['An entry of a pull secret is shadowed', 'global-pull-secret'],
  'credential/expired': ['A credential has expired', 'global-pull-secret'],
  'credential/expiring': ['A credential expires soon', 'global-pull-secret'],
  'mirrors/error': ['Mirror sets are rejected', 'registry-overrides'],
  'mirrors/warning': ['A mirror set does not work as written', 'registry-overrides'],
  'mirrors/state': ['Nodes do not follow the mirror sets', 'registry-overrides'],
};

function titleOf({ check, severity }: Finding): (typeof TITLES)[string] | undefined {
  const [family = ''] = check.split('/', 1);
  return TITLES[check] ?? TITLES[`${family}/${severity}`];
}

/** The system that a finding belongs to. */
export function systemOf(finding: Finding): ReportSystemName {
  return finding.system ?? titleOf(finding)?.[1] ?? 'pulls';
}

/**
 * Findings of one check, severity and thing that they are about together: the worst and the most frequent first. Linear in the
 * findings.
 */
export function groupedByCause(findings: readonly FoundIn[]): readonly Cause[] {
  const groups = Map.groupBy(findings, (one) =>
    JSON.stringify([one.check, one.severity, systemOf(one), one.about]),
  );
  return [...groups.values()]
    .map(causeOf)
    .toSorted((a, b) => byVerdict(a.verdict, b.verdict) || weightOf(b) - weightOf(a));
}

function weightOf({ pods, cases }: Cause): number {
  return Math.max(pods, cases.length);
}

function causeOf(cases: readonly FoundIn[]): Cause {
  const [first] = cases as readonly [FoundIn];
  const { check, severity, about } = first;
  const title = titleOf(first)?.[0] ?? `${wordsOf(check)} (${systemOf(first)})`;
  const isLater = severity === 'warning' && first.pods !== undefined;
  return {
    check,
    system: systemOf(first),
    verdict: VERDICTS[severity],
    title: isLater ? `${title}; it runs until the next pull` : title,
    ...(about === undefined ? {} : { about }),
    clusters: [...new Set(cases.map(({ cluster }) => cluster))],
    pods: cases.reduce((sum, { pods = 0 }) => sum + pods, 0),
    cases,
  };
}

/** `EntriesRejected`: "Entries rejected". */
function wordsOf(reason: string): string {
  const words = reason.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
  return words === '' ? 'Not in order' : words.charAt(0).toUpperCase() + words.slice(1);
}

/** What fixes all of them: of objects that differ under one name the first, as applying the second would undo it. */
export function fixesOf(findings: readonly Finding[]): readonly KubeObject[] {
  const seen = new Set<string>();
  return findings
    .flatMap(({ fix = [] }) => fix)
    .filter(({ apiVersion, kind, metadata }) => {
      const id = `${apiVersion} ${describeObject({ kind, ...metadata })}`;
      return !seen.has(id) && seen.add(id);
    });
}
