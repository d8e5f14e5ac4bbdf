/** `pullwright doctor POD`: the first problem that blocks the image pulls of a pod, and the YAML that fixes it. */
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import { containerFlag, type Given, namespaceFlag, outputFlag, toggle } from '../../cli/flags.ts';
import { type Paint, paintFor, writeProblems } from '../../cli/terminal.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import { describeObject } from '../../core/kubernetes/object.ts';
import { distinctBy } from '../../core/record.ts';
import { counted, oneLined, onOneLine } from '../../core/text.ts';
import { brokenIn, errorsOf, judgePod, ofContainer } from '../checks/chain.ts';
import { causeOf, firstBroken, fixesOf, groupedByCause } from '../checks/findings.ts';
import { clusterKinds } from '../model/cluster.ts';
import { type DoctorInput, lookAt, pullKinds, readCluster } from '../model/look.ts';
import { LOOK_FLAGS, namespaceOf, needFolderForCluster } from '../model/objects.ts';
import {
  findPod,
  joinedPodName,
  mirrorsOf,
  type PodPuller,
  parsePodName,
  WORKLOAD_KINDS,
} from '../model/pull.ts';
import { type Cause, causeText, type Finding } from '../model/types.ts';
import { type Answer, answer, COLOUR_OF, causesText, fixText, OUTPUT_FORMS } from '../views/text.ts';
import { chosenPods, examine, isRunning } from './report.ts';

// `pullwright doctor --all`: all pods that fail to pull, grouped by cause.

/**
 * Examines the failing pods, and prints one entry per cause.
 *
 * @throws UsageError for an invalid combination of flags; PullwrightError if nothing can be read
 */
async function examineAll(flags: Values, args: readonly string[], io: CommandIo): Promise<ExitCode> {
  if (!flags.all) throw new UsageError('Cannot examine all namespaces: --all-namespaces requires --all');
  if (args.length > 0 || flags.container !== undefined)
    throw new UsageError(
      `Cannot examine "${flags.container ?? args.join(' ')}": --all examines every pod, and accepts no name`,
    );
  if (flags['all-namespaces'] && flags.namespace !== undefined)
    throw new UsageError('Cannot examine: --namespace and --all-namespaces are mutually exclusive');
  const namespace = flags['all-namespaces'] ? undefined : await namespaceOf(flags, io);
  const { name, store, problems, hosted } = await readCluster(flags, clusterKinds(namespace), io, namespace);
  writeProblems(io, problems);
  const nodes = mirrorsOf(store);
  const known = { cluster: name, unread: problems, hosted, nodes, live: flags.from === undefined };
  const causes = groupedByCause(examine(store, chosenPods(store, true, namespace), known).flatMap(brokenIn));
  const findings = causes.flatMap(({ cases }) => cases);
  const where = namespace === undefined ? '' : ` in namespace ${JSON.stringify(namespace)}`;
  const limit = problems.length === 0 ? '' : ' (some objects not read)';
  const hasPods = WORKLOAD_KINDS.some((kind) => store.list(kind, namespace).length > 0);
  const others = namespace === undefined ? '' : '; -A examines every namespace';
  return print(io, flags.output, findings, {
    data: { causes, unread: problems },
    names: findings.map(({ subject }) => subject),
    text: (columns) =>
      causes.length === 0
        ? `${hasPods ? `No pod${where} fails to pull` : `No pods found${where}`}${limit}${others}\n`
        : causesText(headOf(causes, where), causes, paintFor(io), columns).join('\n'),
    failed: causes.length + problems.length > 0,
  });
}

function headOf(causes: readonly Cause[], where: string): string {
  // A pod with several failing images is under several causes.
  const all = distinctBy(
    causes.flatMap(({ cases }) => cases),
    ({ subject }) => subject,
  );
  const pods = all.reduce((sum, one) => sum + (one.pods ?? 0), 0);
  return pods === 0
    ? `No pod${where} fails to pull yet, ${counted(causes.length, 'cause')} found`
    : `${counted(pods, 'pod')}${where} ${pods === 1 ? 'fails' : 'fail'} to pull, for ${counted(causes.length, 'cause')}`;
}

/**
 * Prints the answer; for `-o yaml`, only the objects that fix `findings`, with notes on the rest. The YAML never mixes
 * cluster-scoped and namespaced objects.
 */
function print(
  io: CommandIo,
  form: (typeof OUTPUT_FORMS)[number],
  findings: readonly Finding[],
  told: Answer,
): ExitCode {
  if (form !== 'yaml') return answer(io, form, told);
  const fixes = fixesOf(findings);
  const clusterWide = fixes.filter(({ metadata }) => metadata.namespace === undefined);
  const later = clusterWide.length < fixes.length ? clusterWide : [];
  const beside = new Set([
    ...findings.flatMap(({ subject, message, advice = [], fix = [], commands = [] }) => [
      ...commands.map((one) => `Fixed by a command, not by YAML: ${one}`),
      ...(fix.length > 0
        ? []
        : [`Not fixed by YAML: ${[`${subject}: ${message}`, advice].flat().join('. ')}`]),
    ]),
    ...later.map(
      (object) =>
        `Not in this YAML: ${describeObject(object)} is cluster-scoped. Apply the YAML, then run doctor again`,
    ),
  ]);
  const yaml = fixText(fixes.filter((object) => !later.includes(object)));
  if (yaml !== '') io.stdout.write(`${yaml}\n`);
  writeProblems(io, told.failed ? beside : ['No problems found: nothing to fix']);
  return told.failed ? 1 : 0;
}

const TABLE = {
  name: 'doctor',
  about: [
    'Follows the chain from an image name to a credential that the registry accepts, for a pod that fails to pull. Prints the first broken link and the YAML that fixes it. Changes nothing, and shows no password.',
    'With --all, examines every pod that fails to pull, and prints one line per cause: number of pods, namespaces, and fix.',
  ],
  args: [
    {
      name: 'POD',
      help: 'a pod, or deploy/NAME, sts/NAME, ds/NAME, job/NAME, cronjob/NAME',
      completes: 'pods',
    },
  ],
  flags: {
    container: containerFlag,
    namespace: namespaceFlag,
    all: toggle({ help: 'all pods of the namespace that fail to pull, grouped by cause, instead of one' }),
    'all-namespaces': toggle({ short: 'A', help: 'with --all, in all namespaces' }),
    ...LOOK_FLAGS,
    output: outputFlag(
      OUTPUT_FORMS,
      'output format; name: only the objects; yaml: only the fix, for kubectl apply',
    ),
  },
  exitCodes: '0 no broken link, 1 a broken link or an unknown state, 2 wrong usage',
  examples: ['pullwright doctor deploy/web -n shop', 'pullwright doctor --all -A'],
  permissions: {
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
} as const;

export const command: Command = defineCommand(TABLE, run);

type Values = Given<typeof TABLE.flags>['flags'];

async function run({ flags, args: given }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  needFolderForCluster(flags);
  if (flags.all || flags['all-namespaces']) return examineAll(flags, given, io);
  const args = joinedPodName(given);
  const pod = args.length === 1 ? parsePodName(args[0] ?? '') : undefined;
  if (pod === undefined || pod.name === '')
    throw new UsageError(
      `Cannot examine "${args.join(' ')}": expected one pod, or a workload such as deploy/web, or --all`,
    );
  const namespace = await namespaceOf(flags, io);
  const puller: PodPuller = { namespace, serviceAccount: 'default', pod };
  const { store, problems, hosted } = await readCluster(flags, pullKinds(puller), io, namespace);
  writeProblems(io, problems);
  if (problems.length > 0 && findPod(store, puller) === undefined)
    throw new PullwrightError(`Cannot examine ${pod.kind} "${namespace}/${pod.name}": it could not be read`, {
      code: 'PodUnreadable',
      retryPolicy: 'terminal',
    });
  const live = flags.from === undefined;
  const input = ofContainer(lookAt(store, puller, { unread: problems, hosted, live }), flags.container);
  const judged = judgePod(input);
  const [broken, ...others] = errorsOf(input, judged);
  const findings = [...judged, ...others];
  // Later checks depend on the first broken one.
  const shown = broken === undefined ? judged : [...judged.slice(0, judged.indexOf(broken) + 1), ...others];
  return print(io, flags.output, broken === undefined ? findings.filter(isTold) : [broken], {
    data: { pod: input.pod, findings, unread: input.unread },
    names: [input.pod],
    text: () => asText(input, shown, paintFor(io)),
    failed: findings.some(isTold),
  });
}

const isTold = ({ severity }: Finding): boolean => severity !== 'ok' && severity !== 'info';

/** Uses a separate field manager: an apply as `kubectl` would remove fields that kubectl owns and the fix does not set. */
const APPLY = 'kubectl apply --server-side --field-manager=pullwright-fix -f -';

/** Formats findings, with the fix of the first broken one. */
function asText({ pod, template }: DoctorInput, shown: readonly Finding[], paint: Paint): string {
  const broken = firstBroken(shown);
  const lines = oneLined(shown).map(({ check, severity, message }) => {
    const word = severity === 'error' ? 'broken' : severity;
    return `  ${paint(COLOUR_OF[severity], word.padEnd(7))}  ${check.padEnd(17)}  ${message}`;
  });
  const { commands = [] } = broken ?? {};
  const errors = shown.filter(({ severity }) => severity === 'error');
  const said = [
    ...errors.flatMap(({ advice }) => (advice === undefined ? [] : ['', onOneLine(advice)])),
    ...(commands.length === 0 ? [] : ['', ...commands]),
  ];
  const yaml = fixText(broken?.fix ?? []);
  const fix = yaml === '' ? [] : ['', paint('bold', `# ${APPLY}`), yaml];
  // As in a report: a pod that runs is affected at its next pull.
  const severity = isRunning(template) ? 'warning' : 'error';
  const cause = broken && causeOf([{ ...broken, cluster: '', pods: 1, severity }]);
  const verdict = cause && `  ${paint(COLOUR_OF[severity], cause.verdict)}: ${onOneLine(causeText(cause))}`;
  return `${[`${paint('bold', onOneLine(pod))}${verdict ?? ''}`, ...lines, ...said, ...fix].join('\n')}\n`;
}
