/** `pullwright doctor POD`: the first thing that stands between a pod and its images, and the YAML that fixes it. */

import { toYaml } from '../../kube/yaml.ts';
import { doctorChain, firstBroken } from '../../rules/diagnose/doctor.ts';
import type { DoctorInput, Link } from '../../rules/diagnose/doctor-types.ts';
import type { Paint } from '../../rules/diagnose/explain-text.ts';
import { PullwrightError, UsageError } from '../../rules/errors.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import { oneLined, onOneLine } from '../../rules/text/printable.ts';
import { clusterFlag, needFolderForCluster } from '../choose-cluster.ts';
import type { Command, CommandIo, ExitCode } from '../command.ts';
import { type CommandTable, defineCommand } from '../define.ts';
import { readFolders, withDefaultAccount } from '../explain/folders.ts';
import { kindsFor, nextKindsFor } from '../explain/world.ts';
import { CLUSTER_FLAGS, fromFlag, namespaceFlag, outputFlag } from '../flags/common.ts';
import { type Flags, toggle } from '../flags/flag.ts';
import type { Given } from '../flags/parse.ts';
import { type ClusterAccess, namespaceOf, readObjects, type SourceObjects } from '../object-source.ts';
import { findPod, type PodPuller, parsePodName } from '../pod-spec.ts';
import { writeProblems } from '../problems.ts';
import { paintFor } from '../terminal.ts';
import { examineAll } from './all.ts';
import { DOCTOR_FOLDER_KINDS, doctorKinds, doctorNext, lookAt } from './look.ts';
import { doctorAccess } from './rights.ts';

const TABLE = {
  name: 'doctor',
  summary: 'Find what keeps a pod from its images, and print the YAML that fixes it',
  about: [
    'Walks the chain from the name of an image to a credential that its registry takes, for a pod that does not pull, and prints the first link that is broken with the YAML that fixes it. Nothing is changed, and no password is shown.',
    'With --all every pod that fails to pull is examined, and pods that fail for the same cause are one line: how many, in which namespaces, and what fixes it.',
  ],
  args: [
    {
      name: 'POD',
      help: 'a pod, or deploy/NAME, sts/NAME, ds/NAME, job/NAME, cronjob/NAME',
      completes: 'pods',
    },
  ],
  flags: {
    namespace: namespaceFlag,
    all: toggle({ help: 'every pod of the namespace that fails to pull, grouped by cause, in place of one' }),
    'all-namespaces': toggle({ short: 'A', help: 'with --all, those of every namespace' }),
    from: fromFlag,
    cluster: clusterFlag,
    ...CLUSTER_FLAGS,
    output: outputFlag(
      ['text', 'json', 'yaml'],
      'the form of the result; yaml: only what fixes it, for kubectl apply',
    ),
  },
  exitCodes: '0 no link is broken, 1 one is, or it cannot be told, 2 wrong usage',
  examples: ['pullwright doctor deploy/web -n shop', 'pullwright doctor --all -A'],
  permissions: {
    reads: [],
    writes: [],
    hosts: ['the API server of the kubeconfig; none with --from'],
    api: [
      'get pods, deployments, statefulsets, daemonsets, replicasets, jobs, cronjobs, serviceaccounts, namespaces, nodes',
      'list secrets, events, roles, rolebindings, pullstatuses (namespace of the pod)',
      'get secrets/global-pull-secret, pullstatuses (kube-system)',
      'get secrets/pull-secret (openshift-config)',
      'get daemonsets/global-pull-secret-syncer, list pods (kube-system)',
      'list of the same kinds with --all, in every namespace with --all-namespaces',
      'get criocredentialproviderconfigs/cluster',
      'get mutatingadmissionpolicies, mutatingadmissionpolicybindings, mutatingwebhookconfigurations',
      'list imagedigestmirrorsets, imagetagmirrorsets, imagecontentsourcepolicies, pullsecretprofiles, sidecarsets',
      'get images.config.openshift.io/cluster, clusterversions/version, machineconfigs/99-worker-generated-registries',
    ],
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags, args }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  if (flags.all || flags['all-namespaces']) return examineAll(flags, args, io);
  const pod = args.length === 1 ? parsePodName(args[0] ?? '') : undefined;
  if (pod === undefined || pod.name === '')
    throw new UsageError('Cannot examine: expected one pod, or a kind and a name as in deploy/web, or --all');
  needFolderForCluster(flags);
  const namespace = await namespaceOf(flags, io);
  const puller: PodPuller = { namespace, serviceAccount: 'default', pod };
  const { store, problems, hosted } = await read(flags, puller, io);
  writeProblems(io, problems);
  if (problems.length > 0 && findPod(store, puller) === undefined)
    throw new PullwrightError(`Cannot examine ${pod.kind} "${namespace}/${pod.name}": it could not be read`, {
      code: 'PodUnreadable',
      disposition: 'terminal',
    });
  const live = flags.from === undefined;
  const input = lookAt(store, puller, { unread: problems, hosted, live });
  const links = doctorChain(input);
  io.stdout.write(RENDERERS[flags.output]({ input, links, paint: paintFor(io) }));
  return links.every(({ state }) => state === 'ok') ? 0 : 1;
}

async function read(
  { from, cluster, ...access }: FolderFlags,
  puller: PodPuller,
  io: CommandIo,
): Promise<Looked> {
  if (from !== undefined) {
    const found = await readFolders(from, { more: DOCTOR_FOLDER_KINDS, cluster });
    return { ...withDefaultAccount(found, puller), hosted: found.hosted };
  }
  const kinds = [...kindsFor(puller), ...doctorKinds(puller)];
  const next = [...nextKindsFor(puller), ...doctorNext(puller)];
  return { ...(await readObjects(access, kinds, io, next)), hosted: false };
}

interface FolderFlags extends ClusterAccess {
  readonly from?: readonly string[] | undefined;
  readonly cluster?: string | undefined;
}

interface Looked extends SourceObjects {
  readonly hosted: boolean;
}

/** What is printed as JSON of one pod. */
export interface DoctorOutput {
  /** `Pod/web/shop-1` */
  readonly pod: string;
  readonly links: readonly Link[];
  readonly unread: readonly string[];
}

interface Finding {
  readonly input: DoctorInput;
  readonly links: readonly Link[];
  readonly paint: Paint;
}

const RENDERERS: Readonly<Record<'text' | 'json' | 'yaml', (finding: Finding) => string>> = {
  text: asText,
  json: ({ input, links }) => jsonText<DoctorOutput>({ pod: input.pod, links, unread: input.unread }),
  yaml: ({ input, links }) => fixOf(input, links),
};

const COLOURS = { ok: 'green', broken: 'red', unknown: 'yellow' } as const;

/** The chain up to the first broken link, since nothing behind it can be judged. */
function asText({ input, links, paint }: Finding): string {
  const broken = firstBroken(links);
  const shown = oneLined(broken === undefined ? links : links.slice(0, links.indexOf(broken) + 1));
  const lines = shown.map(
    ({ link, state, message }) =>
      `  ${paint(COLOURS[state], state.padEnd(7))}  ${link.padEnd(17)}  ${message}`,
  );
  const advice = broken?.advice === undefined ? [] : ['', onOneLine(broken.advice)];
  const yaml = fixOf(input, links);
  const fix = yaml === '' ? [] : ['', paint('bold', '# kubectl apply --server-side -f -'), yaml.trimEnd()];
  return `${[paint('bold', onOneLine(input.pod)), ...lines, ...advice, ...fix].join('\n')}\n`;
}

/** The YAML for the first broken link; when none is, and not all could be read, the rights that are missing. */
function fixOf(input: DoctorInput, links: readonly Link[]): string {
  const broken = firstBroken(links);
  const rights = broken === undefined && input.unread.length > 0 ? doctorAccess(input.namespace) : [];
  return (broken?.fix ?? rights).map((object) => toYaml(object, { lineWidth: 0 })).join('---\n');
}
