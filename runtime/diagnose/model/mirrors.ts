/**
 * Reads the inputs of `mirrors`: mirror sets from a folder, standard input or a cluster, and the files of a node. Selects the
 * cluster.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { CommandIo } from '../../cli/command.ts';
import { type AuthSource, pullSecretSource } from '../../core/docker-config/pull-secret.ts';
import { HOSTED_CLUSTER } from '../../core/kubernetes/hypershift.ts';
import { describeObject, type KubeObject, type SecretObject } from '../../core/kubernetes/object.ts';
import {
  aliasesOf,
  confTable,
  listOf,
  mergeRegistries,
  registriesOf,
} from '../../core/mirrors/registries-conf.ts';
import { type Candidate, originText, type Resolution, type RuleOrigin } from '../../core/mirrors/resolve.ts';
import { recordOf } from '../../core/record.ts';
import type { ObjectRef } from '../../kube/resources.ts';
import {
  type ClusterObjects,
  clustersIn,
  NODE_KINDS,
} from '../../registry-overrides/machine-config/input.ts';
import {
  type Disruption,
  disruptionOf,
  renderNodeFiles,
  TEMPLATE_SEARCH,
} from '../../registry-overrides/machine-config/render.ts';
import { collectMirrors, type MirrorProblem } from '../../registry-overrides/mirror-sets/collect.ts';
import { MACHINE_CONFIG, type Plane, type PlaneResolver } from '../../registry-overrides/planes.ts';
import { judgePlaces } from '../checks/pull.ts';
import { namedPlace } from './attempts.ts';
import { locateAll } from './look.ts';
import {
  chooseCluster,
  type LookValues,
  type NextKinds,
  readGiven,
  readObjects,
  type SourceKind,
} from './objects.ts';
import { PLATFORM_SECRET, SECRET } from './pull.ts';

const KINDS: readonly SourceKind[] = [
  ...NODE_KINDS,
  HOSTED_CLUSTER,
  ...['worker', 'master'].map((pool) => ({ ...MACHINE_CONFIG, name: `99-${pool}-generated-registries` })),
];

/** Kinds that determine the nodes' pull sources. */
export const MIRROR_KINDS: ReadonlySet<string> = new Set(KINDS.map(({ kind }) => kind));

export type MirrorInput = Awaited<ReturnType<typeof readMirrorInput>>;

/** Reads one cluster. @throws UsageError if the cluster is ambiguous; PullwrightError if nothing can be read */
export async function readMirrorInput(
  { from = [], cluster: name, ...access }: LookValues,
  io: CommandIo,
  more: readonly SourceKind[] = [],
  next: readonly NextKinds[] = [],
) {
  const kinds = [...KINDS, ...more];
  if (from.length === 0 && (access.kubeconfig !== undefined || access.context !== undefined)) {
    const { store, problems } = await readObjects(access, [() => kinds, ...next], io);
    const found = [...store].map((object) => ({ object }));
    return {
      cluster: chooseCluster(clustersIn(found), name),
      problems: problems.map((problem) => `warning: ${problem}`),
    };
  }
  const names = kinds.map(({ kind }) => kind);
  const folders = await locateAll(from, names, io.stdin);
  return {
    cluster: chooseCluster(clustersIn(folders.flatMap(({ manifests }) => manifests)), name),
    problems: folders
      .flatMap((folder) => folder.problems)
      // Ignore duplicates: other clusters may have objects of the same name.
      .filter(({ first }) => first === undefined)
      .map(({ within, line, message }) => `error: ${within}:${line}: ${message}`),
  };
}

/** `unqualified-search-registries` of the nodes, from the Image object or the operator's template. */
export function searchOf(objects: readonly KubeObject[]): readonly string[] {
  const rendering = renderNodeFiles(objects);
  return rendering.refused ? ['docker.io'] : (rendering.search ?? TEMPLATE_SEARCH);
}

/** Parsed registries.conf files of a node. */
export type NodeConf = NonNullable<Awaited<ReturnType<typeof readNodeConf>>>;

/**
 * Reads `registries.conf`, then drop-ins. A folder (`registries.conf.d`) is read as its `*.conf` files, sorted by name.
 *
 * @throws UsageError if a file cannot be read; PullwrightError if the runtime would reject it
 */
export async function readNodeConf(paths: readonly string[] | undefined) {
  if (paths === undefined || paths.length === 0) return undefined;
  const files = (await Promise.all(paths.map(confFiles))).flat();
  const texts = await Promise.all(files.map((path) => readGiven(path, 'registries.conf')));
  const tables = texts.map((text) => {
    const table = confTable(text);
    return { rules: registriesOf(table), table };
  });
  const search = tables.findLast(({ table }) => table['unqualified-search-registries'] !== undefined);
  return {
    from: files.join(', '),
    rules: mergeRegistries(tables.map(({ rules }) => rules)),
    aliases: new Map(tables.flatMap(({ table }) => [...aliasesOf(table)])),
    /** `unqualified-search-registries`; undefined if no file sets it. */
    search: search && (listOf(search.table, 'unqualified-search-registries') as readonly string[]),
  };
}

async function confFiles(path: string): Promise<readonly string[]> {
  const info = await stat(path).catch(() => undefined);
  if (info?.isDirectory() !== true) return [path];
  return (await readdir(path))
    .filter((name) => name.endsWith('.conf'))
    .sort()
    .map((name) => join(path, name));
}

/** The cluster's pull secret: the HostedCluster's reference, or else the platform's Secret. */
export function pullSecretPlace(hosted: KubeObject | undefined): ObjectRef {
  if (hosted === undefined) return PLATFORM_SECRET;
  const { name } = recordOf(recordOf(hosted.spec)['pullSecret']);
  const namespace = hosted.metadata.namespace ?? '';
  return { ...SECRET, namespace, name: typeof name === 'string' ? name : 'pull-secret' };
}

/** The pull secret referenced by the HostedCluster `wanted`, as `namespace/name`. */
export function hostedSecrets(wanted: string | undefined): NextKinds {
  return (store) =>
    store
      .list(HOSTED_CLUSTER)
      .filter(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}` === wanted)
      .map(pullSecretPlace);
}

/** Finds a pull secret in `objects`; undefined if it is missing or invalid. */
export function pullSecretIn(objects: readonly KubeObject[], ref: ObjectRef): AuthSource | undefined {
  const secret = objects.find((object) => describeObject(object) === describeObject(ref));
  return secret && pullSecretSource(secret as SecretObject);
}

// Effects of a mirror set change on images in use: another order, no pull source left, a mirror without a credential.

/** An image in use. */
export interface UsedImage {
  readonly image: string;
  /** `Deployment/web/shop` */
  readonly usedBy: string;
  /** Components that pull it. */
  readonly for: readonly Plane[];
}

/** Resolvers before and after the change, and the credential lookup. */
interface ChangeInput {
  readonly before: PlaneResolver;
  readonly after: PlaneResolver;
  /** Reports whether a pull source has a credential. */
  readonly hasCredential: (reference: string) => boolean;
}

export type InUse = ReturnType<typeof inUseChanges>;
export type InUseChange = InUse['changed'][number];

/** Compares the pull sources of each image before and after the change, for each component that pulls it. */
export function inUseChanges(used: readonly UsedImage[], input: ChangeInput) {
  const byImage = Map.groupBy(used, ({ image }) => image);
  return {
    images: byImage.size,
    changed: [...byImage].flatMap(([image, users]) => changesOf(image, users, input)),
    /** Images that the nodes' policy rejects after the change, with the reason. */
    rejected: used.flatMap((one) => {
      const skipped = input.after(one.image, one.for).flatMap(({ resolution }) => resolution.skipped);
      const why = skipped.find(({ reason }) => reason === 'PolicyRejected')?.message;
      return why === undefined ? [] : [{ ...one, why }];
    }),
  };
}

/** Groups the components that pull an image by identical change. */
function changesOf(image: string, users: readonly UsedImage[], input: ChangeInput) {
  const planes = [...new Set(users.flatMap((user) => user.for))];
  const answers = [input.before(image, planes), input.after(image, planes)];
  const changes = planes.flatMap((plane) => {
    const [before, after] = answers.map((all) =>
      all.find((one) => one.plane === plane)?.resolution.candidates.map(({ reference }) => reference),
    );
    const isSame = before === undefined || after === undefined || before.join() === after.join();
    return isSame ? [] : [{ plane, before, after }];
  });
  return [...Map.groupBy(changes, ({ before, after }) => JSON.stringify([before, after])).values()].flatMap(
    (group) => {
      const [{ before, after }] = group as [(typeof changes)[number]];
      const own = group.map(({ plane }) => plane);
      return {
        image,
        usedBy: users
          .filter((user) => user.for.some((plane) => own.includes(plane)))
          .map((user) => user.usedBy),
        for: own,
        /** Pull sources, in the order in which they are tried. */
        before,
        after,
        /** True if no usable pull source is left. */
        lost: before.length > 0 && after.length === 0,
        /** New mirrors without an entry in the cluster's pull secret; empty if no pull secret is known. */
        withoutCredential: after.filter((place) => !before.includes(place) && !input.hasCredential(place)),
      };
    },
  );
}

// Output of `mirrors IMAGE`, as data and as text.

/** One pull source. */
export interface MirrorLine extends Pick<Candidate, 'reference' | 'kind'> {
  /** Object and field of the rule that names the pull source, as text. */
  readonly from?: string;
  /** Why the pull source is not tried. */
  readonly skipped?: { readonly reason: string; readonly message: string };
  /** Result of the probe; absent if none was made. */
  readonly probe?: { readonly verdict: string; readonly message: string; readonly digest?: string };
}

export type MirrorReport = ReturnType<typeof mirrorReports>[number] & {
  /** The requested short name; absent for a full reference. */
  readonly written?: string;
  /** Results of the lookups of the control plane operator and the ignition server; only with a probe. */
  readonly lookUp?: {
    /** For a release image: the first pull source that has it. Absent if none has it. */
    readonly release?: string;
    /** For a component of a release: the first mirror, even if it lacks the image. */
    readonly component: string;
  };
};

/** Resolves `image` for each plane; planes with the same pull sources share a report. */
export function mirrorReports(
  image: string,
  planes: readonly Plane[],
  cluster: ClusterObjects,
  resolve: PlaneResolver,
) {
  const groups = Map.groupBy(resolve(image, planes), ({ resolution }) =>
    JSON.stringify(resolution.candidates.map(({ reference }) => reference)),
  );
  const { problems } = collectMirrors(cluster.objects);
  // Entries without effect or in conflict.
  const warnings = problems.filter(({ severity }) => severity === 'warning');
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { resolution, nodes, fix } = first;
    const place = placesOf(
      first.plane === 'node' || first.plane === 'image-stream' ? cluster.hostedCluster : undefined,
    );
    const { image, candidates: places, rule, refusal } = resolution;
    return [
      {
        image,
        /** Components that pull the image from these sources. */
        for: group.map(({ plane }) => plane),
        /** True if a mirror set or a node's file was supplied. */
        given: first.given,
        /** State of the nodes' mirror configuration; absent if no nodes pull. */
        ...(nodes && { nodes }),
        /** The matching rule's source, and the objects and fields that define it. */
        ...(rule && { rule: { source: rule.prefix, from: (rule.origins ?? []).map(place) } }),
        /** Pull sources in the order tried, then those that are not tried. */
        candidates: linesOf(resolution, place),
        /** The runtime's error if there is no usable pull source. */
        ...(refusal !== undefined && { refusal }),
        // The candidates already have the reason why each is skipped.
        findings: judgePlaces({ image, places, skipped: [], ...(fix && { mirrorFix: fix }) }),
        problems: [...first.problems, ...warnings].map((problem) => problemText(problem, place)),
      },
    ];
  });
}

/** Describes the object and field of a rule. */
export type PlaceOfRule = (origin: RuleOrigin) => string;

/** For a hosted cluster, names the HostedCluster field from which HyperShift generates the nodes' ImageDigestMirrorSet. */
export function placesOf(hosted: KubeObject | undefined): PlaceOfRule {
  if (hosted === undefined) return originText;
  const name = `HostedCluster/${hosted.metadata.namespace ?? ''}/${hosted.metadata.name}`;
  return ({ path }) => `${name} ${hostedPath(path)}`;
}

/** Maps a field of the guest's mirror set, Image or ClusterVersion to the HostedCluster field that it comes from. */
export function hostedPath(path: string): string {
  return path
    .replace('spec.imageDigestMirrors', 'spec.imageContentSources')
    .replace(/^spec\.registrySources/, 'spec.configuration.image.registrySources')
    .replace(/^status\.desired\.image/, 'spec.release.image');
}

function problemText({ severity, origin, message }: MirrorProblem, place: PlaceOfRule): string {
  const own = originText(origin);
  const rest = message.startsWith(own) ? place(origin) + message.slice(own.length) : message;
  return `${severity}: ${rest}`;
}

function linesOf({ candidates, skipped }: Resolution, place: PlaceOfRule): readonly MirrorLine[] {
  const passed = skipped.map((one) => {
    return { ...namedPlace(one, place), skipped: { reason: one.reason, message: one.message } };
  });
  return [...candidates.map((one) => namedPlace(one, place)), ...passed];
}

/**
 * Formats the report: one line per pull source in the order tried, and one for its probe. If a line exceeds `columns`, the note
 * moves to the next line.
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
  return `${[...headOf(report), ...lines, ...lookUpLines(report), ...report.findings.flatMap(({ message, advice = '' }) => [`wrong  ${message}`, `fix    ${advice}`])].join('\n')}\n`;
}

function headOf(report: MirrorReport): readonly string[] {
  const { image, written, for: planes, nodes, rule, given, refusal, candidates } = report;
  const some = candidates.some(({ kind }) => kind === 'mirror')
    ? 'every mirror set that covers it'
    : 'no mirror set covers it';
  const none = given ? some : 'no mirror set is given';
  const from = rule === undefined || rule.from.length === 0 ? '' : ` (${rule.from.join(', ')})`;
  return [
    `image  ${image}${written === undefined ? '' : `  (for the short name "${written}")`}`,
    ...(planes.length === 1 && planes[0] === 'node' ? [] : [`for    ${planes.join(', ')}`]),
    ...(nodes === undefined || nodes.state === 'rendered' ? [] : [`nodes  ${nodes.summary}`]),
    `rule   ${rule === undefined ? none : `${rule.source}${from}`}`,
    ...(refusal === undefined ? [] : [`fails  the runtime pulls from nowhere: ${refusal}`]),
  ];
}

function lookUpLines({ lookUp }: MirrorReport): readonly string[] {
  if (lookUp === undefined) return [];
  const { release = 'not found', component } = lookUp;
  return [`as a release image      ${release}`, `as a release component  ${component}`];
}

const INDENT = '     ';

function noteOf(line: MirrorLine): string {
  if (line.skipped !== undefined) return `${line.kind}, not tried: ${line.skipped.message}`;
  return `${line.kind}${line.from === undefined ? '' : `  ${line.from}`}`;
}

// Effects on nodes if mirror sets were applied: changed files, drains and reboots.

export type WhatIf = ReturnType<typeof whatIf>;

/** Computes the effects of applying `applied`, which replace objects of the same kind, namespace and name. */
export function whatIf(cluster: ClusterObjects, applied: readonly KubeObject[]) {
  const after = afterwards(cluster, applied);
  const [old, next] = [renderNodeFiles(cluster.objects), renderNodeFiles(after.objects)];
  const disruption = old.refused || next.refused ? undefined : disruptionOf(old, next);
  return {
    /** The cluster with the objects applied. */
    cluster: after,
    /** Undefined if the Machine Config Operator rejects the mirror sets before or after the change. */
    disruption,
    /** One sentence. */
    summary: next.refused
      ? 'the Machine Config Operator would reject this: nodes keep their configuration'
      : disruption === undefined
        ? 'the configuration of nodes is unknown: the Machine Config Operator rejects the existing objects'
        : summaryOf(disruption),
  };
}

/** For a hosted cluster, `applied` go to the management cluster; the nodes' mirror sets come from the HostedCluster. */
function afterwards(cluster: ClusterObjects, applied: readonly KubeObject[]): ClusterObjects {
  const { hostedCluster, management } = cluster;
  if (hostedCluster === undefined) return { ...cluster, objects: replaced(cluster.objects, applied) };
  const objects = replaced([...(management ?? []), hostedCluster], applied);
  const found = clustersIn(objects.map((object) => ({ object }))).find(({ name }) => name === cluster.name);
  return { ...cluster, management: replaced(management ?? [], applied), objects: found?.objects ?? [] };
}

function replaced(objects: readonly KubeObject[], applied: readonly KubeObject[]): readonly KubeObject[] {
  const gone = new Set(applied.map(describeObject));
  return [...objects.filter((object) => !gone.has(describeObject(object))), ...applied];
}

function summaryOf({ changedFiles, drain, reboot, because }: Disruption): string {
  if (changedFiles.length === 0) return 'nodes stay unchanged';
  const why = because === undefined ? '' : `: ${because}`;
  if (reboot) return `every node drains and reboots${why}`;
  return drain ? `every node drains and reloads CRI-O${why}` : 'nodes reload CRI-O, without a drain';
}
