/** What `mirrors IMAGE` answers, as a value and as text. */
import { formatImageReference, type ImageReference, pullTag } from '../rules/auth-lookup/image-reference.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { collectMirrors, MIRROR_SET_KINDS } from '../rules/mirrors/collect.ts';
import {
  compileMirrors,
  type Resolution,
  type RuleOrigin,
  resolveMirrors,
} from '../rules/mirrors/mirrors.ts';
import type { Registry } from '../rules/mirrors/registries-conf.ts';

/** One line of the answer. */
export interface MirrorLine {
  readonly reference: string;
  readonly kind: 'mirror' | 'source';
  /** Place of the rule that names it, for a person. */
  readonly from?: string;
  /** Why it is not tried. */
  readonly skipped?: { readonly reason: string; readonly message: string };
  /** What a probe found; absent when none was made. */
  readonly probe?: { readonly verdict: string; readonly message: string; readonly digest?: string };
}

export interface MirrorReport {
  readonly image: string;
  /** The source that decides, and where it is written. */
  readonly rule?: { readonly source: string; readonly from: readonly string[] };
  /** In the order in which they are tried; what is not tried comes last. */
  readonly candidates: readonly MirrorLine[];
  readonly problems: readonly string[];
}

export const MIRROR_KINDS: ReadonlySet<string> = new Set(MIRROR_SET_KINDS.map((set) => set.kind));

/** Resolves `reference` by the mirror sets among `objects` and by the registries of `registries.conf`. */
export function mirrorReport(
  reference: ImageReference,
  objects: readonly KubeObject[],
  registries: readonly Registry[] = [],
): MirrorReport {
  const { rules, problems } = collectMirrors(objects);
  const tag = pullTag(reference);
  const image = formatImageReference(tag === undefined ? reference : { ...reference, tag });
  const resolution = resolveMirrors(compileMirrors([...rules, ...registries]), image);
  return {
    image: resolution.image,
    ...ruleOf(resolution),
    candidates: linesOf(resolution),
    problems: problems.map((problem) => `${problem.severity}: ${problem.message}`),
  };
}

function ruleOf({ rule }: Resolution): Pick<MirrorReport, 'rule'> {
  if (rule === undefined) return {};
  return { rule: { source: rule.prefix, from: (rule.origins ?? []).map(placeOf) } };
}

function linesOf(resolution: Resolution): readonly MirrorLine[] {
  const tried = resolution.candidates.map(({ reference, kind, origin }) => ({
    reference,
    kind,
    ...fromOf(origin),
  }));
  const skipped = resolution.skipped.map(({ reference, kind, origin, reason, message }) => ({
    reference,
    kind,
    ...fromOf(origin),
    skipped: { reason, message },
  }));
  return [...tried, ...skipped];
}

function fromOf(origin: RuleOrigin | undefined): { readonly from?: string } {
  return origin === undefined ? {} : { from: placeOf(origin) };
}

function placeOf({ kind, name, path }: RuleOrigin): string {
  return `${kind}/${name} ${path}`;
}

/**
 * The report for people: one line per place, in the order in which they are tried, and one for what its registry says. Where a
 * line would be longer than `columns`, what is to be said of the place goes below it.
 *
 * @param columns width of the terminal. @default {Infinity}
 */
export function mirrorText(report: MirrorReport, columns: number = Number.POSITIVE_INFINITY): string {
  const rule =
    report.rule === undefined
      ? 'no mirror set covers it'
      : `${report.rule.source}${report.rule.from.length === 0 ? '' : ` (${report.rule.from.join(', ')})`}`;
  const width = Math.max(...report.candidates.map((line) => line.reference.length));
  let place = 0;
  const lines = report.candidates.flatMap((line) => {
    const number = line.skipped === undefined ? String((place += 1)) : '-';
    const head = `${number.padStart(3)}  ${line.reference}`;
    const whole = `${head.padEnd(width + 5)}  ${noteOf(line)}`;
    const rest = line.probe === undefined ? [] : [`${INDENT}${line.probe.verdict}: ${line.probe.message}`];
    return [...(whole.length <= columns ? [whole] : [head, `${INDENT}${noteOf(line)}`]), ...rest];
  });
  return `${[`image  ${report.image}`, `rule   ${rule}`, ...lines].join('\n')}\n`;
}

const INDENT = '     ';

function noteOf(line: MirrorLine): string {
  if (line.skipped !== undefined) return `${line.kind}, not tried: ${line.skipped.message}`;
  return `${line.kind}${line.from === undefined ? '' : `  ${line.from}`}`;
}
