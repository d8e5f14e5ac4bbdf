/** Checks of each link in the chain from an image to its credential. */

import { GLOBAL_PULL_SECRET } from '../../core/kubernetes/hypershift.ts';
import { kubectl } from '../../core/kubernetes/object.ts';
import { recreation } from '../../core/kubernetes/pod-owner.ts';
import { distinctBy } from '../../core/record.ts';
import { counted } from '../../core/text.ts';
import type { PodFailure } from '../model/events.ts';
import type { DoctorImage, DoctorInput } from '../model/look.ts';
import type { NodeEvidence } from '../model/nodes.ts';
import { containerImages, podSpecIn, unnamedList } from '../model/pull.ts';
import { isBelowHttp, isRefusal, type PullCause } from '../model/pull-failure.ts';
import type { Finding, FoundIn, ListedSecret, Severity } from '../model/types.ts';
import { type Check, firstBroken, info, judge, type Told, warning } from './findings.ts';
import {
  explanations,
  fixAccount,
  fixProvider,
  giveEntry,
  hostOf,
  madeAgain,
  pullRemedy,
  retyped,
} from './remedies.ts';

function unreadableImage({ images }: DoctorInput): Told | undefined {
  const bad = images.find(({ fault }) => fault !== undefined);
  if (bad === undefined) return undefined;
  return {
    about: bad.text,
    message: `image name "${bad.text}" is invalid: ${bad.fault}`,
    advice: 'Correct it in the template',
  };
}

/** The images whose pull failed; all images if no failed pull is known. */
function failing({ failures: [failure], images }: DoctorInput): readonly DoctorImage[] {
  const failed = images.filter((one) => failure !== undefined && isOf(failure, one));
  return failed.length === 0 ? images : failed;
}

/** Matches the name in the template, or the full name that runtimes report. */
function isOf({ image }: PodFailure, { text, explanation }: DoctorImage): boolean {
  return image === text || image === explanation?.image;
}

/** First finding for `check` with this severity in the explanations of the images. */
function saidOf(images: readonly DoctorImage[], check: string, severity: Severity = 'error') {
  return explanations(images)
    .flatMap(({ findings, repository }) =>
      findings.map(({ subject: _subject, ...told }) => ({ about: hostOf(repository), ...told })),
    )
    .find((told) => told.check === check && told.severity === severity);
}

/** If a pull failed, skipped mirrors are reported as the cause, not DNS, a firewall or a rejected credential. */
function noPlace(input: DoctorInput): Told | undefined {
  const cause = input.failures[0]?.cause;
  const hasFailed = isBelowHttp(cause) || isRefusal(cause) || cause === 'not-found';
  const passed = hasFailed ? saidOf(failing(input), 'pull-sources', 'warning') : undefined;
  return passed === undefined ? saidOf(input.images, 'pull-sources') : { ...passed, severity: 'error' };
}

function accountMissing({ account, namespace, isPod }: DoctorInput): Told | undefined {
  if (!account.known || account.object !== undefined) return undefined;
  return {
    about: account.name,
    severity: isPod ? 'warning' : 'error',
    message: `ServiceAccount "${namespace}/${account.name}" does not exist: no ${isPod ? 'other ' : ''}pod can be created`,
    fix: [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account.name, namespace } }],
  };
}

function notInjected({ notInjected: missing, isPod, template }: DoctorInput): Told | undefined {
  const [first] = missing;
  if (first === undefined) return undefined;
  const { by: about, secret, pod, hindrance } = first;
  const lack = `${about} adds Secret "${secret}" to such pods, but`;
  if (!isPod && pod === undefined)
    return {
      about,
      message: `${lack} nothing injects it: ${hindrance ?? 'there is no admission policy or webhook, or the ServiceAccount allows only the Secrets that it lists'}`,
      advice: 'Enable admission, or list the Secret in the ServiceAccount',
    };
  return {
    about,
    message: `${lack} ${pod === undefined ? 'this one' : `pod "${pod}"`} does not list it: the pod is older, or was created without injection`,
    advice:
      hindrance === undefined
        ? `Pod "${pod ?? template.metadata.name}": ${first.remedy ?? 'recreate it'}`
        : `A new pod would lack it too: ${hindrance}`,
  };
}

/** First Secret listed by the pod that is in this state. */
function listedAs({ images }: DoctorInput, wanted: ListedSecret['state']) {
  return explanations(images)
    .flatMap(({ secrets }) => secrets)
    .find(({ state }) => state === wanted);
}

/** The first Secret of the namespace that has a credential for the pod's image but is not listed; at most one name. */
function betterFor(input: DoctorInput): readonly string[] {
  return failing(input)
    .flatMap(({ elsewhere }) => elsewhere)
    .slice(0, 1);
}

function namesNone({ template }: DoctorInput): Told | undefined {
  const unnamed = unnamedList(template);
  return unnamed === undefined ? undefined : warning(unnamed, 'Remove the entry, or name a Secret in it');
}

const PENDING = 'it is Ready, so the copy is pending or was rejected here';

function secretMissing(input: DoctorInput): Told | undefined {
  const missing = listedAs(input, 'missing');
  if (missing === undefined || !isNeeded(input)) return unknownSecret(input, 'secrets-exist');
  const { name: about, listedBy, why } = missing;
  const message = `Secret "${about}", listed by ${listedBy}, does not exist`;
  const better = betterFor(input);
  if (better.length > 0) return { about, message, ...fixAccount(input, about, better) };
  const giver = input.givers.find(({ secret }) => secret === about);
  if (giver === undefined) {
    const said = why === undefined ? message : `${message}: ${why}`;
    return { about, message: said, advice: 'Create it, or copy it here with a PullSecretProfile' };
  }
  const { by, says = PENDING } = giver;
  return {
    about: by,
    message: `${message}; ${by} should create it: ${says}`,
    advice: `Fix what its status reports, or contact its owner: ${kubectl(['describe', by.toLowerCase(), ...(INJECTS.test(by) ? [] : ['-n', input.namespace])], [by.split('/')[1] ?? '', input.namespace]) ?? 'see its status'}`,
  };
}

/** Whether a missing Secret can block the pull: false if another credential is usable. */
function isNeeded(input: DoctorInput): boolean {
  if (isRefusal(input.failures[0]?.cause)) return true;
  return mayNeedCredential(input) && explanations(failing(input)).some(({ kubelet }) => kubelet.anonymous);
}

/** Whether a credential could help. It cannot fix an invalid certificate or a DNS failure. */
function mayNeedCredential({ failures: [failure] }: DoctorInput): boolean {
  const cause = failure?.cause ?? 'unknown';
  return isRefusal(cause) || ['unknown', 'not-found', 'rate-limited'].includes(cause);
}

function secretUnreadable(input: DoctorInput): Told | undefined {
  const blocked = saidOf(input.images, 'secrets-readable');
  const better = betterFor(input);
  if (blocked !== undefined) {
    const name = blocked.about ?? '';
    return { ...blocked, ...(madeAgain(input, name) ?? fixAccount(input, name, better)) };
  }
  const ignored = listedAs(input, 'ignored');
  const said = saidOf(input.images, 'secrets-readable', 'warning');
  if (ignored === undefined || said === undefined || !isNeeded(input))
    return unknownSecret(input, 'secrets-readable');
  const { name, maker, retype } = ignored;
  const own = retype === undefined ? madeAgain(input, name) : retyped(input.namespace, ignored);
  // Its maker would undo a change of the Secret.
  const made = maker === undefined ? own : undefined;
  const fix = better.length > 0 ? fixAccount(input, name, better) : made;
  return { ...said, severity: 'error', ...fix };
}

/** Reports a Secret of unknown content, because it may contain a credential. */
function unknownSecret(input: DoctorInput, check: string): Told | undefined {
  return saidOf(failing(input), check, 'unknown');
}

function noCredential(input: DoctorInput): Told | undefined {
  const unsure = explanations(failing(input)).find(({ kubelet }) => kubelet.unknown !== undefined);
  if (unsure !== undefined)
    return {
      severity: 'unknown',
      message: `no listed credential that can be read matches "${unsure.image}": ${unsure.kubelet.unknown}`,
    };
  if (!mayNeedCredential(input)) return undefined;
  const doubtful = doubtfulCredential(input);
  if (doubtful !== undefined) return doubtful;
  for (const { explanation, elsewhere, leftOutNode } of failing(input)) {
    if (explanation?.kubelet.anonymous !== true) continue;
    const about = `images of ${hostOf(explanation.repository)}`;
    const message = `no listed credential matches "${explanation.image}"`;
    if (leftOutNode !== undefined)
      return {
        about: `nodes without the label ${GLOBAL_PULL_SECRET.nodeLabel}=true`,
        message: `${message}; Secret "${GLOBAL_PULL_SECRET.namespace}/${GLOBAL_PULL_SECRET.global}" does, and node "${leftOutNode}" does not get it: it lacks the label ${GLOBAL_PULL_SECRET.nodeLabel}=true`,
        advice:
          'Select the node with "nodes" of global-pull-secret in the fleet. Nodes of the Machine Config Operator cannot be selected: add the entry to openshift-config/pull-secret there',
      };
    const [better] = elsewhere;
    const giver = input.notGiven.find(({ secret }) => elsewhere.some((one) => one === secret));
    if (giver !== undefined) return withheld(input, giver, message);
    if (better !== undefined)
      return {
        about,
        message: `${message}; Secret "${better}" of the namespace does`,
        ...fixAccount(input, undefined, [better]),
      };
    const near = explanation.findings.find(({ check }) => check === 'entry/near');
    // A public image needs no credential: report a fault only if the pull was rejected or an entry nearly matches.
    if (near !== undefined)
      return { about, message: `${message}: ${near.message}`, advice: near.advice ?? '' };
    // If the node's credential provider failed, the rejection is about a mirror's credential, not imagePullSecrets.
    const cause = input.failures[0]?.cause;
    if (isRefusal(cause) && input.provider.failure === undefined)
      return {
        about,
        message: `${message}, and the registry requires one${orMissing(cause)}`,
        ...giveEntry(input, hostOf(explanation.repository)),
      };
  }
  return undefined;
}

const orMissing = (cause: PullCause | undefined): string =>
  cause === 'denied-or-missing' ? ', or does not have the image' : '';

/** Reports why a profile or SidecarSet skips the pod: the advice to list the Secret manually would hide that. */
function withheld(
  { isPod, template }: DoctorInput,
  { secret, by, why }: DoctorInput['notGiven'][number],
  lack: string,
): Told {
  const again = isPod ? `; then, for pod "${template.metadata.name}": ${recreation(template)}` : '';
  return {
    about: by,
    message: `${lack}; Secret "${secret}" of the namespace does, and ${by}, which adds it to pods, skips this one: ${why}`,
    advice: `Change that, or list the Secret in imagePullSecrets${again}`,
  };
}

/** Reports an entry that the registry will reject, for an image with such entries only. */
function doubtfulCredential(input: DoctorInput): Told | undefined {
  for (const { image, kubelet } of explanations(failing(input))) {
    const [first, ...others] = kubelet.tried;
    if (first?.doubt === undefined || others.some(({ doubt }) => doubt === undefined)) continue;
    // An empty entry does no harm to a public image.
    if (first.empty && input.failures.length === 0) continue;
    return {
      about: first.source,
      message: `the credential for "${image}", entry "${first.key}" of ${first.source}, ${first.doubt}`,
      advice: `Renew the entry in ${first.source}`,
    };
  }
  return undefined;
}

function mirrorBare(input: DoctorInput): Told | undefined {
  const failed = failing(input).flatMap(({ mirrors }) => mirrors);
  const [mirror] = [...failed, ...input.images.flatMap(({ mirrors }) => mirrors)];
  const { mayRead, failure } = input.provider;
  if (failure !== undefined) return providerFailed(input, failure);
  if (mirror === undefined) return mirrorRefused(input);
  const host = hostOf(mirror);
  const message = `CRI-O contacts mirror "${mirror}" without a credential, although a Secret of the namespace has one: pull secrets of pods never reach mirrors`;
  return {
    about: host,
    // Only a warning if the mirror is for an image that did not fail.
    severity: failed.length === 0 ? 'warning' : 'error',
    message: mayRead ? message : `${message}; the credential provider may not read it`,
    ...fixProvider(input),
    advice: `Or put an entry for "${host}" into kube-system/additional-pull-secret`,
  };
}

/** A mirror that denied access because CRI-O has no credential for it. */
function mirrorRefused(input: DoctorInput): Told | undefined {
  const { cause, host: about } = input.failures[0] ?? {};
  if (!isRefusal(cause)) return undefined;
  const found = explanations(failing(input)).flatMap(({ findings }) => findings);
  const said = found.find((one) => one.check === 'mirror-credential' && one.message.includes(` ${about}/`));
  return said && { about, message: said.message, advice: said.advice };
}

/** The provider's error on the node causes the registry's rejection. */
function providerFailed(input: DoctorInput, failure: string): Told {
  const { mayRead } = input.provider;
  const message = `the credential provider of the node failed for this pod: ${failure}`;
  if (mayRead) return { about: failure, message, advice: 'The end of the message names the fix' };
  // If the mirrors are unknown, any readable Secret may be for one of them.
  const guessed = input.images.flatMap(({ mirrors, mirrorSecrets }) =>
    mirrors.length === 0 ? mirrorSecrets : [],
  );
  const names = [...new Set(guessed)].map((name) => `"${name}"`).join(', ');
  const advice = `The mirrors of the node are not known, so every pull secret of the namespace is listed (${names}): remove those that are for no mirror`;
  return { about: failure, message, advice: names === '' ? undefined : advice, ...fixProvider(input) };
}

/** First problem reported for the node (`ofNode`) or for the namespace. */
function trouble({ troubles }: DoctorInput, ofNode: boolean): Told | undefined {
  const { object, message } = troubles.find(({ onNode }) => onNode === ofNode) ?? {};
  return object === undefined ? undefined : { about: object, message: `${object}: ${message}` };
}

/** On an eligible node: whether its agent runs and has delivered the current Secret. */
function nodeFault({ name, agent, agentSays = '', behind = 'none' }: NodeEvidence): Told | undefined {
  const { namespace, syncer } = GLOBAL_PULL_SECRET;
  const daemonSet = `DaemonSet "${namespace}/${syncer}"`;
  const [agentPod = ''] = agentSays.split(' ', 1);
  if (agent === 'no-daemon-set')
    return {
      about: daemonSet,
      message: `node "${name}" has the label, and ${daemonSet} does not exist: nothing delivers the pull secret to it`,
      advice: 'Apply the manifests of global-pull-secret, or check the reconciler: pullwright status',
    };
  if (agent === 'absent')
    return {
      about: name,
      message: `${daemonSet} has no pod on node "${name}": nothing delivers the pull secret to it`,
      advice: `Compare the taints of the node with the tolerations of the DaemonSet: ${kubectl(['describe', 'node', name], [name]) ?? 'describe the node'}`,
    };
  if (agent === 'not-ready')
    return {
      about: name,
      message: `the agent of node "${name}" is not ready: ${agentSays}`,
      advice: `Read its log: ${kubectl(['logs', '-n', namespace, agentPod], [agentPod]) ?? 'kubectl logs'}`,
    };
  if (behind === 'none') return undefined;
  return {
    about: name,
    message: `node "${name}" does not have the current pull secret (${behind.reason}): ${behind.why}`,
    advice: `If this stays, read the log of its agent, which this finds: kubectl get pods -n ${namespace} -l name=${syncer} --field-selector spec.nodeName=${name}`,
  };
}

function refused(input: DoctorInput): Told | undefined {
  const [failure] = input.failures;
  if (failure === undefined) return undefined;
  const { cause, host, image, places, text, container } = failure;
  const pull = input.images.find((one) => isOf(failure, one))?.explanation;
  // CRI-O never sends a pod's credential to a mirror; containerd does.
  const isSent = pull !== undefined && (host === hostOf(pull.repository) || pull.runtime === 'containerd');
  const sent = isSent ? pull.kubelet.tried : [];
  const { said, advice } = pullRemedy(failure, input.namespace, sent);
  const unread = isRefusal(cause) ? unknownSecret(input, 'secrets-exist')?.message : undefined;
  const quoted = text === '' ? 'the kubelet reports no reason' : JSON.stringify(text);
  return {
    about: said,
    message: `the last pull of "${image}" for container "${container}" failed: ${said}${cause === 'unknown' ? `: ${quoted}` : ''}`,
    advice: unread === undefined ? advice : `${advice}; ${unread}`,
    cause,
    host,
    sources: places?.map(({ place, ...rest }) => ({ source: place, ...rest })),
    evidence: text === '' ? undefined : text,
  };
}

/**
 * The chain from the image name to a credential that the registry accepts. Later links depend on earlier ones: fix the first
 * failing check first.
 */
export const POD_CHECKS: readonly Check<DoctorInput>[] = [
  { id: 'image', needs: 'nothing', run: unreadableImage, ok: 'every image name is valid' },
  { id: 'pull-sources', needs: 'nothing', run: noPlace, ok: 'every image has a pull source' },
  {
    id: 'service-account',
    run: accountMissing,
    ok: ({ account }) =>
      account.object === undefined
        ? info('not checked: the ServiceAccount is not in the input')
        : 'the ServiceAccount exists',
  },
  { id: 'injection', run: notInjected, ok: injectionText },
  { id: 'secrets-named', run: namesNone },
  { id: 'secrets-exist', run: secretMissing, ok: missingText },
  {
    id: 'secrets-readable',
    run: secretUnreadable,
    ok: readableText,
  },
  { id: 'credential', run: noCredential, ok: credentialText },
  { id: 'mirror-credential', run: mirrorBare, ok: 'every mirror with a matching credential gets it' },
  { id: 'distribution', run: (input) => trouble(input, false), ok: notBroughtText },
  {
    id: 'node',
    run: (input) => trouble(input, true) ?? (input.node && nodeFault(input.node)),
    ok: ({ node }) => (node === undefined ? 'the node reports no problem' : nodeText(node)),
  },
  { id: 'registry', run: refused, ok: registryText },
];

/** Runs all {@link POD_CHECKS} on a pod or a template. Never throws. */
export function judgePod(input: DoctorInput): readonly Finding[] {
  return judge(POD_CHECKS, input, input.pod, input.unread);
}

/** The facts about the container `name` alone, if given. @throws UsageError that lists the containers */
export function ofContainer(input: DoctorInput, name: string | undefined): DoctorInput {
  if (name === undefined) return input;
  return onlyImages(input, containerImages(podSpecIn(input.template), name));
}

function onlyImages(input: DoctorInput, texts: readonly string[]): DoctorInput {
  const images = input.images.filter(({ text }) => texts.includes(text));
  const own = input.failures.filter((failure) => images.some((one) => isOf(failure, one)));
  const isOfThem = own.length === 0 && failing(input).some((one) => images.includes(one));
  return { ...input, images, failures: isOfThem ? input.failures : own };
}

/** Findings for the pod's image `text`, regardless of its other images. Never throws. */
export function judgeImage(input: DoctorInput, text: string): readonly Finding[] {
  return judgePod(onlyImages(input, [text]));
}

/** The first failed check, and those of the pod's other failing images. */
export function errorsOf(input: DoctorInput, findings: readonly Finding[]): readonly Finding[] {
  const broken = firstBroken(findings);
  if (broken === undefined) return [];
  const others = input.failures.slice(1).flatMap(({ image }) => firstBroken(judgeImage(input, image)) ?? []);
  return distinctBy([broken, ...others], ({ message }) => message);
}

/** An examined workload or pod. */
export interface ExaminedPod {
  readonly cluster: string;
  readonly input: DoctorInput;
  /** Findings for `input`. */
  readonly findings: readonly Finding[];
  /** Number of pods grouped under this entry. */
  readonly pods: number;
  /** Whether all of these pods run. If so, the fault affects only the next pull on a node without the image. */
  readonly runs: boolean;
}

/** The errors of a pod; only warnings while the pod runs, because only the next pull is affected. */
export function brokenIn({ cluster, input, findings, pods, runs }: ExaminedPod): readonly FoundIn[] {
  const [image] = failing(input);
  const pull = image && pullId(cluster, input.pod, image.text);
  return errorsOf(input, findings).map((one, at): FoundIn => {
    return { ...one, severity: runs ? 'warning' : 'error', cluster, pods, pull: at === 0 ? pull : undefined };
  });
}

/** Warnings about the pulls of a pod without an error: they determine its verdict. */
export function warningsIn({ cluster, input, findings }: ExaminedPod): readonly FoundIn[] {
  if (firstBroken(findings) !== undefined) return [];
  const told = [...findings, ...explanations(input.images).flatMap((one) => one.findings)];
  // The pull secret itself has the finding of an entry that is held back.
  const own = told.filter(({ check, severity }) => severity === 'warning' && check !== 'entry/held-back');
  return distinctBy(own, ({ message }) => message).map((one) => ({ ...one, subject: input.pod, cluster }));
}

/** Identifies a pull in a report, for permalinks. */
export function pullId(cluster: string, object: string, image: string): string {
  return `${cluster} ${object} ${image}`;
}

/** A public image needs no credential, so an anonymous pull is not an error. */
function credentialText({ images }: DoctorInput): string | Told {
  const bare = images.find(({ explanation }) => explanation?.kubelet.anonymous === true);
  return bare === undefined
    ? 'every image has a matching credential'
    : info(
        `no listed credential matches "${bare.text}": it is pulled anonymously, which works for public images only`,
      );
}

/** Only pods pull images: for a template, the events of its pods are reported. */
function registryText({ isPod, pods }: DoctorInput): string | Told {
  if (isPod) return 'no status or event reports a failed pull';
  return pods === 0
    ? info('not checked: no pod of this template found, so no registry was contacted')
    : `no event of its ${pods === 1 ? 'pod' : `${pods} pods`} reports a failed pull`;
}

/** Describes the state of the node's agent. */
function nodeText({ name, agent, behind }: NodeEvidence): string | Told {
  if (agent === 'unknown') return info(`not checked: no data on the agent of node "${name}"`);
  const has = `the agent of node "${name}" is ready`;
  return behind === undefined
    ? `${has}; the node's content is not reported (agent.report)`
    : `${has}, and reports the current pull secret`;
}

/** Counts the listed imagePullSecrets, and those that profiles and SidecarSets add. */
function injectionText({ images, isPod }: DoctorInput): string {
  const listed = images.flatMap(({ explanation }) => explanation?.secrets ?? []);
  const names = new Set(listed.map(({ name }) => name));
  const who = isPod ? 'the pod' : 'a pod of this template';
  if (names.size === 0) return `${who} lists no imagePullSecret, and no profile or SidecarSet adds one`;
  const injected = new Set(listed.filter(({ listedBy }) => INJECTS.test(listedBy)).map(({ name }) => name));
  const given = injected.size === 0 ? 'no other' : `${injected.size} of them`;
  return `${who} lists ${counted(names.size, 'imagePullSecret')}; profiles and SidecarSets add ${given}`;
}

/** Names a listed Secret that is missing but not required for the pull. */
function missingText(input: DoctorInput): string | Told {
  const missing = listedAs(input, 'missing');
  if (missing === undefined) return 'every listed Secret exists';
  return info(
    `Secret "${missing.name}", listed by ${missing.listedBy}, does not exist: the image is tried without it`,
  );
}

/** Names a listed Secret that the kubelet skips but the pull does not require. */
function readableText({ images }: DoctorInput): string | Told {
  const skipped = saidOf(images, 'secrets-readable', 'warning');
  return skipped === undefined
    ? 'the kubelet can read every listed Secret whose content is known'
    : info(skipped.message);
}

function notBroughtText(input: DoctorInput): string | Told {
  const missing = listedAs(input, 'missing');
  const giver = input.givers.find(({ secret }) => secret === missing?.name);
  if (giver === undefined) return 'nothing that syncs Secrets here reports a problem';
  const { by, secret, says = PENDING } = giver;
  return info(`${by} has not synced Secret "${secret}": ${says}`);
}

const INJECTS = /^(PullSecretProfile|SidecarSet)\//;
