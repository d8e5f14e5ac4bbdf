/** `pullwright explain IMAGE`: the credentials tried for an image at each pull source, in order, and why others are not. */
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import {
  containerFlag,
  file,
  type Given,
  namespaceFlag,
  outputFlag,
  text as textFlag,
} from '../../cli/flags.ts';
import { areWarnings, paintFor, writeProblems } from '../../cli/terminal.ts';
import type { AuthSource } from '../../core/docker-config/pull-secret.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import { parseImageReference } from '../../core/image-reference.ts';
import { redact } from '../../core/redacted.ts';
import { counted, oneLined } from '../../core/text.ts';
import { judgeImage, judgePod, ofContainer } from '../checks/chain.ts';
import { bySeverity, firstBroken } from '../checks/findings.ts';
import { type DoctorInput, lookAt, pullKinds, readCluster } from '../model/look.ts';
import { LOOK_FLAGS, namespaceOf, needFolderForCluster, readGiven } from '../model/objects.ts';
import {
  containerImages,
  explainIn,
  imageOf,
  isPodName,
  joinedPodName,
  type PodPuller,
  parsePodName,
  pullModel,
} from '../model/pull.ts';
import type { Explanation, Finding } from '../model/types.ts';
import { answer, documentsText, explanationText, OUTPUT_FORMS } from '../views/text.ts';

const TABLE = {
  name: 'explain',
  about: [
    'Explains why an image cannot be pulled: the credentials that the kubelet, CRI-O and containerd try at every mirror, in order, with Secret and key, why other credentials do not match, and how to fix it. Shows no password.',
  ],
  args: [
    { name: '[IMAGE...]', help: 'images; if none, all of --pod. A workload such as deploy/NAME sets --pod' },
  ],
  flags: {
    pod: textFlag({
      value: 'POD',
      completes: 'pods',
      help: 'a pod, or deploy/NAME, sts/NAME, ds/NAME, job/NAME, cronjob/NAME; without IMAGE, all its images',
    }),
    container: containerFlag,
    namespace: namespaceFlag,
    'service-account': textFlag({
      value: 'NAME',
      completes: 'accounts',
      default: 'default',
      help: 'ServiceAccount of the pull, without --pod',
    }),
    node: textFlag({
      value: 'NODE',
      completes: 'nodes',
      help: 'node that pulls; shows whether the pull secret is synced to it',
    }),
    'node-config': file({ help: "a copy of the node's /var/lib/kubelet/config.json" }),
    ...LOOK_FLAGS,
    output: outputFlag(
      OUTPUT_FORMS,
      'output format; wide: not truncated; name: only the Secrets whose credentials the kubelet tries',
    ),
  },
  exitCodes:
    '0 no finding of severity error or unknown, 1 such a finding, or a document of --from could not be read, 2 wrong usage',
  examples: ['pullwright explain registry.example.com/payments/api:1.4.2 -n payments --from dump/'],
  permissions: {
    hosts: ['the API server of the kubeconfig; none with --from'],
    api: [
      'get pods, deployments, statefulsets, daemonsets, replicasets, jobs, cronjobs, serviceaccounts, nodes',
      'list secrets (namespace of the pod); with --pod also events, roles, rolebindings, pullstatuses',
      'with --pod: get daemonsets/global-pull-secret-syncer, list pods, pullstatuses (kube-system)',
      'get secrets/global-pull-secret (kube-system)',
      'get secrets/pull-secret (openshift-config)',
      'get criocredentialproviderconfigs/cluster',
      'list imagedigestmirrorsets, imagetagmirrorsets, imagecontentsourcepolicies',
      'get images.config.openshift.io/cluster, clusterversions/version, machineconfigs/99-worker-generated-registries',
      'of a template: get namespaces, mutatingadmissionpolicies, mutatingadmissionpolicybindings, mutatingwebhookconfigurations; list pullsecretprofiles, sidecarsets',
    ],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run(given: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const { values, images: positionals } = askedOf(given);
  // Validate names before any request.
  positionals.forEach(imageOf);
  if (positionals.length > 0 && values.container !== undefined)
    throw new UsageError('Cannot explain: --container and an image are mutually exclusive');
  needFolderForCluster(values);
  const namespace = await namespaceOf(values, io);
  const puller = pullerOf({ ...values, namespace, serviceAccount: values['service-account'] }, '--pod');
  const cluster = await readCluster(values, pullKinds(puller), io, namespace);
  const { store, problems, places, notes, hosted } = cluster;
  writeProblems(io, [...problems, ...notes]);
  const reader = pullModel(store, puller, { complete: problems.length === 0, hosted });
  const names = positionals.length > 0 ? positionals : containerImages(reader.spec, values.container);
  if (names.length === 0) throw new UsageError('Cannot explain: an image or --pod is required');
  const images = names.flatMap((written) => {
    const parsed = parseImageReference(written);
    return parsed.ok ? [{ written, image: parsed.reference }] : [];
  });
  const file = await nodeConfig(values['node-config']);
  // Only a live cluster counts: an object that it denies may be the cause.
  const live = values.from === undefined;
  const unread = live ? problems.length : 0;
  const known = { unread: problems, hosted, live };
  const pod = puller.pod && ofContainer(lookAt(store, puller, known), values.container);
  const broken = pod && firstBroken(judgePod(pod));
  // Without a valid image, the first problem is all that can be reported.
  if (broken !== undefined && images.length === 0)
    throw new PullwrightError(`Cannot explain ${broken.subject}: ${broken.message}`, {
      code: 'ImageUnreadable',
      retryPolicy: 'terminal',
      ...(broken.advice === undefined ? {} : { hint: broken.advice }),
    });
  const explanations = images.map(({ written, image }) =>
    withFindings(
      explainIn(reader, image, { given: file, written }),
      pod && brokenFor(pod, written, { broken, isAlone: images.length === 1 }),
      unread,
    ),
  );
  writeProblems(io, reader.notes);
  const locate = (source: string): string | undefined => places.get(source);
  const severities = explanations.flatMap(({ findings }) => findings.map(({ severity }) => severity));
  const isBroken = severities.includes('error') || severities.includes('unknown');
  return answer(io, values.output, {
    data: explanations.map((one) => ({ ...one, files: filesOf(one, places) })),
    names: explanations.flatMap(({ kubelet }) => kubelet.tried.map(({ source, origin }) => origin ?? source)),
    text: (columns) =>
      explanations
        .map(
          (one) =>
            explanationText(oneLined(one), locate, paintFor(io), columns) + documentsText(one.findings),
        )
        .join('\n'),
    nothing: 'No credential is tried',
    failed: isBroken || (!live && !areWarnings(problems)),
  });
}

/** Treats `deploy/api` as a workload, as other commands do; the image on Docker Hub is `docker.io/deploy/api`. */
function askedOf({ flags, args: given }: Given<typeof TABLE.flags>) {
  const args = joinedPodName(given);
  const [pod = ''] = args;
  const isPod = args.length === 1 && flags.pod === undefined && isPodName(pod);
  return isPod ? { values: { ...flags, pod }, images: [] } : { values: flags, images: args };
}

/**
 * Returns the first error for one image of a pod. Only the pod's first error keeps its fix: lists and rules are atomic, so that
 * two fixes would undo each other. An unparsable image, which has no explanation, is reported with every other image.
 */
function brokenFor(
  pod: DoctorInput,
  image: string,
  { broken, isAlone }: { readonly broken: Finding | undefined; readonly isAlone: boolean },
): Finding | undefined {
  if (broken?.check === 'image') return broken;
  const own = firstBroken(judgeImage(pod, image));
  if (own === undefined || isAlone) return own;
  if (own.message === broken?.message) return broken;
  const { fix: _fix, commands: _commands, ...told } = own;
  return told;
}

/**
 * Puts the pod's error of `doctor` before the findings of the image. Warns if objects are unreadable, because an unread Secret
 * may have the credential.
 */
function withFindings(explanation: Explanation, broken: Finding | undefined, unread: number): Explanation {
  const said: Finding = {
    check: 'unread',
    severity: 'warning',
    subject: explanation.image,
    message: `${counted(unread, 'read')} failed, see above: some credentials and pull sources may be missing here`,
    advice: 'Grant the missing permissions, or explain from a dump',
  };
  const others = explanation.findings.filter(({ message }) => broken?.message.startsWith(message) !== true);
  const told = unread === 0 ? others : [...others, said].toSorted(bySeverity);
  return { ...explanation, findings: [broken ?? [], told].flat() };
}

/** @throws UsageError for text that is neither a pod name nor a workload */
export function pullerOf(
  asked: Partial<Record<keyof PodPuller, string | undefined>>,
  field: string,
): PodPuller {
  const { namespace = 'default', serviceAccount = 'default', node, pod: written } = asked;
  const base = { namespace, serviceAccount, ...(node === undefined ? {} : { node }) };
  if (written === undefined) return base;
  const pod = parsePodName(written);
  if (pod === undefined || pod.name === '')
    throw new UsageError(
      `Cannot read ${field} "${written}": expected a name, or a kind and a name as in deploy/web`,
    );
  return { ...base, pod };
}

async function nodeConfig(path: string | undefined): Promise<AuthSource | undefined> {
  if (path === undefined) return undefined;
  return { name: path, format: 'config.json', text: redact(await readGiven(path, 'docker config')) };
}

/** File and line of each source in the explanation. */
function filesOf({ kubelet }: Explanation, places: ReadonlyMap<string, string>) {
  const { tried, unused, blockedBy = [] } = kubelet;
  const sources = new Set([tried, unused, blockedBy].flat().map(({ source }) => source));
  return Object.fromEntries([...places].filter(([source]) => sources.has(source)));
}
