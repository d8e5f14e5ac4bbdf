/** `pullwright mirrors IMAGE`: where an image is really pulled from, in which order, and why. */

import { parse as parseToml } from 'smol-toml';
import { readFolder } from '../controller/folder.ts';
import { toYaml } from '../kube/yaml.ts';
import { type ProbeResult, probeAll } from '../registry/probe.ts';
import type { InUse } from '../registry-overrides/in-use-changes.ts';
import {
  fullImage,
  type ImageLookUp,
  MIRROR_KINDS,
  type MirrorLine,
  type MirrorReport,
  mirrorReports,
  mirrorText,
} from '../registry-overrides/mirror-report.ts';
import { PLANES, type PlaneInput, planeResolver, releasePlaces } from '../registry-overrides/planes.ts';
import { lookUpRelease, translateImage } from '../registry-overrides/release-lookup.ts';
import { type WhatIf, whatIf } from '../registry-overrides/what-if.ts';
import { isShortName } from '../rules/auth-lookup/image-name.ts';
import { type ImageReference, parseImageReference } from '../rules/auth-lookup/image-reference.ts';
import type { AuthSource } from '../rules/auth-lookup/kubelet.ts';
import { pullSecretSource } from '../rules/docker-config/secret-text.ts';
import { UsageError } from '../rules/errors.ts';
import type { SecretObject } from '../rules/kubernetes/object.ts';
import { shortNameCandidates } from '../rules/mirrors/short-name-aliases.ts';
import type { ClusterObjects } from '../rules/node-registries/clusters.ts';
import type { Disruption } from '../rules/node-registries/disruption.ts';
import { parseOverridesFlag } from '../rules/registry-overrides/registry-overrides.ts';
import { jsonText } from '../rules/text/json-text.ts';
import { oneLined } from '../rules/text/printable.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { type CommandTable, defineCommand } from './define.ts';
import { GLOBAL_SECRET, PLATFORM_SECRET } from './explain/node-file.ts';
import { outputFlag } from './flags/common.ts';
import { choice, type Flags, file, several, text, toggle } from './flags/flag.ts';
import type { Given } from './flags/parse.ts';
import {
  hostedSecrets,
  INPUT_API,
  INPUT_FLAGS,
  type MirrorInput,
  type NodeConf,
  ownPullSecret,
  readMirrorInput,
  readNodeConf,
  searchOf,
} from './mirror-input.ts';
import { changesInUse, IN_USE_KINDS, inUseText, isHarmless } from './mirrors-in-use.ts';
import { writeProblems } from './problems.ts';
import { ACCESS_FLAGS, type AccessValues, readAuthFile, registryClient } from './registry-access.ts';

const TABLE = {
  name: 'mirrors',
  summary: 'Show where an image is pulled from, in order, and why',
  about: [
    'Prints the places that an image is pulled from, in the order in which they are tried, with the mirror set that names each, and the places that are not tried, with the reason; and what to change where no mirror is tried although there are some.',
  ],
  args: [{ name: 'IMAGE...', help: 'images' }],
  flags: {
    ...INPUT_FLAGS,
    for: several(
      choice(PLANES, {
        value: 'WHO',
        help: 'node, control-plane (its pods, on nodes of the management cluster), control-plane-operator, ignition-server or image-stream (pull-through); without it all that the cluster has, together where they agree',
      }),
    ),
    'registries-conf': several(
      file({
        help: 'registries.conf of a node, then drop-ins or registries.conf.d; nodes go by it, and where the mirror sets say otherwise, that is said',
      }),
    ),
    'registry-overrides': text({
      value: 'S=D,...',
      default: '',
      help: "targets that replace sources for the control plane, as the flag of HyperShift's operator",
    }),
    'what-if': file({
      help: 'answer as if this file (or folder) of mirror sets were applied, and say what nodes would do',
    }),
    'in-use': toggle({
      help: 'with --what-if: all images of pods, templates, releases and catalogs, and what would change for each',
    }),
    probe: toggle({
      help: 'ask every place for the manifest, in parallel, with the credential that CRI-O would use: of the Secrets of the folder or cluster, else of --authfile',
    }),
    output: outputFlag(['text', 'json', 'yaml']),
    ...ACCESS_FLAGS,
  },
  notes: ['Problems of the mirror sets go to stderr.'],
  exitCodes:
    '0 each image has a place that may be asked, with --probe one that answers, with --in-use no image loses anything, 1 not so, or the Machine Config Operator refuses the mirror sets, 2 wrong usage',
  examples: [
    'node main.ts mirrors registry.example.com/team/app:1 --from examples/fleet --cluster management',
  ],
  permissions: {
    reads: [],
    writes: [],
    hosts: [
      'none; with --kubeconfig or --context the API server; with --probe the registries of the image and its mirrors, and the token services they name',
    ],
    api: [
      ...INPUT_API,
      'with --in-use: list pods, deployments, statefulsets, daemonsets, jobs, cronjobs, catalogsources, nodepools, get the pull secret of the cluster',
      'with --probe: get secrets/global-pull-secret (kube-system), secrets/pull-secret (openshift-config), and the one that the HostedCluster names',
    ],
  },
} as const satisfies CommandTable<Flags>;

/** Beside the mirror sets, of clusters and folders. */
const PROBE_KINDS = [GLOBAL_SECRET, PLATFORM_SECRET];

export const command: Command = defineCommand(TABLE, run);
type Values = Given<typeof TABLE.flags>['flags'];

async function run(
  { flags: values, args: positionals }: Given<typeof TABLE.flags>,
  io: CommandIo,
): Promise<ExitCode> {
  if (values['in-use']) return showInUse(values, positionals, io);
  if (positionals.length === 0) throw new UsageError('Cannot show mirrors: no image is given');
  positionals.forEach(imageOf);
  const planes = values.for ?? PLANES;
  const registryOverrides = parseOverridesFlag(values['registry-overrides']);
  if (registryOverrides === undefined)
    throw new UsageError(
      `Cannot read --registry-overrides "${values['registry-overrides']}": expected source=target pairs`,
    );
  const conf = await readNodeConf(values['registries-conf']);
  const input = values.probe
    ? await readMirrorInput(values, io, PROBE_KINDS, [hostedSecrets(values.cluster)])
    : await readMirrorInput(values, io);
  const supposed = await supposedBy(values['what-if'], input);
  const cluster = supposed?.cluster ?? input.cluster;
  const planeInput = { cluster, parseToml, conf, registryOverrides };
  const resolve = planeResolver(planeInput);
  const resolved = positionals.flatMap((written) =>
    namesOf(written, cluster, conf).flatMap(({ image, short }) =>
      mirrorReports(image, planes, cluster, resolve).map((report) =>
        short ? { ...report, written } : report,
      ),
    ),
  );
  if (resolved.length === 0)
    throw new UsageError(
      `Cannot answer for ${planes.join(', ')}: cluster "${cluster.name}" has no such thing`,
    );
  const reports = values.probe ? await probed(resolved, values, { input: planeInput, io }) : resolved;
  io.stdout.write(render({ cluster: cluster.name, supposed, reports }, values.output, io.stdout.columns));
  writeProblems(io, new Set([...input.problems, ...reports.flatMap((report) => report.problems)]));
  return reports.every(isUsable) ? 0 : 1;
}

async function showInUse(values: Values, images: readonly string[], io: CommandIo): Promise<ExitCode> {
  if (images.length > 0 || values['what-if'] === undefined)
    throw new UsageError('Cannot use --in-use: expected --what-if FILE, and no image');
  const next = [hostedSecrets(values.cluster)];
  const input = await readMirrorInput(values, io, IN_USE_KINDS, next);
  writeProblems(io, input.problems);
  const supposed = await supposedBy(values['what-if'], input);
  if (supposed === undefined) return 2;
  const given = values.authfile === undefined ? [] : [await readAuthFile(values.authfile)];
  const inUse = changesInUse(input, supposed, given);
  const change = { summary: supposed.summary, ...supposed.disruption };
  const document = { cluster: input.cluster.name, change, inUse };
  io.stdout.write(
    values.output === 'text'
      ? `change ${supposed.summary}\n${inUseText(oneLined(inUse))}`
      : values.output === 'json'
        ? jsonText<InUseOutput>(document)
        : toYaml(document),
  );
  return supposed.disruption !== undefined && isHarmless(inUse) ? 0 : 1;
}

function isUsable(report: MirrorReport): boolean {
  if (report.nodes?.state === 'unknown') return false;
  return report.candidates.some(
    (line) => line.skipped === undefined && (line.probe === undefined || line.probe.verdict === 'Valid'),
  );
}

/** A short name stands for several images, as the files of the node, the Image object or the operator's template say. */
function namesOf(
  written: string,
  cluster: ClusterObjects,
  conf: NodeConf | undefined,
): readonly { readonly image: string; readonly short: boolean }[] {
  if (!isShortName(written)) return [{ image: fullImage(imageOf(written)), short: false }];
  const search = conf?.search ?? searchOf(cluster.objects);
  return shortNameCandidates(written, conf?.aliases ?? new Map(), search).map((name) => ({
    image: fullImage(imageOf(name)),
    short: true,
  }));
}

/** What nodes pull with: the file that is synced to them, else the pull secret that they booted with. */
function nodeSecrets({
  objects,
  inside = [],
  management,
  hostedCluster,
}: ClusterObjects): readonly AuthSource[] {
  const { namespace, name } = GLOBAL_SECRET;
  const synced = [...inside, ...objects].find(
    ({ kind, metadata }) => kind === 'Secret' && metadata.name === name && metadata.namespace === namespace,
  );
  const sources = [
    synced && pullSecretSource(synced as SecretObject),
    ownPullSecret(management ?? objects, hostedCluster),
  ];
  return sources.filter((source) => source !== undefined);
}

/** The reports with what the registries say to each place that may be asked, and to mirrors that serve digests only. */
async function probed(
  reports: readonly MirrorReport[],
  access: AccessValues,
  { input, io }: { readonly input: PlaneInput; readonly io: CommandIo },
): Promise<readonly MirrorReport[]> {
  const client = await registryClient(access, io.env, nodeSecrets(input.cluster));
  const isAsked = ({ skipped }: MirrorLine): boolean =>
    skipped === undefined || skipped.reason === 'DigestOnly' || skipped.reason === 'TagOnly';
  const lines = reports.flatMap((report) => report.candidates.filter(isAsked));
  const results = await probeAll(
    client,
    lines.map((line) => line.reference),
    { signal: io.signal },
  );
  const byReference = new Map(results.map((result): [string, ProbeResult] => [result.reference, result]));
  const withProbes = reports.map((report) => ({
    ...report,
    candidates: report.candidates.map((line) => {
      const found = isAsked(line) ? byReference.get(line.reference) : undefined;
      if (found === undefined) return line;
      const { verdict, message, digest } = found;
      return { ...line, probe: { verdict, message, ...(digest === undefined ? {} : { digest }) } };
    }),
  }));
  return Promise.all(withProbes.map((report) => lookedUp(report, input)));
}

/** Where HyperShift's operators find the image, by what the registries said. */
async function lookedUp(report: MirrorReport, input: PlaneInput): Promise<MirrorReport> {
  const { image, candidates } = report;
  if (!report.for.some((plane) => plane === 'control-plane-operator' || plane === 'ignition-server'))
    return report;
  const valid = candidates
    .filter(({ probe }) => probe?.verdict === 'Valid')
    .map(({ reference }) => reference);
  const places = releasePlaces(input);
  const found = await lookUpRelease(image, places, async (reference) => {
    if (!valid.includes(reference)) throw new Error('not found');
    return reference;
  }).catch(() => undefined);
  const lookUp: ImageLookUp = {
    ...(found === undefined ? {} : { release: found.from }),
    component: translateImage(image, places),
  };
  return { ...report, lookUp };
}

function imageOf(text: string): ImageReference {
  const parsed = parseImageReference(text);
  if (parsed.ok) return parsed.reference;
  const bare = text.replace(/^[a-z-]+:\/\//, '');
  const hint =
    bare !== text && parseImageReference(bare).ok ? `: write "${bare}", without the transport` : '';
  throw new UsageError(`Cannot read image "${text}": ${parsed.goText}${hint}`);
}

async function supposedBy(path: string | undefined, { cluster }: MirrorInput): Promise<WhatIf | undefined> {
  if (path === undefined) return undefined;
  const { manifests } = await readFolder(path, MIRROR_KINDS);
  return whatIf(
    cluster,
    manifests.map(({ object }) => object),
  );
}

/** What a change would do, as JSON. */
export interface SupposedChange extends Partial<Disruption> {
  readonly summary: string;
}

/** What is printed as JSON of images. */
export interface MirrorsOutput {
  readonly cluster: string;
  /** With `--what-if`. */
  readonly change?: SupposedChange;
  readonly reports: readonly MirrorReport[];
}

/** What is printed as JSON with `--in-use`. */
export interface InUseOutput {
  readonly cluster: string;
  readonly change: SupposedChange;
  readonly inUse: InUse;
}

interface Answer {
  readonly cluster: string;
  readonly supposed: WhatIf | undefined;
  readonly reports: readonly MirrorReport[];
}

/** What is fixed is YAML, which stays exact. */
function inText(report: MirrorReport): MirrorReport {
  return { ...oneLined(report), ...(report.fix === undefined ? {} : { fix: report.fix }) };
}

function render({ cluster, supposed, reports }: Answer, output: string, columns: number | undefined): string {
  if (output === 'text') {
    const head = supposed === undefined ? [] : [`change ${supposed.summary}\n`];
    return [...head, ...reports.map((report) => mirrorText(inText(report), columns))].join('\n');
  }
  const change = supposed && { summary: supposed.summary, ...supposed.disruption };
  const document = { cluster, ...(change === undefined ? {} : { change }), reports };
  return output === 'json' ? jsonText<MirrorsOutput>(document) : toYaml(document);
}
