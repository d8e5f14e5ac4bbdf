/** `pullwright migrate-icsp`: ImageContentSourcePolicies as the ImageDigestMirrorSets that mean the same. */
import { toYaml } from '../kube/yaml.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { convertPolicy } from '../rules/registry-overrides/convert-policy.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { type CommandTable, defineCommand } from './define.ts';
import { type Flags } from './flags/flag.ts';
import type { Given } from './flags/parse.ts';
import { INPUT_FLAGS, readMirrorObjects } from './mirror-input.ts';
import { writeProblems } from './problems.ts';

const { cluster: _cluster, ...FLAGS } = INPUT_FLAGS;

const TABLE = {
  name: 'migrate-icsp',
  summary: 'Print ImageContentSourcePolicies as the ImageDigestMirrorSets that mean the same',
  about: [
    'Prints each ImageContentSourcePolicy as the ImageDigestMirrorSet that means the same to nodes, as "oc adm migrate icsp" writes it: apply these, then delete the policies. Neither step changes a file of a node. What the newer kind does not admit is left out and named.',
  ],
  flags: FLAGS,
  notes: [
    'An ImageContentSourcePolicy beside a set with NeverContactSource for the same source makes the Machine Config Operator refuse all mirror sets; once it is converted, give the new entry the same mirrorSourcePolicy.',
  ],
  exitCodes: '0 all was converted, 1 something was left out, or there is nothing to convert, 2 wrong usage',
  examples: ['pullwright migrate-icsp --from mirrors/ | kubectl apply -f -'],
  permissions: {
    reads: [],
    writes: [],
    hosts: ['none; with --kubeconfig or --context the API server'],
    api: ['list imagecontentsourcepolicies, imagedigestmirrorsets'],
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

const POLICY = { apiVersion: 'operator.openshift.io/v1alpha1', kind: 'ImageContentSourcePolicy' } as const;
const SET = { apiVersion: 'config.openshift.io/v1', kind: 'ImageDigestMirrorSet' } as const;

async function run({ flags: values }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const { found, problems } = await readMirrorObjects(values, io, [POLICY, SET]);
  const objects = found.map(({ object }) => object);
  const policies = objects.filter(({ kind }) => kind === POLICY.kind);
  writeProblems(io, problems);
  if (policies.length === 0)
    throw new PullwrightError('Cannot convert: there is no ImageContentSourcePolicy', {
      code: 'NothingToConvert',
      disposition: 'terminal',
      hint: 'Give a folder, a file or - with --from, or a cluster with --kubeconfig or --context',
    });
  const taken = new Set(objects.flatMap(({ kind, metadata }) => (kind === SET.kind ? [metadata.name] : [])));
  const left = policies.flatMap((policy) => converted(policy, taken, io));
  io.stderr.write(
    `note: apply these, then: kubectl delete imagecontentsourcepolicy ${policies.map(({ metadata }) => metadata.name).join(' ')}\n`,
  );
  return left.length === 0 && problems.length === 0 ? 0 : 1;
}

/** Prints one; gives what was left out. */
function converted(policy: KubeObject, taken: Set<string>, io: CommandIo): readonly string[] {
  const { object, problems } = convertPolicy(policy, taken);
  taken.add(object.metadata.name);
  writeProblems(
    io,
    problems.map((problem) => `left out: ${problem}`),
  );
  io.stdout.write(`---\n${toYaml(object)}`);
  return problems;
}
