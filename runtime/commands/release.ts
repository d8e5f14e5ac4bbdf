/** `pullwright release IMAGE`: a release image, found through the mirrors, and the images of its components. */
import { toYaml } from '../kube/yaml.ts';
import { type Release, readRelease, translateImage } from '../registry-overrides/release-image.ts';
import { type FoundRelease, lookUpRelease } from '../registry-overrides/release-lookup.ts';
import {
  formatImageReference,
  type ImageReference,
  parseImageReference,
  pullTag,
} from '../rules/auth-lookup/image-reference.ts';
import { UsageError } from '../rules/errors.ts';
import { compileMirrors } from '../rules/mirrors/mirrors.ts';
import { lookUpRules } from '../rules/registry-overrides/override-map.ts';
import { parseOverridesFlag } from '../rules/registry-overrides/registry-overrides.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { type CommandTable, defineCommand } from './define.ts';
import { outputFlag } from './flags/common.ts';
import { type Flags, text as textFlag, toggle } from './flags/flag.ts';
import type { Given } from './flags/parse.ts';
import { INPUT_API, INPUT_FLAGS, readMirrorInput } from './mirror-input.ts';
import { ACCESS_FLAGS, registryClient } from './registry-access.ts';

const TABLE = {
  name: 'release',
  summary: 'Read a release image through the mirrors and print or translate its components',
  about: [
    "Reads an OpenShift release image from a registry as HyperShift's operator looks it up: each mirror of the longest source first, for tags and digests alike, and the image itself last, whatever the policy says; prints its version and the images of its components. With --translate, prints where a component without a container runtime finds them.",
  ],
  args: [{ name: 'IMAGE', help: 'the release image' }],
  flags: {
    ...INPUT_FLAGS,
    'registry-overrides': textFlag({
      value: 'S=D,...',
      default: '',
      help: "targets that replace sources, as the flag of HyperShift's operator",
    }),
    translate: toggle({ help: 'print component images at their mirrors' }),
    arch: textFlag({ value: 'NAME', default: 'amd64', help: 'the architecture, as in an image index' }),
    output: outputFlag(['text', 'json', 'yaml']),
    ...ACCESS_FLAGS,
  },
  notes: ['Places that did not have it go to stderr, and with --output json|yaml into "skipped".'],
  exitCodes: '0 the release is printed, 1 no place has it, 2 wrong usage',
  examples: [
    'node main.ts release quay.io/openshift-release-dev/ocp-release:4.20.6-x86_64 --from examples/fleet --cluster clusters/prod --authfile auth.json',
  ],
  permissions: {
    reads: [],
    writes: [],
    hosts: [
      'registries of the image and its mirrors, and the token services they name; with --kubeconfig or --context the API server',
    ],
    api: INPUT_API,
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

async function run(
  { flags: values, args: positionals }: Given<typeof TABLE.flags>,
  io: CommandIo,
): Promise<ExitCode> {
  const [text, ...more] = positionals;
  if (text === undefined || more.length > 0) throw new UsageError('Cannot read a release: wanted one image');
  const overrides = parseOverridesFlag(values['registry-overrides']);
  if (overrides === undefined)
    throw new UsageError(
      `Cannot read --registry-overrides "${values['registry-overrides']}": wanted source=target pairs`,
    );
  const { cluster, problems } = await readMirrorInput(values, io);
  for (const problem of problems) io.stderr.write(`${problem}\n`);
  // HyperShift looks releases up by the sets of the cluster that runs the control plane; in any other there is only the one.
  const rules = lookUpRules(cluster.management ?? cluster.objects, { tagMirrors: true });
  if (rules.length === 0) io.stderr.write('note: no mirror set was given; only the image itself is asked\n');
  const mirrors = compileMirrors(rules, { ports: 'text' });
  const client = await registryClient(values, io.env);
  const found = await lookUpRelease(
    formatImageReference(referenceOf(text)),
    { mirrors, overrides },
    (place) => readRelease(client, referenceOf(place), values.arch),
  );
  for (const { reference, message } of found.failures) io.stderr.write(`skipped: ${reference}: ${message}\n`);
  const translation = { mirrors, registryOverrides: overrides };
  const shown = values.translate
    ? new Map(
        [...found.release.components].map(([name, image]) => [name, translateImage(image, translation)]),
      )
    : found.release.components;
  io.stdout.write(render({ ...found, release: { ...found.release, components: shown } }, values.output));
  return 0;
}

function referenceOf(text: string): ImageReference {
  const parsed = parseImageReference(text);
  if (!parsed.ok) throw new UsageError(`Cannot read image "${text}": ${parsed.goText}`);
  const tag = pullTag(parsed.reference);
  return tag === undefined ? parsed.reference : { ...parsed.reference, tag };
}

function render({ release, from, failures }: FoundRelease<Release>, output: string): string {
  const components = Object.fromEntries(release.components);
  const { version, digest, architecture } = release;
  const document = { version, from, skipped: failures, digest, architecture, components };
  if (output === 'json') return `${JSON.stringify(document, null, 2)}\n`;
  if (output === 'yaml') return toYaml(document);
  const width = Math.max(0, ...Object.keys(components).map((name) => name.length));
  return [
    `release       ${version}`,
    `from          ${from}`,
    `digest        ${digest}`,
    `architecture  ${architecture}`,
    '',
    ...Object.entries(components).map(([name, image]) => `${name.padEnd(width)}  ${image}`),
    '',
  ].join('\n');
}
