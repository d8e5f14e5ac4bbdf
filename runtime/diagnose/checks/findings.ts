/** Defines checks, runs them on a model, and groups findings by cause. */

import { describeObject, type KubeObject } from '../../core/kubernetes/object.ts';
import { distinctBy } from '../../core/record.ts';
import {
  byVerdict,
  type Cause,
  type Finding,
  type FoundIn,
  type ReportSystemName,
  type ReportVerdict,
  type Severity,
} from '../model/types.ts';

/** Result of a check; {@link judge} fills in the rest. */
export type Told = Omit<Finding, Filled> & Partial<Pick<Finding, Filled>>;
type Filled = 'check' | 'severity' | 'subject';

/** Result: the check passed. */
export function ok(message: string): Told {
  return { severity: 'ok', message };
}

/** Result: nothing is known to be wrong, but the check does not confirm that all is well. */
export function info(message: string): Told {
  return { severity: 'info', message };
}

/** Result: works, but needs attention. */
export function warning(message: string, advice?: string): Told {
  return { severity: 'warning', message, advice };
}

/** Result: does not work, with the fix. */
export function error(message: string, advice: string): Told {
  return { severity: 'error', message, advice };
}

/** A check of a model. */
export interface Check<Model> {
  /** Stable; findings may set a finer one. */
  readonly id: string;
  /**
   * If input was unreadable and nothing is found, the result is `unknown`, never `ok`. With `nothing`, the result is `ok`.
   *
   * @default {all}
   */
  readonly needs?: 'nothing';
  /** Pure; never throws. A finding without a severity is an error. */
  readonly run: (model: Model) => Told | readonly Told[] | undefined;
  /** Result if nothing is found; a message is `ok`, and what could not be checked is `info`. @default no result */
  readonly ok?: string | ((model: Model) => string | Told);
}

/**
 * Runs all `checks` and returns their findings in order. Never throws.
 *
 * @param subject of findings that name none
 * @param unread parts of the model that could not be read
 */
export function judge<Model>(
  checks: readonly Check<Model>[],
  model: Model,
  subject = '',
  unread: readonly string[] = [],
): readonly Finding[] {
  return checks.flatMap(({ id: check, needs, run, ok }): readonly Finding[] => {
    const found = [run(model) ?? []].flat();
    if (found.length > 0) return found.map((told) => ({ check, severity: 'error', subject, ...told }));
    if (needs === undefined && unread.length > 0)
      return [{ check, severity: 'unknown', subject, message: 'not all could be read' }];
    const told = typeof ok === 'function' ? ok(model) : ok;
    if (told === undefined) return [];
    return [{ check, severity: 'ok', subject, ...(typeof told === 'string' ? { message: told } : told) }];
  });
}

/** The first failed check; later checks depend on it. */
export function firstBroken(findings: readonly Finding[]): Finding | undefined {
  return findings.find(({ severity }) => severity === 'error');
}

/** Verdict on an object, by the severity of its finding; the worst first. */
export const VERDICTS: Readonly<Record<Severity, ReportVerdict>> = {
  error: 'broken',
  warning: 'attention',
  unknown: 'unknown',
  info: 'ok',
  ok: 'ok',
};

const WORST_FIRST = Object.keys(VERDICTS);

/** Orders findings, the worst first. */
export function bySeverity(a: Finding, b: Finding): number {
  return WORST_FIRST.indexOf(a.severity) - WORST_FIRST.indexOf(b.severity);
}

/** Title for findings of a check, and their default system. */
const TITLES: Readonly<Record<string, readonly [title: string, system: ReportSystemName]>> = {
  image: ['An image name is invalid', 'pulls'],
  'pull-sources': ['No usable pull source for an image', 'registry-overrides'],
  'service-account': ['The ServiceAccount of a workload does not exist', 'pulls'],
  injection: ['Pods lack a Secret that admission adds', 'pull-secret-injection'],
  'secrets-named': ['A pod lists pull secrets without a name', 'pulls'],
  'secrets-exist': ['A pull secret that pods list does not exist', 'pulls'],
  'secrets-readable': ['A pull secret that pods list cannot be read', 'pulls'],
  credential: ['No usable credential for an image', 'pulls'],
  'mirror-credential': ['No credential that a mirror accepts', 'credential-provider'],
  distribution: ['A Secret could not be synced to its namespace', 'pull-secret-injection'],
  node: ['A node lacks its pull secret', 'global-pull-secret'],
  registry: ['The last pull of an image failed', 'pulls'],
  'pull-secret/unusable': ['A pull secret of the nodes cannot be used', 'global-pull-secret'],
  'entry/doubtful': ['A registry will reject a credential that the kubelet tries', 'pulls'],
  'entry/near': ['An entry almost matches an image', 'pulls'],
  'entry/ambiguous': ['Several entries are for the same mirror', 'pulls'],
  'short-name': ['An image has no registry in its name', 'pulls'],
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

/** Groups findings by check, severity, system and `about`; the worst and the most frequent first. */
export function groupedByCause(findings: readonly FoundIn[]): readonly Cause[] {
  const groups = Map.groupBy(findings, (one) =>
    JSON.stringify([one.check, one.severity, systemOf(one), one.about]),
  );
  return [...groups.values()]
    .map(causeOf)
    .toSorted((a, b) => byVerdict(a.verdict, b.verdict) || weightOf(b) - weightOf(a));
}

const weightOf = ({ pods, cases }: Cause): number => Math.max(pods, cases.length);

/** The cause of findings that have it in common; at least one. */
export function causeOf(cases: readonly FoundIn[]): Cause {
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

/** Splits a reason into words: `EntriesRejected` becomes "Entries rejected". */
function wordsOf(reason: string): string {
  const words = reason.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
  return words === '' ? 'Not ready' : words.charAt(0).toUpperCase() + words.slice(1);
}

/** Collects all fixes. Keeps only the first object of each name, because applying a second would undo it. */
export function fixesOf(findings: readonly Finding[]): readonly KubeObject[] {
  const all = findings.flatMap(({ fix = [] }) => fix);
  return distinctBy(all, (object) => `${object.apiVersion} ${describeObject(object)}`);
}
