/**
 * What `mirrors` goes by: the mirror sets of a folder, of standard input or of a cluster, the files of a node, and
 * which of several clusters is meant.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { CommandIo } from '../../cli/command.ts';
import { file, fromFlag } from '../../cli/flags.ts';
import { type AuthSource, pullSecretSource } from '../../core/docker-config/pull-secret.ts';
import { HOSTED_CLUSTER } from '../../core/kubernetes/hypershift.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import {
  aliasesOf,
  confTable,
  listOf,
  mergeRegistries,
  registriesOf,
} from '../../core/mirrors/registries-conf.ts';
import { type Candidate, originText, type Resolution, type RuleOrigin } from '../../core/mirrors/resolve.ts';
import { recordOf } from '../../core/record.ts';
import {
  type ClusterObjects,
  clustersIn,
  NODE_KINDS,
} from '../../registry-overrides/machine-config/input.ts';
import {
  type Disruption,
  disruptionOf,
  renderNodeFiles,
} from '../../registry-overrides/machine-config/render.ts';
import type { MirrorProblem } from '../../registry-overrides/mirror-sets/collect.ts';
import {
  entryWarnings,
  MACHINE_CONFIG,
  type NodeMirrors,
  type Plane,
  type PlaneResolver,
} from '../../registry-overrides/planes.ts';
import { judgePlaces } from '../checks/pull.ts';
import { locateAll } from './look.ts';
import {
  chooseCluster,
  LOOK_FLAGS,
  type LookValues,
  type NextKinds,
  readGiven,
  readObjects,
  type SourceKind,
} from './objects.ts';
import type { Finding } from './types.ts';

export const INPUT_FLAGS = {
  ...LOOK_FLAGS,
  from: {
    ...fromFlag,
    help: 'a folder of manifests, a file, or - for standard input, with mirror sets, image.config.openshift.io/cluster and HostedClusters',
  },
  kubeconfig: file({ help: 'read them from a cluster instead' }),
};

/** Rights on a cluster, for the permissions of commands. */
export const INPUT_API: readonly string[] = [
  'list imagedigestmirrorsets, imagetagmirrorsets, imagecontentsourcepolicies, hostedclusters',
  'get images.config.openshift.io/cluster, clusterversions/version',
  'get machineconfigs/99-worker-generated-registries, machineconfigs/99-master-generated-registries',
];

const KINDS: readonly SourceKind[] = [
  ...NODE_KINDS,
  HOSTED_CLUSTER,
  ...['worker', 'master'].map((pool) => ({ ...MACHINE_CONFIG, name: `99-${pool}-generated-registries` })),
];

/** Kinds of a folder that decide where nodes pull from. */
export const MIRROR_KINDS: ReadonlySet<string> = new Set(KINDS.map(({ kind }) => kind));

export type MirrorInput = Awaited<ReturnType<typeof readMirrorInput>>;

/** @throws UsageError where it is not clear which cluster is meant; PullwrightError where nothing can be read */
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
  const folders = await locateAll(
    from,
    kinds.map(({ kind }) => kind),
    io.stdin,
  );
  return {
    cluster: chooseCluster(clustersIn(folders.flatMap(({ manifests }) => manifests)), name),
    problems: folders
      .flatMap((folder) => folder.problems)
      // An object of another cluster has its name again; which cluster is meant is asked.
      .filter(({ first }) => first === undefined)
      .map(({ within, line, message }) => `error: ${within}:${line}: ${message}`),
  };
}

/** `unqualified-search-registries` of the nodes, as the Image object or the operator's template says. */
export function searchOf(objects: readonly KubeObject[]): readonly string[] {
  const rendering = renderNodeFiles(objects);
  return rendering.refused ? ['docker.io'] : rendering.search;
}

/** Files of a node. */
export type NodeConf = NonNullable<Awaited<ReturnType<typeof readNodeConf>>>;

/**
 * Reads `registries.conf` and drop-ins, in this order; a folder (`registries.conf.d`) stands for its `*.conf` in name order.
 *
 * @throws UsageError, PullwrightError where the runtime would refuse a file
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
    /** `unqualified-search-registries`; undefined where no file has it. */
    search: search && (listOf(search.table, 'unqualified-search-registries') as readonly string[]),
  };
}

async function confFiles(path: string): Promise<readonly string[]> {
  const info = await stat(path).catch(() => undefined);
  if (info?.isDirectory() !== true) return [path];
  const names = await readdir(path);
  return names
    .filter((name) => name.endsWith('.conf'))
    .sort()
    .map((name) => join(path, name));
}

/** Where the pull secret of a cluster is: named by its HostedCluster, else the platform's. */
export function pullSecretPlace(hosted: KubeObject | undefined) {
  if (hosted === undefined) return { namespace: 'openshift-config', name: 'pull-secret' };
  const named = recordOf(recordOf(hosted.spec)['pullSecret'])['name'];
  const name = typeof named === 'string' ? named : 'pull-secret';
  return { namespace: hosted.metadata.namespace ?? '', name };
}

/** The pull secret that the HostedCluster `wanted` names. */
export function hostedSecrets(wanted: string | undefined): NextKinds {
  return (store) =>
    store
      .list(HOSTED_CLUSTER)
      .filter(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}` === wanted)
      .map((hosted) => ({ apiVersion: 'v1', kind: 'Secret', ...pullSecretPlace(hosted) }));
}

/** The cluster's own pull secret among `objects`; undefined where it is missing or invalid. */
export function ownPullSecret(
  objects: readonly KubeObject[],
  hosted: KubeObject | undefined,
): AuthSource | undefined {
  const { namespace, name } = pullSecretPlace(hosted);
  const secret = objects.find(
    ({ kind, metadata }) => kind === 'Secret' && metadata.name === name && metadata.namespace === namespace,
  );
  return secret && pullSecretSource(secret as SecretObject);
}

// What a change of mirror sets does to the images that are in use: another order, no pull source left, a mirror without a credential.

/** An image in use. */
export interface UsedImage {
  readonly image: string;
  /** `Deployment/web/shop` */
  readonly usedBy: string;
  /** The users of it. */
  readonly for: readonly Plane[];
}

/** Whether there is a credential for a place, and who asks before and after the change. */
interface ChangeInput {
  readonly before: PlaneResolver;
  readonly after: PlaneResolver;
  /** @default {no pull secret is known} */
  readonly hasCredential?: (reference: string) => boolean;
}

export type InUse = ReturnType<typeof inUseChanges>;
export type InUseChange = InUse['changed'][number];

/**
 * Compares the places of each image, for each that asks for it.
 */
export function inUseChanges(used: readonly UsedImage[], input: ChangeInput) {
  const byImage = Map.groupBy(used, ({ image }) => image);
  return {
    images: byImage.size,
    changed: [...byImage].flatMap(([image, users]) => changesOf(image, users, input)),
    /** What the policy of nodes rejects after the change, and why. */
    rejected: used.flatMap((one) => {
      const skipped = input.after(one.image, one.for).flatMap(({ resolution }) => resolution.skipped);
      const why = skipped.find(({ reason }) => reason === 'PolicyRejected')?.message;
      return why === undefined ? [] : [{ ...one, why }];
    }),
  };
}

/** One for those users of an image that see the same change. */
function changesOf(
  image: string,
  users: readonly UsedImage[],
  { before: was, after: is, hasCredential = () => true }: ChangeInput,
) {
  const planes = [...new Set(users.flatMap((user) => user.for))];
  const [old, next] = [was, is].map((resolve) =>
    resolve(image, planes).map(({ plane, resolution }) => {
      return { plane, places: resolution.candidates.map(({ reference }) => reference) };
    }),
  );
  const changes = planes.flatMap((plane) => {
    const [before, after] = [old, next].map((one) => one?.find((answer) => answer.plane === plane)?.places);
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
        /** No usable pull source is left. */
        lost: before.length > 0 && after.length === 0,
        /** New mirrors for which the cluster's pull secret has no entry; empty where no secret is known. */
        withoutCredential: after.filter((place) => !before.includes(place) && !hasCredential(place)),
      };
    },
  );
}

// What `mirrors IMAGE` answers, as a value and as text.

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
  /** As requested, where that is a short name. */
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
  readonly findings: readonly Finding[];
  readonly problems: readonly string[];
  /** With a probe, for the control plane operator and the ignition server. */
  readonly lookUp?: {
    /** The first mirror that has it, asked in turn: for a release image. Absent where none has it. */
    readonly release?: string;
    /** The first mirror, whether it has it or not: for a component of a release. */
    readonly component: string;
  };
}

/** One report for those planes that get the same answer. */
export function mirrorReports(
  image: string,
  planes: readonly Plane[],
  cluster: ClusterObjects,
  resolve: PlaneResolver,
): readonly MirrorReport[] {
  const groups = Map.groupBy(resolve(image, planes), ({ resolution }) =>
    JSON.stringify(resolution.candidates.map(({ reference }) => reference)),
  );
  const warnings = entryWarnings(cluster.objects);
  return [...groups.values()].flatMap((group): MirrorReport[] => {
    const [first] = group;
    if (first === undefined) return [];
    const { resolution, nodes, fix: mirrorFix } = first;
    const place = placesOf(
      first.plane === 'node' || first.plane === 'image-stream' ? cluster.hostedCluster : undefined,
    );
    const { image, candidates: places, rule, refusal } = resolution;
    return [
      {
        image,
        for: group.map(({ plane }) => plane),
        given: first.given,
        ...(nodes && { nodes }),
        ...(rule && { rule: { source: rule.prefix, from: (rule.origins ?? []).map(place) } }),
        candidates: linesOf(resolution, place),
        ...(refusal !== undefined && { refusal }),
        // Each of the candidates says why it is skipped.
        findings: judgePlaces({ image, places, skipped: [], mirrorFix }),
        problems: [...first.problems, ...warnings].map((problem) => problemText(problem, place)),
      },
    ];
  });
}

/** Where a rule is written, for a person. */
export type PlaceOfRule = (origin: RuleOrigin) => string;

/** Nodes of a hosted cluster get an ImageDigestMirrorSet that HyperShift makes of a list of the HostedCluster. */
export function placesOf(hosted: KubeObject | undefined): PlaceOfRule {
  if (hosted === undefined) return originText;
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
  const own = originText(origin);
  const rest = message.startsWith(own) ? place(origin) + message.slice(own.length) : message;
  return `${severity}: ${rest}`;
}

function linesOf({ candidates, skipped }: Resolution, place: PlaceOfRule): readonly MirrorLine[] {
  const lineOf = ({ reference, kind, origin }: Candidate): MirrorLine => ({
    reference,
    kind,
    ...(origin && { from: place(origin) }),
  });
  return [
    ...candidates.map(lineOf),
    ...skipped.map((one) => ({ ...lineOf(one), skipped: { reason: one.reason, message: one.message } })),
  ];
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
  return `${[...headOf(report), ...lines, ...lookUpLines(report), ...report.findings.flatMap(findingLines)].join('\n')}\n`;
}

function headOf(report: MirrorReport): readonly string[] {
  const { image, written, for: planes, nodes, rule, given, refusal, candidates } = report;
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

function lookUpLines({ lookUp }: MirrorReport): readonly string[] {
  if (lookUp === undefined) return [];
  const { release = 'not found', component } = lookUp;
  return [`as a release image      ${release}`, `as a release component  ${component}`];
}

/** What is wrong, and what to do. */
function findingLines({ message, advice = '' }: Finding): readonly string[] {
  return [`wrong  ${message}`, `fix    ${advice}`];
}

const INDENT = '     ';

function noteOf(line: MirrorLine): string {
  if (line.skipped !== undefined) return `${line.kind}, not tried: ${line.skipped.message}`;
  return `${line.kind}${line.from === undefined ? '' : `  ${line.from}`}`;
}

// What would happen to nodes if mirror sets were applied: which files change, and whether nodes drain or reboot.

export type WhatIf = ReturnType<typeof whatIf>;

/** `applied` take the place of objects of the same kind and name. */
export function whatIf(cluster: ClusterObjects, applied: readonly KubeObject[]) {
  const after = afterwards(cluster, applied);
  const [old, next] = [renderNodeFiles(cluster.objects), renderNodeFiles(after.objects)];
  const disruption = old.refused || next.refused ? undefined : disruptionOf(old, next);
  return {
    /** The cluster with the objects applied. */
    cluster: after,
    /** Absent where the operator refuses what is there, or what would be. */
    disruption,
    /** One sentence. */
    summary: next.refused
      ? 'the Machine Config Operator would refuse this: nodes keep what they have'
      : disruption === undefined
        ? 'what nodes have now is not known: the present objects are refused'
        : summaryOf(disruption),
  };
}

/** Of a hosted cluster, mirror sets are applied to the cluster that runs its control plane; its own are in the HostedCluster. */
function afterwards(cluster: ClusterObjects, applied: readonly KubeObject[]): ClusterObjects {
  const { hostedCluster, management } = cluster;
  if (hostedCluster === undefined) return { ...cluster, objects: replaced(cluster.objects, applied) };
  const objects = replaced([...(management ?? []), hostedCluster], applied);
  const found = clustersIn(objects.map((object) => ({ object }))).find(({ name }) => name === cluster.name);
  return { ...cluster, management: replaced(management ?? [], applied), objects: found?.objects ?? [] };
}

function replaced(objects: readonly KubeObject[], applied: readonly KubeObject[]): readonly KubeObject[] {
  const id = ({ kind, metadata }: KubeObject): string =>
    `${kind}/${metadata.namespace ?? ''}/${metadata.name}`;
  const gone = new Set(applied.map(id));
  return [...objects.filter((object) => !gone.has(id(object))), ...applied];
}

function summaryOf({ changedFiles, drain, reboot, because }: Disruption): string {
  if (changedFiles.length === 0) return 'nothing changes on nodes';
  const why = because === undefined ? '' : `: ${because}`;
  if (reboot) return `every node drains and reboots${why}`;
  return drain ? `every node drains and reloads CRI-O${why}` : 'nodes reload CRI-O, without a drain';
}
