/** `pullwright release IMAGE`: a release image, found through the mirrors, its components, and whether they are where they are asked for. */

import { parse as parseToml } from 'smol-toml';
import { toYaml } from '../../kube/yaml.ts';
import { RegistryClient } from '../../registry/client.ts';
import { probeAll } from '../../registry/probe.ts';
import { planeResolver } from '../../registry-overrides/planes.ts';
import { checkedPlaces, gapsIn, imageSetOf, releasePlaces } from '../../registry-overrides/release-check.ts';
import { releaseDifference } from '../../registry-overrides/release-difference.ts';
import { type Release, readRelease, translateImage } from '../../registry-overrides/release-image.ts';
import { type FoundRelease, lookUpRelease } from '../../registry-overrides/release-lookup.ts';
import {
  formatImageReference,
  type ImageReference,
  parseImageReference,
  pullTag,
} from '../../rules/auth-lookup/image-reference.ts';
import { PullwrightError, UsageError } from '../../rules/errors.ts';
import { compileMirrors } from '../../rules/mirrors/mirrors.ts';
import type { ClusterObjects } from '../../rules/node-registries/clusters.ts';
import { lookUpRules } from '../../rules/registry-overrides/override-map.ts';
import { parseOverridesFlag } from '../../rules/registry-overrides/registry-overrides.ts';
import { nearWord } from '../../rules/text/near-word.ts';
import type { Command, CommandIo, ExitCode } from '../command.ts';
import { type CommandTable, defineCommand } from '../define.ts';
import { outputFlag } from '../flags/common.ts';
import { type Flags, file, several, text as textFlag, toggle } from '../flags/flag.ts';
import type { Given } from '../flags/parse.ts';
import { INPUT_API, INPUT_FLAGS, readMirrorInput } from '../mirror-input.ts';
import { writeProblems } from '../problems.ts';
import { ACCESS_FLAGS, credentialsFrom, readAuthFile, registryTransport } from '../registry-access.ts';
import { hostedSecrets, ownPullSecret, RELEASE_KINDS, signatureJudge } from './inputs.ts';
import {
  type ComponentOutput,
  differenceText,
  formatted,
  type ReleaseAnswer,
  type ReleaseCheckReport,
  releaseText,
} from './text.ts';

const TABLE = {
  name: 'release',
  summary: 'Read a release image through the mirrors, and check that its components are there',
  about: [
    "Reads an OpenShift release image from a registry as HyperShift's operator looks it up: each mirror of the longest source first, for tags and digests alike, and the image itself last, whatever the policy says; prints its version and the images of its components. With --check, asks for every component at every mirror of nodes and of the control plane, and prints what is not there, with an image set for oc-mirror. With OTHER, prints what that release changes.",
    'Registries are asked with the pull secret of the cluster, where it is among the objects: that of the HostedCluster, else openshift-config/pull-secret; with --authfile for what it does not cover.',
  ],
  args: [
    { name: 'IMAGE', help: 'the release image' },
    { name: '[OTHER]', help: 'another one, to compare with' },
  ],
  flags: {
    ...INPUT_FLAGS,
    check: toggle({ help: 'ask for every component at every mirror' }),
    'image-for': textFlag({ value: 'NAME', help: 'print the image of one component only' }),
    'registry-overrides': textFlag({
      value: 'S=D,...',
      default: '',
      help: "targets that replace sources, as the flag of HyperShift's operator",
    }),
    translate: toggle({ help: 'print component images at their mirrors' }),
    arch: textFlag({ value: 'NAME', default: 'amd64', help: 'the architecture, as in an image index' }),
    signature: several(
      file({
        help: 'a signature of the release (signature-1 of a store); those in ConfigMaps among the objects count too',
      }),
    ),
    'signature-key': several(file({ help: 'public keys of OpenPGP (RSA) to check signatures with' })),
    output: outputFlag(
      ['text', 'json', 'yaml', 'imageset'],
      'the form of the result; imageset: with --check, the image set alone',
    ),
    ...ACCESS_FLAGS,
  },
  notes: [
    'Places that did not have it go to stderr, and with --output json|yaml into "skipped".',
    'Whether a key has expired or was revoked is not looked at. Signatures of other kinds (sigstore) are not checked.',
  ],
  exitCodes:
    '0 the release is printed, with --check everything is there, 1 no place has it, something is missing, or a signature is wrong, 2 wrong usage',
  examples: [
    'node main.ts release quay.io/openshift-release-dev/ocp-release:4.20.6-x86_64 --from examples/fleet --cluster clusters/prod --check',
  ],
  permissions: {
    reads: [],
    writes: [],
    hosts: [
      'registries of the image and its mirrors, and the token services they name; with --kubeconfig or --context the API server',
    ],
    api: [
      ...INPUT_API,
      'get secrets openshift-config/pull-secret, or the pull secret of the HostedCluster',
      'list configmaps in openshift-config-managed',
    ],
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);
type Values = Given<typeof TABLE.flags>['flags'];

async function run(
  { flags: values, args: positionals }: Given<typeof TABLE.flags>,
  io: CommandIo,
): Promise<ExitCode> {
  const [image, other, ...more] = positionals;
  if (image === undefined || more.length > 0)
    throw new UsageError('Cannot read a release: expected one image, or two to compare');
  checkUsage(values, other);
  const reader = await openReader(values, io);
  const found = await reader.find(image);
  if (other !== undefined) {
    const difference = releaseDifference(found.release, (await reader.find(other)).release);
    io.stdout.write(differenceText(difference, values.output));
    return 0;
  }
  const report = values.check ? await check(image, found.release, reader, io) : undefined;
  const answer = {
    found: values.translate ? reader.translated(found) : found,
    signature: reader.signatureOf(found.release.digest),
    ...(report === undefined ? {} : { check: report }),
  };
  io.stdout.write(shown(answer, values));
  return answer.signature.state === 'Rejected' || (report?.gaps.length ?? 0) > 0 ? 1 : 0;
}

function shown(answer: ReleaseAnswer, { 'image-for': name, output }: Values): string {
  if (name !== undefined) return oneImage(answer.found.release, name, output);
  if (output !== 'imageset') return releaseText(answer, output);
  const set = answer.check?.imageSet;
  return set === undefined ? '' : toYaml(set);
}

function checkUsage(values: Values, other: string | undefined): void {
  const alone = values.check || values['image-for'] !== undefined;
  if (other !== undefined && alone)
    throw new UsageError('Cannot compare two releases with --check or --image-for: give one image');
  if (values.check && values['image-for'] !== undefined)
    throw new UsageError('Cannot use --check with --image-for: choose one');
  if (values.output === 'imageset' && !values.check)
    throw new UsageError('Cannot print an image set without --check');
}

interface Reader {
  readonly client: RegistryClient;
  readonly cluster: ClusterObjects;
  readonly registryOverrides: ReadonlyMap<string, string>;
  readonly find: (image: string) => Promise<FoundRelease<Release>>;
  readonly signatureOf: Awaited<ReturnType<typeof signatureJudge>>;
  readonly translated: (found: FoundRelease<Release>) => FoundRelease<Release>;
}

async function openReader(values: Values, io: CommandIo): Promise<Reader> {
  const registryOverrides = parseOverridesFlag(values['registry-overrides']);
  if (registryOverrides === undefined)
    throw new UsageError(
      `Cannot read --registry-overrides "${values['registry-overrides']}": expected source=target pairs`,
    );
  const next = [hostedSecrets(values.cluster)];
  const { cluster, problems } = await readMirrorInput(values, io, RELEASE_KINDS, next);
  writeProblems(io, problems);
  // HyperShift looks releases up by the sets of the cluster that runs the control plane; in any other there is only the one.
  const objects = cluster.management ?? cluster.objects;
  const rules = lookUpRules(objects, { tagMirrors: true });
  if (rules.length === 0) io.stderr.write('note: no mirror set was given; only the image itself is asked\n');
  const mirrors = compileMirrors(rules, { ports: 'text' });
  const client = await clientOf(values, cluster, io);
  return {
    client,
    cluster,
    registryOverrides,
    find: async (image) => {
      const found = await lookUpRelease(
        formatImageReference(referenceOf(image)),
        { mirrors, overrides: registryOverrides },
        (place) => readRelease(client, referenceOf(place), values.arch),
      );
      writeProblems(
        io,
        found.failures.map(({ reference, message }) => `skipped: ${reference}: ${message}`),
      );
      return found;
    },
    signatureOf: await signatureJudge(values, objects),
    translated: (found) => {
      const pairs = [...found.release.components].map(
        ([name, image]) => [name, translateImage(image, { mirrors, registryOverrides })] as const,
      );
      return { ...found, release: { ...found.release, components: new Map(pairs) } };
    },
  };
}

/** The cluster's own secret goes before the file, which is for what it does not cover. */
async function clientOf(values: Values, cluster: ClusterObjects, io: CommandIo): Promise<RegistryClient> {
  const own = ownPullSecret(cluster.management ?? cluster.objects, cluster.hostedCluster);
  const given = values.authfile === undefined ? [] : [await readAuthFile(values.authfile)];
  if (values.check && own === undefined)
    io.stderr.write(
      `note: the pull secret of the cluster was not given; registries are asked ${given.length === 0 ? 'without a credential' : 'with --authfile alone'}\n`,
    );
  const { transport, timeoutMs } = await registryTransport(values, io.env);
  const credentialFor = credentialsFrom([...(own === undefined ? [] : [own]), ...given]);
  return new RegistryClient({ transport, credentialFor, timeoutMs });
}

async function check(
  image: string,
  release: Release,
  { client, cluster, registryOverrides }: Reader,
  io: CommandIo,
): Promise<ReleaseCheckReport> {
  const resolve = planeResolver({ cluster, parseToml, registryOverrides });
  const images = new Map([['release', byDigest(image, release.digest)], ...release.components]);
  const places = releasePlaces(images, resolve);
  const references = places.map(({ reference }) => reference);
  const answers = await probeAll(client, references, { signal: io.signal });
  const gaps = gapsIn(checkedPlaces(places, answers));
  const imageSet = imageSetOf(gaps);
  return {
    components: images.size,
    places: new Set(references).size,
    gaps,
    ...(imageSet === undefined ? {} : { imageSet }),
  };
}

/** Nodes of a release name it by digest. */
function byDigest(image: string, digest: string): string {
  return `${referenceOf(image).repository}@${digest}`;
}

function oneImage(release: Release, name: string, output: string): string {
  const image = release.components.get(name);
  if (image === undefined) {
    const near = nearWord(name, [...release.components.keys()]);
    const hint = near === undefined ? 'see "pullwright release" for all of them' : `did you mean "${near}"?`;
    throw new PullwrightError(`Cannot find component "${name}" in release ${release.version}: ${hint}`, {
      code: 'ComponentUnknown',
      disposition: 'terminal',
    });
  }
  return output === 'text' ? `${image}\n` : formatted<ComponentOutput>({ component: name, image }, output);
}

function referenceOf(text: string): ImageReference {
  const parsed = parseImageReference(text);
  if (!parsed.ok) throw new UsageError(`Cannot read image "${text}": ${parsed.goText}`);
  const tag = pullTag(parsed.reference);
  return tag === undefined ? parsed.reference : { ...parsed.reference, tag };
}
