/** `pullwright import`: a dump of what other tools do with pull secrets, as a fleet file. */

import { type Folder, folderOf, readFolder } from '../controller/folder.ts';
import { toYaml } from '../kube/yaml.ts';
import { PullwrightError, UsageError } from '../rules/errors.ts';
import { importObjects } from '../rules/import/import.ts';
import type { Imported } from '../rules/import/types.ts';
import { GRANT_ANNOTATION } from '../rules/injection/profile-grant.ts';
import { jsonText } from '../rules/text/json-text.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { type CommandTable, defineCommand } from './define.ts';
import { outputFlag } from './flags/common.ts';
import { type Flags, folder, several } from './flags/flag.ts';
import type { Given } from './flags/parse.ts';
import { writeProblems } from './problems.ts';

const TABLE = {
  name: 'import',
  summary: 'Make a fleet file of what HyperShift, Kruise, reflector, replicator or imps do',
  about: [
    'Makes a fleet file of what other tools do with pull secrets in a cluster: HyperShift (additional pull secret, mirror sets, hosted clusters), Kruise SidecarSets, reflector, replicator and imps. Says what could not be carried over, and which consent the owners of Secrets have to give. No value of a Secret is read or written.',
  ],
  flags: {
    from: several(folder({ help: 'a folder of manifests, or - for standard input' })),
    output: outputFlag(
      ['text', 'json'],
      'the form of the result; json: fleet, grants and notes for programs',
    ),
  },
  notes: [
    'A dump that says all: kubectl get ns,secrets,deployments,hostedclusters,sidecarsets,imagepullsecrets,clusterpolicies,imagedigestmirrorsets -A -o yaml --show-managed-fields',
  ],
  exitCodes: '0 all was carried over, 1 something was not, or nothing was found, 2 wrong usage',
  examples: ['pullwright import --from dump/ > fleet.yaml && pullwright validate fleet.yaml'],
  permissions: { reads: [], writes: [], hosts: ['none'], api: [] },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

const KINDS: ReadonlySet<string> = new Set([
  'Namespace',
  'Secret',
  'HostedCluster',
  'SidecarSet',
  'ResourceDistribution',
  'ImagePullSecret',
  'ClusterPolicy',
  'Policy',
  'MutatingPolicy',
  'GeneratingPolicy',
  'Assign',
  'ModifySet',
  'MutatingAdmissionPolicy',
  'ClusterExternalSecret',
  'ClusterPullSecret',
  'Deployment',
  'ImageDigestMirrorSet',
  'ImageTagMirrorSet',
  'ImageContentSourcePolicy',
]);

async function run({ flags: values }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  if (values.from === undefined)
    throw new UsageError('Cannot import: expected --from DIR, or --from - for standard input');
  const folders: Folder[] = [];
  for (const path of values.from) folders.push(await readInput(path, io));
  const problems = folders.flatMap((folder) => folder.problems);
  writeProblems(
    io,
    problems.map(({ file, line, message }) => `${file}:${line}: ${message}`),
  );
  const imported = importObjects(folders.flatMap((folder) => folder.manifests.map(({ object }) => object)));
  const { notes } = imported;
  if (notes.length === 0)
    throw new PullwrightError('Cannot import: nothing in the input belongs to a tool that is known', {
      code: 'NothingToImport',
      disposition: 'terminal',
      hint: 'Known are HyperShift, Kruise, reflector, replicator, imps, Kyverno, Gatekeeper, External Secrets, registry-creds and imagepullsecret-patcher',
    });
  io.stdout.write(values.output === 'json' ? jsonText<Imported>(imported) : asYaml(imported));
  return problems.length > 0 || notes.some(({ outcome }) => outcome === 'dropped') ? 1 : 0;
}

async function readInput(path: string, io: CommandIo): Promise<Folder> {
  if (path !== '-') return readFolder(path, KINDS);
  const chunks: Buffer[] = [];
  for await (const chunk of io.stdin) chunks.push(Buffer.from(chunk));
  return folderOf([{ file: 'standard input', text: Buffer.concat(chunks).toString('utf8') }], KINDS);
}

const HEADINGS = {
  dropped: 'Could not be carried over:',
  changed: 'Carried over with a difference:',
  kept: 'Stays where it is:',
  carried: 'Carried over:',
} as const;

const OTHERS = 'Of other objects, which have no part in this, there are:';
const CONSENT = 'Owners of Secrets give their consent by:';
const HAND_OVER: readonly string[] = [
  'Copies that the other tool made are left alone, and reported as ForeignObject: stop that tool, then delete them or hand',
  "them over with the annotation pullwright.dev/adopt='true'.",
];

/** The fleet, below comments that say what became of everything. */
function asYaml({ fleet, grants, notes, others }: Imported): string {
  const lines = Object.entries(HEADINGS).flatMap(([outcome, heading]) => {
    const own = notes.filter((note) => note.outcome === outcome);
    return own.length === 0
      ? []
      : [heading, ...own.map(({ subject, message }) => `  ${subject}: ${message}`), ''];
  });
  const consent = grants.map(
    ({ namespace, name, to }) =>
      `  kubectl annotate secret -n ${namespace} ${name} ${GRANT_ANNOTATION}='${to}'`,
  );
  const rest = Object.entries(others).map(([kind, count]) => `${count} ${kind}`);
  const passed = rest.length === 0 ? [] : [`${OTHERS} ${rest.join(', ')}.`, ''];
  const all = [
    ...lines,
    ...passed,
    ...(consent.length === 0 ? [] : [CONSENT, ...consent, '', ...HAND_OVER, '']),
  ];
  const comments = all.map((line) => comment(line));
  return `${comments.join('\n')}\n${toYaml(fleet, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}

/** What stands in a dump may hold anything: a line break would end the comment. */
function comment(line: string): string {
  return `# ${line.replace(/\p{Cc}/gu, ' ')}`.trimEnd();
}
