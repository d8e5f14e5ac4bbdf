/** What `mirrors IMAGE` answers, as a value and as text. */
import { toYaml } from '../kube/yaml.ts';
import { formatImageReference, type ImageReference, pullTag } from '../rules/auth-lookup/image-reference.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { MIRROR_SET_KINDS, type MirrorProblem } from '../rules/mirrors/collect.ts';
import type { MirrorFix } from '../rules/mirrors/fix.ts';
import type { Resolution, RuleOrigin } from '../rules/mirrors/mirrors.ts';
import type { ClusterObjects } from '../rules/node-registries/clusters.ts';
import type { NodeMirrors } from '../rules/node-registries/node-mirrors.ts';
import type { Plane, PlaneAnswer, PlaneResolver } from './planes.ts';
import { entryWarnings } from './planes.ts';

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
  /** As it was asked for, where that is a short name. */
  readonly written?: string;
  /** For whom this is the answer. */
  readonly for: readonly Plane[];
  /** Whether any mirror set or node's file was there to go by. */
  readonly given: boolean;
  /** By what nodes go; absent where no nodes pull. */
  readonly nodes?: Pick<NodeMirrors, 'state' | 'summary'>;
  /** The source that decides, and where it is written. */
  readonly rule?: { readonly source: string; readonly from: readonly string[] };
  /** In the order in which they are tried; what is not tried comes last. */
  readonly candidates: readonly MirrorLine[];
  /** Why the runtime pulls from nowhere, in its own words. */
  readonly refusal?: string;
  readonly fix?: MirrorFix;
  readonly problems: readonly string[];
  /** With a probe, for the control plane operator and the ignition server. */
  readonly lookUp?: ImageLookUp;
}

/** Where what has no container runtime finds an image. */
export interface ImageLookUp {
  /** The first mirror that has it, asked in turn: for a release image. Absent where none has it. */
  readonly release?: string;
  /** The first mirror, whether it has it or not: for a component of a release. */
  readonly component: string;
}

/** What is read of a cluster beside the mirror sets. */
export const MIRROR_KINDS: ReadonlySet<string> = new Set([
  ...MIRROR_SET_KINDS.map((set) => set.kind),
  'Image',
  'ClusterVersion',
  'HostedCluster',
  'MachineConfig',
]);

/** The image as the runtime sees it. */
export function fullImage(reference: ImageReference): string {
  const tag = pullTag(reference);
  return formatImageReference(tag === undefined ? reference : { ...reference, tag });
}

/** One report for those planes that get the same answer. */
export function mirrorReports(
  image: string,
  planes: readonly Plane[],
  cluster: ClusterObjects,
  resolve: PlaneResolver,
): readonly MirrorReport[] {
  const groups = new Map<string, PlaneAnswer[]>();
  for (const answer of resolve(image, planes)) {
    const key = JSON.stringify(answer.resolution.candidates.map(({ reference }) => reference));
    groups.set(key, [...(groups.get(key) ?? []), answer]);
  }
  const warnings = entryWarnings(cluster.objects);
  return [...groups.values()].flatMap((group): MirrorReport[] => {
    const [first] = group;
    if (first === undefined) return [];
    const { resolution, nodes, fix } = first;
    const place = placesOf(
      first.plane === 'node' || first.plane === 'image-stream' ? cluster.hostedCluster : undefined,
    );
    return [
      {
        image: resolution.image,
        for: group.map(({ plane }) => plane),
        given: first.given,
        ...(nodes === undefined ? {} : { nodes }),
        ...ruleOf(resolution, place),
        candidates: linesOf(resolution, place),
        ...(resolution.refusal === undefined ? {} : { refusal: resolution.refusal }),
        ...(fix === undefined ? {} : { fix }),
        problems: [...first.problems, ...warnings].map((problem) => problemText(problem, place)),
      },
    ];
  });
}

/** Where a rule is written, for a person. */
export type PlaceOfRule = (origin: RuleOrigin) => string;

/** Nodes of a hosted cluster get an ImageDigestMirrorSet that HyperShift makes of a list of the HostedCluster. */
export function placesOf(hosted: KubeObject | undefined): PlaceOfRule {
  if (hosted === undefined) return placeOf;
  const name = `HostedCluster/${hosted.metadata.namespace ?? ''}/${hosted.metadata.name}`;
  return ({ path }) => `${name} ${hostedPath(path)}`;
}

/** Where a HostedCluster has what its guest gets as a mirror set or as the Image object. */
export function hostedPath(path: string): string {
  return path
    .replace('spec.imageDigestMirrors', 'spec.imageContentSources')
    .replace(/^spec\.registrySources/, 'spec.configuration.image.registrySources')
    .replace(/^status\.desired\.image/, 'spec.release.image');
}

function problemText({ severity, origin, message }: MirrorProblem, place: PlaceOfRule): string {
  const own = placeOf(origin);
  const rest = message.startsWith(own) ? place(origin) + message.slice(own.length) : message;
  return `${severity}: ${rest}`;
}

function ruleOf({ rule }: Resolution, place: PlaceOfRule): Pick<MirrorReport, 'rule'> {
  if (rule === undefined) return {};
  return { rule: { source: rule.prefix, from: (rule.origins ?? []).map(place) } };
}

function linesOf(resolution: Resolution, place: PlaceOfRule): readonly MirrorLine[] {
  const from = (origin: RuleOrigin | undefined): { readonly from?: string } =>
    origin === undefined ? {} : { from: place(origin) };
  const tried = resolution.candidates.map(({ reference, kind, origin }) => ({
    reference,
    kind,
    ...from(origin),
  }));
  const skipped = resolution.skipped.map(({ reference, kind, origin, reason, message }) => ({
    reference,
    kind,
    ...from(origin),
    skipped: { reason, message },
  }));
  return [...tried, ...skipped];
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
  const width = Math.max(...report.candidates.map((line) => line.reference.length));
  let place = 0;
  const lines = report.candidates.flatMap((line) => {
    const number = line.skipped === undefined ? String((place += 1)) : '-';
    const head = `${number.padStart(3)}  ${line.reference}`;
    const whole = `${head.padEnd(width + 5)}  ${noteOf(line)}`;
    const rest = line.probe === undefined ? [] : [`${INDENT}${line.probe.verdict}: ${line.probe.message}`];
    return [...(whole.length <= columns ? [whole] : [head, `${INDENT}${noteOf(line)}`]), ...rest];
  });
  return `${[...headOf(report), ...lines, ...lookUpLines(report.lookUp), ...fixLines(report.fix)].join('\n')}\n`;
}

function headOf({
  image,
  written,
  for: planes,
  nodes,
  rule,
  given,
  refusal,
  candidates,
}: MirrorReport): readonly string[] {
  const some = candidates.some(({ kind }) => kind === 'mirror')
    ? 'every mirror set that covers it'
    : 'no mirror set covers it';
  const none = given ? some : 'no mirror set was given';
  const from = rule === undefined || rule.from.length === 0 ? '' : ` (${rule.from.join(', ')})`;
  return [
    `image  ${image}${written === undefined ? '' : `  (for the short name "${written}")`}`,
    ...(planes.length === 1 && planes[0] === 'node' ? [] : [`for    ${planes.join(', ')}`]),
    ...(nodes === undefined || nodes.state === 'rendered' ? [] : [`nodes  ${nodes.summary}`]),
    `rule   ${rule === undefined ? none : `${rule.source}${from}`}`,
    ...(refusal === undefined ? [] : [`fails  the runtime pulls from nowhere: ${refusal}`]),
  ];
}

function lookUpLines(lookUp: ImageLookUp | undefined): readonly string[] {
  if (lookUp === undefined) return [];
  const { release = 'not found', component } = lookUp;
  return [`as a release image      ${release}`, `as a release component  ${component}`];
}

/** What is wrong, what to do, and the object to apply, ready to be piped. */
function fixLines(fix: MirrorFix | undefined): readonly string[] {
  if (fix === undefined) return [];
  const object = fix.object === undefined ? [] : ['---', toYaml(fix.object).trimEnd()];
  return [`wrong  ${fix.message}`, `fix    ${fix.fix}`, ...object];
}

const INDENT = '     ';

function noteOf(line: MirrorLine): string {
  if (line.skipped !== undefined) return `${line.kind}, not tried: ${line.skipped.message}`;
  return `${line.kind}${line.from === undefined ? '' : `  ${line.from}`}`;
}
