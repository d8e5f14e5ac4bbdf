/** `pullwright mirrors IMAGE`: the actual pull sources of an image, in order, and why. */
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import { choice, file, fromFlag, type Given, outputFlag, several, text, toggle } from '../../cli/flags.ts';
import { areWarnings, writeProblems } from '../../cli/terminal.ts';
import { lookupForContainers } from '../../core/docker-config/containers-keyring.ts';
import type { AuthSource } from '../../core/docker-config/pull-secret.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import { isShortName, parseImageReference } from '../../core/image-reference.ts';
import { NODE_POOL } from '../../core/kubernetes/hypershift.ts';
import { describeObject, type KubeObject } from '../../core/kubernetes/object.ts';
import { shortNameCandidates } from '../../core/mirrors/registries-conf.ts';
import { defined, textOf, valueAt } from '../../core/record.ts';
import { counted, oneLined } from '../../core/text.ts';
import { readFolder } from '../../engine/offline/manifests.ts';
import { ObjectStore } from '../../engine/store.ts';
import { probeAll } from '../../registry/probe.ts';
import type { ClusterObjects } from '../../registry-overrides/machine-config/input.ts';
import { parseOverridesFlag } from '../../registry-overrides/overrides.ts';
import {
  lookUpRelease,
  PLANES,
  type Plane,
  type PlaneInput,
  type PlaneResolver,
  planeResolver,
  releasePlaces,
  translateImage,
} from '../../registry-overrides/planes.ts';
import { fullImage } from '../model/attempts.ts';
import {
  hostedSecrets,
  type InUse,
  type InUseChange,
  inUseChanges,
  MIRROR_KINDS,
  type MirrorInput,
  type MirrorLine,
  type MirrorReport,
  mirrorReports,
  mirrorText,
  type NodeConf,
  pullSecretIn,
  pullSecretPlace,
  readMirrorInput,
  readNodeConf,
  searchOf,
  type UsedImage,
  type WhatIf,
  whatIf,
} from '../model/mirrors.ts';
import { LOOK_FLAGS, type SourceKind } from '../model/objects.ts';
import { GLOBAL_SECRET, imageOf, joinedPodName, PLATFORM_SECRET } from '../model/pull.ts';
import {
  ACCESS_FLAGS,
  type AccessValues,
  imageUsers,
  readAuthFile,
  registryClient,
  USING_KINDS,
} from '../model/registries.ts';
import { answer, documentsText, OUTPUT_FORMS } from '../views/text.ts';

// `mirrors --what-if FILE --in-use`: effects of a change on every image in use.

const CATALOG_SOURCE = { apiVersion: 'operators.coreos.com/v1alpha1', kind: 'CatalogSource' } as const;

/** Kinds with images, and the pull secret of the cluster. */
const IN_USE_KINDS: readonly SourceKind[] = [...USING_KINDS, CATALOG_SOURCE, NODE_POOL, PLATFORM_SECRET];

/** The effects of a change on every image in use. Credentials of --authfile count beside the cluster's pull secret. */
async function showInUse(values: Values, input: MirrorInput, supposed: WhatIf, io: CommandIo) {
  const { cluster, problems } = input;
  const own = pullSecretIn(cluster.management ?? cluster.objects, pullSecretPlace(cluster.hostedCluster));
  const given = values.authfile === undefined ? [] : await readAuthFile(values.authfile);
  const sources = [own ?? [], given].flat();
  // If the operator rejects the change, nodes keep their files: only components that read the objects are affected.
  const follows = (plane: Plane): boolean =>
    supposed.disruption !== undefined || (plane !== 'node' && plane !== 'control-plane');
  const asked = usedImages(cluster).map((one) => ({ ...one, for: one.for.filter(follows) }));
  const inUse = inUseChanges(asked, {
    before: resolverOf(cluster),
    after: resolverOf(supposed.cluster),
    hasCredential: (place) => hasCredential(sources, place),
  });
  const isHarmful = inUse.changed.some((change) => change.lost || change.withoutCredential.length > 0);
  return answer(io, values.output, {
    data: { cluster: cluster.name, change: changeOf(supposed), inUse },
    names: inUse.changed.flatMap(({ usedBy }) => usedBy),
    text: () => `change ${supposed.summary}\n${inUseText(oneLined(inUse))}`,
    nothing: 'No image in use changes its pull sources',
    failed: supposed.disruption === undefined || isHarmful || !areWarnings(problems),
  });
}

/** Also resolves short names, to the pull sources of all candidate images in order. */
function resolverOf(cluster: ClusterObjects): PlaneResolver {
  const resolve = planeResolver({ cluster });
  const own = searchOf(cluster.objects);
  const management = searchOf(cluster.management ?? []);
  return (image, planes) => {
    if (!isShortName(image)) return resolve(image, planes);
    return planes.flatMap((plane) => {
      const names = shortNameCandidates(image, new Map(), plane === 'control-plane' ? management : own);
      const answers = names.flatMap((name) => resolve(asPulled(name) ?? name, [plane]));
      const candidates = answers.flatMap(({ resolution }) => resolution.candidates);
      return answers
        .slice(0, 1)
        .map((first) => ({ ...first, resolution: { ...first.resolution, image, candidates } }));
    });
  };
}

/** The image as the runtime pulls it; undefined for an invalid reference, which has no pull source. */
function asPulled(image: string): string | undefined {
  const parsed = parseImageReference(image);
  return parsed.ok ? fullImage(parsed.reference) : undefined;
}

/** Without any source, the pull secret is unknown, and is assumed to have a credential. */
function hasCredential(sources: readonly AuthSource[], place: string): boolean {
  if (sources.length === 0) return true;
  const parsed = parseImageReference(place);
  return parsed.ok && lookupForContainers(sources, parsed.reference.repository).found === 'credential';
}

/** Images of pods, templates, releases and catalogs, with their users and the components that pull them. */
function usedImages(cluster: ClusterObjects): readonly UsedImage[] {
  const { hostedCluster: hosted, objects, inside = [], management = [] } = cluster;
  const own = hosted === undefined ? objects : inside;
  const ofNodes = [...podImages(own, ['node']), ...namedImages(own, ['node'])];
  if (hosted === undefined) return ofNodes;
  const { namespace = '', name } = hosted.metadata;
  const beside = management.filter(({ metadata }) => metadata.namespace === `${namespace}-${name}`);
  const pools = management.filter(
    ({ kind, metadata, spec }) =>
      kind === NODE_POOL.kind && metadata.namespace === namespace && valueAt(spec, 'clusterName') === name,
  );
  const release: readonly Plane[] = ['node', 'control-plane-operator', 'ignition-server'];
  return [...ofNodes, ...podImages(beside, ['control-plane']), ...namedImages([hosted, ...pools], release)];
}

function podImages(objects: readonly KubeObject[], planes: readonly Plane[]): readonly UsedImage[] {
  const store = new ObjectStore();
  for (const object of objects) store.set(object);
  return imageUsers(store).flatMap(({ images, usedBy }) =>
    images.flatMap((image) => used(image, usedBy, planes)),
  );
}

/** Field with an image, of kinds other than pods and pod templates. */
const IMAGE_FIELDS: Readonly<Record<string, string>> = {
  ClusterVersion: 'status.desired.image',
  HostedCluster: 'spec.release.image',
  NodePool: 'spec.release.image',
  CatalogSource: 'spec.image',
};

/** Images in objects other than pods and pod templates. */
function namedImages(objects: readonly KubeObject[], planes: readonly Plane[]): readonly UsedImage[] {
  return objects.flatMap((object) =>
    used(textOf(valueAt(object, IMAGE_FIELDS[object.kind] ?? '')), describeObject(object), planes),
  );
}

/** Keeps a short name as written, because the search registries that resolve it may change. */
function used(image: string, usedBy: string, planes: readonly Plane[]): readonly UsedImage[] {
  const pulled = asPulled(image);
  return pulled === undefined ? [] : [{ image: isShortName(image) ? image : pulled, usedBy, for: planes }];
}

/** Formats the changes, most severe first. */
function inUseText({ images, changed, rejected }: InUse): string {
  const lost = changed.filter((change) => change.lost);
  const without = changed.filter(({ withoutCredential }) => withoutCredential.length > 0);
  const head = `${counted(images, 'image')} in use: ${counted(changed.length, 'changes', 'change')}, ${counted(lost.length, 'loses its', 'lose their')} last pull source, ${counted(without.length, 'gains', 'gain')} a mirror without a credential`;
  const lines = [...new Set([...lost, ...without, ...changed])].map(lineOf);
  const refused = rejected.map(
    ({ image, usedBy, for: planes, why }) =>
      `rejected    ${image}  (${usedBy}, for ${planes.join(', ')}): ${why}`,
  );
  return `${[head, ...lines, ...refused].join('\n')}\n`;
}

function lineOf({ image, usedBy, for: planes, before, after, lost, withoutCredential }: InUseChange): string {
  const [first = '', ...more] = usedBy;
  const what = lost ? 'lost' : withoutCredential.length > 0 ? 'credential' : 'sources';
  const users = more.length === 0 ? first : `${first} and ${more.length} more`;
  return [
    `${what.padEnd(10)}  ${image}  (${users}, for ${planes.join(', ')})`,
    `            before: ${before.join(', ') || 'none'}`,
    `            after:  ${after.join(', ') || 'none'}`,
    ...(withoutCredential.length === 0 ? [] : [`            no credential: ${withoutCredential.join(', ')}`]),
  ].join('\n');
}

const TABLE = {
  name: 'mirrors',
  about: [
    'Prints the pull sources of an image in the order in which they are tried, with their mirror sets; the skipped pull sources, with the reason; and the fix if no mirror is tried although some exist.',
  ],
  args: [{ name: 'IMAGE...', help: 'images' }],
  flags: {
    ...LOOK_FLAGS,
    from: {
      ...fromFlag,
      help: 'a folder of manifests, a file, or - for standard input, with mirror sets, image.config.openshift.io/cluster and HostedClusters',
    },
    kubeconfig: file({ help: 'read them from a cluster instead' }),
    for: several(
      choice(PLANES, {
        value: 'WHO',
        help: 'node, control-plane (its pods, on nodes of the management cluster), control-plane-operator, ignition-server or image-stream (pull-through); if unset, all that the cluster has, merged if equal',
      }),
    ),
    'registries-conf': several(
      file({
        help: 'registries.conf of a node, then drop-ins or registries.conf.d; used for nodes, and differences from the mirror sets are shown',
      }),
    ),
    'registry-overrides': text({
      value: 'S=D,...',
      default: '',
      help: "targets that replace sources for the control plane, like the flag of HyperShift's operator",
    }),
    'what-if': file({
      help: 'assume that this file (or folder) of mirror sets is applied, and show the effect on nodes',
    }),
    'in-use': toggle({
      help: 'with --what-if: show the change for each image of pods, templates, releases and catalogs',
    }),
    probe: toggle({
      help: 'request the manifest from every pull source, in parallel, with the credential that CRI-O would use: from Secrets of the folder or cluster, else from --authfile',
    }),
    output: outputFlag(
      OUTPUT_FORMS,
      'output format; wide: not truncated; name: only the mirror sets of the pull sources, with --in-use the objects whose images change',
    ),
    ...ACCESS_FLAGS,
  },
  notes: ['Problems of the mirror sets are written to stderr.'],
  exitCodes:
    '0 each image has a usable pull source (--probe: one that has the image; --in-use: none loses its last or gains a mirror without a credential), 1 otherwise, or if the Machine Config Operator rejects the mirror sets or a document could not be read, 2 wrong usage',
  examples: ['pullwright mirrors registry.example.com/team/app:1 --from examples/fleet --cluster management'],
  permissions: {
    hosts: [
      'none; with --kubeconfig or --context the API server; with --probe the registries of the image and its mirrors, and their token services',
    ],
    api: [
      'list imagedigestmirrorsets, imagetagmirrorsets, imagecontentsourcepolicies, hostedclusters',
      'get images.config.openshift.io/cluster, clusterversions/version',
      'get machineconfigs/99-worker-generated-registries, machineconfigs/99-master-generated-registries',
      'with --in-use: list pods, deployments, statefulsets, daemonsets, jobs, cronjobs, catalogsources, nodepools, get the pull secret of the cluster',
      'with --probe: get secrets/global-pull-secret (kube-system), secrets/pull-secret (openshift-config), and the one that the HostedCluster names',
    ],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);
type Values = Given<typeof TABLE.flags>['flags'];

async function run({ flags: values, args: images }: Given<typeof TABLE.flags>, io: CommandIo) {
  const { probe, 'in-use': inUse, 'what-if': path } = values;
  if (inUse && (images.length > 0 || path === undefined))
    throw new UsageError('Cannot use --in-use: expected --what-if FILE, and no image');
  if (!inUse && images.length === 0) throw new UsageError('Cannot show mirrors: an image is required');
  joinedPodName(images).forEach(imageOf);
  const more = inUse ? IN_USE_KINDS : probe ? [GLOBAL_SECRET, PLATFORM_SECRET] : [];
  const next = inUse || probe ? [hostedSecrets(values.cluster)] : [];
  const input = await readMirrorInput(values, io, more, next);
  if (inUse) writeProblems(io, input.problems);
  const supposed = path === undefined ? undefined : await supposedBy(path, input, io);
  return inUse && supposed !== undefined
    ? showInUse(values, input, supposed, io)
    : showImages(values, images, input, supposed, io);
}

async function showImages(
  values: Values,
  images: readonly string[],
  input: MirrorInput,
  supposed: WhatIf | undefined,
  io: CommandIo,
): Promise<ExitCode> {
  const planes = values.for ?? PLANES;
  const registryOverrides = parseOverridesFlag(values['registry-overrides']);
  if (registryOverrides === undefined)
    throw new UsageError(
      `Cannot read --registry-overrides "${values['registry-overrides']}": expected source=target pairs`,
    );
  const conf = await readNodeConf(values['registries-conf']);
  const cluster = supposed?.cluster ?? input.cluster;
  const planeInput = { cluster, conf, registryOverrides };
  const resolve = planeResolver(planeInput);
  const resolved = images.flatMap((written) => {
    const names = namesOf(written, cluster, conf);
    if (names.length === 0 && planes.includes('node')) return [nowhere(written, conf)];
    return names.flatMap((image) =>
      mirrorReports(image, planes, cluster, resolve).map((report) =>
        isShortName(written) ? { ...report, written } : report,
      ),
    );
  });
  if (resolved.length === 0)
    throw new UsageError(
      `Cannot show mirrors for ${planes.join(', ')}: not found in cluster "${cluster.name}"`,
    );
  const reports = values.probe ? await probed(resolved, values, planeInput, io) : resolved;
  writeProblems(io, new Set([...input.problems, ...reports.flatMap((report) => report.problems)]));
  return answer(io, values.output, {
    data: { cluster: cluster.name, ...(supposed && { change: changeOf(supposed) }), reports },
    names: reports.flatMap(({ candidates }) => candidates.flatMap(({ from }) => from?.split(' ', 1) ?? [])),
    text: (columns) =>
      [
        ...(supposed === undefined ? [] : [`change ${supposed.summary}\n`]),
        ...reports.map((report) => mirrorText(oneLined(report), columns) + documentsText(report.findings)),
      ].join('\n'),
    nothing: 'No mirror set matches',
    failed: !reports.every(isUsable) || !areWarnings(input.problems),
  });
}

/** The effects of a change, as data. */
function changeOf({ summary, disruption }: WhatIf): object {
  return { summary, ...disruption };
}

function isUsable(report: MirrorReport): boolean {
  if (report.nodes?.state === 'unknown') return false;
  return report.candidates.some(
    (line) => line.skipped === undefined && (line.probe === undefined || line.probe.verdict === 'Valid'),
  );
}

/** Resolves a short name to candidate images by the node's files, or on OpenShift the Image object or the operator's template. */
function namesOf(written: string, cluster: ClusterObjects, conf: NodeConf | undefined): readonly string[] {
  const { objects, hostedCluster } = cluster;
  const isOpenShift = hostedCluster !== undefined || objects.some(({ kind }) => MIRROR_KINDS.has(kind));
  const search = conf === undefined && isOpenShift ? searchOf(objects) : (conf?.search ?? []);
  const names = isShortName(written)
    ? shortNameCandidates(written, conf?.aliases ?? new Map(), search)
    : [written];
  return names.map((name) => fullImage(imageOf(name)));
}

/** A short name without candidates. Source of the error text: `shortnames.Resolve` of containers/image. */
function nowhere(image: string, conf: NodeConf | undefined): MirrorReport {
  const nothing = { image, for: ['node' as const], given: conf !== undefined, candidates: [], problems: [] };
  if (conf !== undefined) {
    const refusal = `short-name "${image}" did not resolve to an alias and no unqualified-search registries are defined in "${conf.from}"`;
    return { ...nothing, refusal, findings: [] };
  }
  const message = `"${image}" has no registry, and no object of the input tells which registries the nodes search`;
  const advice = 'Write its registry, or add --registries-conf';
  return {
    ...nothing,
    findings: [{ check: 'short-name', severity: 'unknown', subject: image, message, advice }],
  };
}

/** Credentials of the nodes: the synced pull secret, then the one that they booted with. */
function nodeSecrets({ objects, inside = [], management, hostedCluster }: ClusterObjects) {
  return [
    pullSecretIn([...inside, ...objects], GLOBAL_SECRET) ?? [],
    pullSecretIn(management ?? objects, pullSecretPlace(hostedCluster)) ?? [],
  ].flat();
}

/** Adds probe results for each allowed pull source, and for mirrors that serve only digests or only tags. */
async function probed(
  reports: readonly MirrorReport[],
  access: AccessValues,
  input: PlaneInput,
  io: CommandIo,
): Promise<readonly MirrorReport[]> {
  const client = await registryClient(access, io.env, nodeSecrets(input.cluster));
  const isAsked = ({ skipped }: MirrorLine): boolean =>
    skipped === undefined || skipped.reason === 'DigestOnly' || skipped.reason === 'TagOnly';
  const lines = reports.flatMap((report) => report.candidates.filter(isAsked));
  const references = lines.map((line) => line.reference);
  const answers = await probeAll(client, references, io.signal);
  return Array.fromAsync(reports, (report) => {
    const candidates = report.candidates.map((line) => {
      const found = isAsked(line) ? answers.get(line.reference) : undefined;
      if (found === undefined) return line;
      const { verdict, message, digest } = found;
      return { ...line, probe: { verdict, message, ...defined({ digest }) } };
    });
    return lookedUp({ ...report, candidates }, input);
  });
}

/** Adds where HyperShift's operators find the image, according to the probes. */
async function lookedUp(report: MirrorReport, input: PlaneInput): Promise<MirrorReport> {
  const { image, candidates } = report;
  if (!report.for.some((plane) => plane === 'control-plane-operator' || plane === 'ignition-server'))
    return report;
  const valid = candidates.filter(({ probe }) => probe?.verdict === 'Valid');
  const places = releasePlaces(input);
  const found = await lookUpRelease(image, places, async (reference) => {
    if (!valid.some((line) => line.reference === reference)) throw new Error('not found');
    return reference;
  }).catch(() => undefined);
  const component = translateImage(image, places);
  return { ...report, lookUp: { ...(found && { release: found.from }), component } };
}

async function supposedBy(path: string, { cluster }: MirrorInput, io: CommandIo): Promise<WhatIf> {
  const { manifests, problems } = await readFolder(path, MIRROR_KINDS, io.stdin);
  const [{ file, line, message } = {}] = problems;
  const objects = manifests.flatMap(({ object }) => (MIRROR_KINDS.has(object.kind) ? [object] : []));
  if (message !== undefined || objects.length === 0)
    throw new PullwrightError(
      `Cannot read "${path}": ${message === undefined ? 'it has no mirror set' : `${file}:${line}: ${message}`}`,
      { code: 'InputUnreadable', retryPolicy: 'terminal' },
    );
  return whatIf(cluster, objects);
}
