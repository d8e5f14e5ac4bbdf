/** What breaks each link of the chain from an image to its credential, and what fixes it. */

import { GLOBAL_PULL_SECRET } from '../../core/kubernetes/hypershift.ts';
import { type KubeObject, kubectl } from '../../core/kubernetes/object.ts';
import { recreation } from '../../core/kubernetes/pod-owner.ts';
import { recordOf, textOf } from '../../core/record.ts';
import { counted, shellWord } from '../../core/text.ts';
import { isBelowHttp, isRefusal } from '../model/pull-failure.ts';
import {
  type DoctorInput,
  type Explanation,
  type Fault,
  LINKS,
  type Link,
  type LinkName,
  type NodeEvidence,
} from '../model/types.ts';
import { ALLOW_SOURCE } from './pull.ts';
import { pullRemedy } from './pull-remedies.ts';

// The YAML that fixes a link: as few fields as server-side apply needs. No value of a Secret is ever among them.

/**
 * Takes `bad` out of the list of Secrets and puts `good` in: in the template when it has a list of its own, which hides that of
 * the ServiceAccount, else in the ServiceAccount.
 */
export function fixAccount(
  input: DoctorInput,
  bad: string | undefined,
  good: string | undefined,
): Pick<Link, 'fix' | 'advice' | 'commands'> {
  const { account, namespace, ownList, isPod, template } = input;
  const listed = input.images[0]?.explanation?.secrets.map(({ name }) => name) ?? [];
  const names = [
    ...listed.filter((name) => name !== bad && name !== good),
    ...(good === undefined ? [] : [good]),
  ];
  const imagePullSecrets = names.map((name) => ({ name }));
  if (ownList && isPod)
    return {
      advice: `Write imagePullSecrets ${names.join(', ') || '(none)'} into the template that the pod is made from, and ${recreation(template)}`,
    };
  const { apiVersion, kind, metadata } = template;
  const place = { name: metadata.name, namespace };
  if (ownList)
    return { fix: [{ apiVersion, kind, metadata: place, spec: inTemplate(kind, { imagePullSecrets }) }] };
  const again = isPod
    ? { advice: `Pod "${template.metadata.name}" keeps its list; then ${recreation(template)}` }
    : {};
  const own = account.object?.['imagePullSecrets'];
  if (Array.isArray(own) && own.length > 0)
    return {
      ...again,
      ...patchedList({ namespace, account: account.name, own: own.map(nameIn), bad, good }),
    };
  return {
    fix: [
      {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: account.name, namespace },
        imagePullSecrets,
      },
    ],
    ...again,
  };
}

function nameIn(item: unknown): string {
  return textOf(recordOf(item)['name']);
}

interface ListPatch {
  readonly namespace: string;
  readonly account: string;
  readonly own: readonly string[];
  readonly bad: string | undefined;
  readonly good: string | undefined;
}

/** The list of a ServiceAccount is atomic: who applies one name takes the others away, and a patch of the list alone does not. */
function patchedList({ namespace, account, own, bad, good }: ListPatch): Pick<Link, 'commands'> {
  const path = '/imagePullSecrets';
  const at = bad === undefined ? -1 : own.indexOf(bad);
  const patch = [
    ...(at < 0
      ? []
      : [
          { op: 'test', path: `${path}/${at}/name`, value: bad },
          { op: 'remove', path: `${path}/${at}` },
        ]),
    ...(good === undefined || own.includes(good)
      ? []
      : [{ op: 'add', path: `${path}/-`, value: { name: good } }]),
  ];
  const command = kubectl(['patch', 'serviceaccount', account, '-n', namespace], [account, namespace]);
  return patch.length === 0 || command === undefined
    ? {}
    : { commands: [`${command} --type=json -p ${shellWord(JSON.stringify(patch))}`] };
}

/**
 * Of a pod without a credential that Secrets of its namespace have. Whoever would give one of them has a reason not to, which a list
 * by hand would hide.
 *
 * @param lack what is about what, and what is missing
 */
export function useOther(
  input: DoctorInput,
  elsewhere: readonly string[],
  lack: Required<Pick<Fault, 'about' | 'message'>>,
): Fault | undefined {
  const [better] = elsewhere;
  if (better === undefined) return undefined;
  const found = input.notGiven?.find(({ secret }) => elsewhere.includes(secret));
  if (found === undefined) {
    const message = `${lack.message}; Secret "${better}" of the namespace does`;
    return { about: lack.about, message, ...fixAccount(input, undefined, better) };
  }
  const { secret, by, why } = found;
  const { isPod, template } = input;
  const again = isPod ? `; then, for pod "${template.metadata.name}": ${recreation(template)}` : '';
  return {
    about: by,
    message: `${lack.message}; Secret "${secret}" of the namespace does, and ${by}, which has it for pods, does not give it to this one: ${why}`,
    advice: `Change that, or list the Secret in imagePullSecrets${again}`,
  };
}

function inTemplate(kind: string, spec: object): object {
  const template = { template: { spec } };
  return kind === 'CronJob' ? { jobTemplate: { spec: template } } : template;
}

/** Lets the credential provider serve the images, and read the Secrets of the namespace. */
export function fixProvider(
  { namespace, images, account }: DoctorInput,
  { matchImages, mayRead }: { readonly matchImages: readonly string[]; readonly mayRead: boolean },
): readonly KubeObject[] {
  const hosts = images.flatMap(({ explanation, mirrors }) =>
    explanation === undefined || mirrors.length === 0 ? [] : (explanation.repository.split('/', 1)[0] ?? []),
  );
  const wanted = [...new Set([...matchImages, ...hosts])];
  const secrets = [
    ...new Set(
      images.flatMap(({ elsewhere, explanation, mirrorSecrets = [] }) => [
        ...elsewhere,
        ...mirrorSecrets,
        ...(explanation?.secrets ?? []).flatMap(({ name, state }) => (state === 'found' ? [name] : [])),
      ]),
    ),
  ];
  const config: KubeObject = {
    apiVersion: 'config.openshift.io/v1',
    kind: 'CRIOCredentialProviderConfig',
    metadata: { name: 'cluster' },
    spec: { matchImages: wanted },
  };
  return [
    ...(wanted.length > matchImages.length && mayRead ? [config] : []),
    ...(mayRead ? [] : providerAccess(namespace, account.name, secrets)),
    // By name it reads only what pod and account list.
    ...(mayRead || secrets.length === 0 || images.some(({ explanation }) => explanation?.secrets.length !== 0)
      ? []
      : [
          {
            apiVersion: 'v1',
            kind: 'ServiceAccount',
            metadata: { name: account.name, namespace },
            imagePullSecrets: secrets.map((name) => ({ name })),
          },
        ]),
  ];
}

/** What the provider asks for with the token of the pod's ServiceAccount. */
function providerAccess(
  namespace: string,
  account: string,
  secrets: readonly string[],
): readonly KubeObject[] {
  // A rule without names would be one for every Secret.
  if (secrets.length === 0) return [];
  // Of its own: the Role of that name may be another's, with more rights.
  const name = `credential-provider-secret-access-${account}`.slice(0, 253);
  const group = 'rbac.authorization.k8s.io';
  // So that the way out finds what was applied of these.
  const labels = { 'app.kubernetes.io/part-of': 'pullwright' };
  return [
    {
      apiVersion: `${group}/v1`,
      kind: 'Role',
      metadata: { name, namespace, labels },
      rules: [
        { apiGroups: [''], resources: ['secrets'], resourceNames: secrets, verbs: ['get'] },
        { apiGroups: [''], resources: ['serviceaccounts'], resourceNames: [account], verbs: ['get'] },
      ],
    },
    {
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata: { name, namespace, labels },
      roleRef: { apiGroup: group, kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    },
  ];
}

/** The fault of a link; undefined when it holds. */
export const FAULT_OF: Readonly<Record<LinkName, (input: DoctorInput) => Fault | undefined>> = {
  image: unreadableImage,
  places: noPlace,
  'service-account': accountMissing,
  injection: notInjected,
  'secrets-there': secretMissing,
  'secrets-readable': secretUnreadable,
  credential: noCredential,
  'mirror-credential': mirrorBare,
  distribution: ({ troubles }) => trouble(troubles.find(({ onNode }) => !onNode)),
  node: ({ troubles, node }) => trouble(troubles.find(({ onNode }) => onNode)) ?? nodeFault(node),
  registry: refused,
};

function unreadableImage({ images }: DoctorInput): Fault | undefined {
  const bad = images.find(({ fault }) => fault !== undefined);
  if (bad === undefined) return undefined;
  return {
    about: bad.text,
    message: `image "${bad.text}" cannot be read: ${bad.fault}`,
    advice: 'Correct it in the template',
  };
}

/** The registry of a reference. */
function hostOf(reference: string): string {
  return reference.split('/', 1)[0] ?? reference;
}

function explanations({ images }: DoctorInput): readonly Explanation[] {
  return images.flatMap(({ explanation }) => explanation ?? []);
}

function noPlace(input: DoctorInput): Fault | undefined {
  const passed = passedOver(input);
  if (passed !== undefined) return passed;
  const bad = explanations(input).find(({ places }) => places.length === 0);
  if (bad === undefined) return undefined;
  const [why] = bad.skipped;
  const from = why?.from === undefined ? '' : ` (${why.from})`;
  return {
    about: hostOf(bad.repository),
    message: `"${bad.image}" may be pulled from nowhere${why === undefined ? '' : `: ${why.reference} ${why.why}${from}`}`,
    advice: ALLOW_SOURCE,
  };
}

/** Mirrors that are there and not asked, where nothing else can be: that is the cause, and DNS and firewalls are none. */
function passedOver(input: DoctorInput): Fault | undefined {
  const cause = input.failure?.cause;
  const hasFailed = isBelowHttp(cause) || isRefusal(cause) || cause === 'not-found';
  for (const { mirrorFix, places, repository } of explanations(input)) {
    if (mirrorFix === undefined || (places.length > 0 && !hasFailed)) continue;
    const { message, fix, object } = mirrorFix;
    return {
      about: hostOf(repository),
      message,
      advice: fix,
      ...(object === undefined ? {} : { fix: [object] }),
    };
  }
  return undefined;
}

function accountMissing({ account, namespace, isPod }: DoctorInput): Fault | undefined {
  if (isPod || !account.known || account.object !== undefined) return undefined;
  return {
    about: account.name,
    message: `ServiceAccount "${namespace}/${account.name}" does not exist: no pod can be made`,
    fix: [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account.name, namespace } }],
  };
}

function notInjected({ notInjected: missing, isPod, template }: DoctorInput): Fault | undefined {
  const [first] = missing;
  if (first === undefined) return undefined;
  const { by: about, secret, pod, hindrance } = first;
  const lack = `${about} gives such pods Secret "${secret}", and`;
  if (!isPod && pod === undefined)
    return {
      about,
      message: `${lack} nothing injects it: ${hindrance ?? 'no policy and no webhook is there, or the ServiceAccount allows only Secrets that it lists'}`,
      advice: 'Switch admission on, or list the Secret in the ServiceAccount',
    };
  return {
    about,
    message: `${lack} ${pod === undefined ? 'this one' : `pod "${pod}"`} does not list it: it was made before, or while nothing injected`,
    advice:
      hindrance === undefined
        ? `Pod "${pod ?? template.metadata.name}": ${first.remedy ?? 'create it again'}`
        : `A new pod would lack it too: ${hindrance}`,
  };
}

function secretMissing(input: DoctorInput): Fault | undefined {
  const listed = explanations(input)[0]?.secrets ?? [];
  const missing = listed.find(({ state }) => state === 'missing');
  if (missing === undefined || !isNeeded(input)) return undefined;
  const better = input.images.flatMap(({ elsewhere }) => elsewhere)[0];
  const message = `Secret "${missing.name}", listed by ${missing.listedBy}, does not exist`;
  const about = missing.name;
  if (better !== undefined) return { about, message, ...fixAccount(input, missing.name, better) };
  const giver = input.givers.find(({ secret }) => secret === missing.name);
  if (giver === undefined)
    return { about, message, advice: `Create it, or bring it here by a PullSecretProfile` };
  const { by, says = 'it is Ready, so the copy is on its way or was refused here' } = giver;
  return {
    about: by,
    message: `${message}; ${by} is to bring it: ${says}`,
    advice: `Fix what the profile says, or ask who looks after it: ${kubectl(['describe', by.toLowerCase()], [by.split('/')[1] ?? '']) ?? 'see its status'}`,
  };
}

/** Another credential may do: then a Secret that is missing stands in nobody's way. */
function isNeeded(input: DoctorInput): boolean {
  if (isRefusal(input.failure?.cause)) return true;
  return mayNeedCredential(input) && explanations(input).some(({ kubelet }) => kubelet.anonymous);
}

/** Whether a credential could help: no credential makes a certificate valid, or a name resolve. */
function mayNeedCredential({ failure }: DoctorInput): boolean {
  const cause = failure?.cause ?? 'unknown';
  return isRefusal(cause) || ['unknown', 'not-found', 'rate-limited'].includes(cause);
}

function secretUnreadable(input: DoctorInput): Fault | undefined {
  const [first] = explanations(input);
  const blocked = first?.kubelet.blockedBy;
  if (blocked !== undefined) {
    const name = blocked.source.split('/').at(-1) ?? '';
    const message = `${blocked.source} ${blocked.why}: one unreadable Secret fails every image of the pod`;
    return { about: name, message, ...fixAccount(input, name, undefined) };
  }
  const ignored = first?.secrets.find(({ state }) => state === 'ignored');
  if (ignored === undefined || !isNeeded(input)) return undefined;
  return {
    about: ignored.name,
    message: `Secret "${ignored.name}", listed by ${ignored.listedBy}, is skipped: it has another type than a pull secret, or no data under the key of its type`,
    ...fixAccount(input, ignored.name, input.images.flatMap(({ elsewhere }) => elsewhere)[0]),
    ...(input.images.some(({ elsewhere }) => elsewhere.length > 0)
      ? {}
      : {
          fix: [],
          advice: 'The type of a Secret cannot be changed: create it again as kubernetes.io/dockerconfigjson',
          ...retyped(input.namespace, ignored.name),
        }),
  };
}

/** Makes a Secret again, with the type that its key asks for. */
function retyped(namespace: string, name: string): Pick<Link, 'commands'> {
  const get = kubectl(['get', 'secret', name, '-n', namespace, '-o', 'yaml'], [namespace, name]);
  if (get === undefined) return {};
  const type = `s#^type: .*#type: kubernetes.io/dockerconfigjson#`;
  return { commands: [`${get} | sed ${shellWord(type)} | kubectl replace --force -f -`] };
}

function noCredential(input: DoctorInput): Fault | undefined {
  if (!mayNeedCredential(input)) return undefined;
  const doubtful = doubtfulCredential(input);
  if (doubtful !== undefined) return doubtful;
  for (const { explanation, elsewhere, leftOutNode } of input.images) {
    if (explanation?.kubelet.anonymous !== true) continue;
    const about = `images of ${hostOf(explanation.repository)}`;
    const message = `no credential that is listed matches "${explanation.image}"`;
    if (leftOutNode !== undefined)
      return {
        about: `nodes without the label ${GLOBAL_PULL_SECRET.nodeLabel}=true`,
        message: `${message}; Secret "${GLOBAL_PULL_SECRET.namespace}/${GLOBAL_PULL_SECRET.global}" does, and node "${leftOutNode}" does not get it: it lacks the label ${GLOBAL_PULL_SECRET.nodeLabel}=true`,
        advice:
          'Take the node in with "nodes" of global-pull-secret in the fleet. A node that the Machine Config Operator looks after is never taken: put the entry into openshift-config/pull-secret there',
      };
    const other = useOther(input, elsewhere, { about, message });
    if (other !== undefined) return other;
    const near = explanation.findings.find((one) => one.severity === 'warning' && one.fix !== undefined);
    // A public image needs none: only when it is refused, or with an entry that nearly matches, is it a fault.
    if (near !== undefined && explanation.kubelet.unused.some((one) => one.near))
      return { about, message: `${message}: ${near.message}`, advice: near.fix ?? '' };
    // Where the node's provider failed, the credential is a mirror's, and the refusal says nothing about the pod's list.
    if (isRefusal(input.failure?.cause) && input.provider.failure === undefined)
      return {
        about,
        message: `${message}, and the registry asks for one`,
        advice: entryAdvice(input, explanation),
      };
  }
  return undefined;
}

function entryAdvice({ isStatic }: DoctorInput, { repository }: Explanation): string {
  return isStatic
    ? `A static pod cannot list Secrets: put an entry for ${hostOf(repository)} into the pull secret of the cluster, or into the kubelet's config.json on the node`
    : 'Add an entry for its host to a Secret of the pod';
}

/** Where every credential for an image says itself that it will be refused. */
function doubtfulCredential(input: DoctorInput): Fault | undefined {
  const doubtful = explanations(input).find(
    ({ kubelet: { tried } }) => tried.length > 0 && tried.every(({ doubt }) => doubt !== undefined),
  );
  const [worst] = doubtful?.kubelet.tried ?? [];
  if (doubtful !== undefined && worst?.doubt !== undefined)
    return {
      about: worst.source,
      message: `the credential for "${doubtful.image}", entry "${worst.key}" of ${worst.source}, ${worst.doubt}`,
      advice: `Make the entry of ${worst.source} again`,
    };
  return undefined;
}

function mirrorBare(input: DoctorInput): Fault | undefined {
  const [mirror] = input.images.flatMap(({ mirrors }) => mirrors);
  const { matchImages, mayRead, failure } = input.provider;
  if (failure !== undefined) return providerFailed(input, failure);
  if (mirror === undefined) return undefined;
  const host = hostOf(mirror);
  const message = `CRI-O asks mirror "${mirror}" without a credential, although a Secret of the namespace has one: pull secrets of pods never reach mirrors`;
  const fix = fixProvider(input, { matchImages, mayRead });
  return {
    about: host,
    message: mayRead ? message : `${message}; the credential provider may not read it`,
    fix,
    advice: `Or put an entry for "${host}" into kube-system/additional-pull-secret`,
  };
}

/** The node has tried: what it says is the cause, and the registry's refusal is only what follows. */
function providerFailed(input: DoctorInput, failure: string): Fault {
  const { matchImages, mayRead } = input.provider;
  const message = `the credential provider of the node failed for this pod: ${failure}`;
  if (mayRead) return { about: failure, message, advice: 'What to do stands at the end of its message' };
  return { about: failure, message, fix: fixProvider(input, { matchImages, mayRead }) };
}

function trouble(found: DoctorInput['troubles'][number] | undefined): Fault | undefined {
  return found === undefined
    ? undefined
    : { about: found.object, message: `${found.object}: ${found.message}` };
}

/** Of a node that takes part: whether its agent is there, and has brought what is in the Secret now. */
function nodeFault(node: DoctorInput['node']): Fault | undefined {
  if (node === undefined) return undefined;
  const { name, agent, agentSays = '', behind = 'none' } = node;
  const [agentPod = ''] = agentSays.split(' ', 1);
  const daemonSet = `DaemonSet "${GLOBAL_PULL_SECRET.namespace}/${GLOBAL_PULL_SECRET.syncer}"`;
  const says = {
    'no-daemon-set': [
      `node "${name}" has the label, and ${daemonSet} does not exist: nothing brings the pull secret to it`,
      'Apply the manifests of global-pull-secret, or look at the reconciler: pullwright status',
    ],
    absent: [
      `${daemonSet} has no pod on node "${name}": nothing brings the pull secret to it`,
      `Compare the taints of the node with the tolerations of the DaemonSet: ${kubectl(['describe', 'node', name], [name]) ?? 'describe the node'}`,
    ],
    'not-ready': [
      `the agent of node "${name}" is not ready: ${agentSays}`,
      `Read its log: ${kubectl(['logs', '-n', GLOBAL_PULL_SECRET.namespace, agentPod], [agentPod]) ?? 'kubectl logs'}`,
    ],
    ready: undefined,
    unknown: undefined,
  }[agent];
  if (says !== undefined)
    return {
      about: agent === 'no-daemon-set' ? daemonSet : name,
      message: says[0] ?? '',
      advice: says[1] ?? '',
    };
  if (behind === 'none') return undefined;
  return {
    about: name,
    message: `node "${name}" does not have the pull secret that is there (${behind.reason}): ${behind.why}`,
    advice: `If this stays, read the log of its agent, which this finds: kubectl get pods -n ${GLOBAL_PULL_SECRET.namespace} -l name=${GLOBAL_PULL_SECRET.syncer} --field-selector spec.nodeName=${name}`,
  };
}

function refused({ failure, namespace }: DoctorInput): Fault | undefined {
  if (failure === undefined) return undefined;
  const { cause, host, image, places, text, container } = failure;
  const { said, advice } = pullRemedy(failure, { ...failure, namespace });
  const quoted = text === '' ? 'the kubelet says nothing of it' : JSON.stringify(text);
  return {
    about: said,
    message: `the last pull of "${image}" for container "${container}" failed: ${said}${cause === 'unknown' ? `: ${quoted}` : ''}`,
    advice,
    cause,
    ...(host === undefined ? {} : { host }),
    ...(places === undefined
      ? {}
      : { sources: places.map(({ place, ...rest }) => ({ source: place, ...rest })) }),
    ...(text === '' ? {} : { evidence: text }),
  };
}

// The chain from an image's name to a credential that a registry takes, link by link: the first one that is broken is what to
// fix first, because everything behind it depends on it.

/** Judges every link, in the order of {@link LINKS}. Total. */
export function doctorChain(input: DoctorInput): readonly Link[] {
  return LINKS.map((link): Link => {
    const found = FAULT_OF[link](input);
    if (found !== undefined) return { link, state: 'broken', ...found };
    return input.unread.length > 0 && LINKS.indexOf(link) > LINKS.indexOf('places')
      ? { link, state: 'unknown', message: 'not all could be read' }
      : { link, state: 'ok', message: TEXT[link]?.(input) ?? OK[link] };
  });
}

/** Links whose text says what was seen. */
const TEXT: Readonly<Partial<Record<LinkName, (input: DoctorInput) => string | undefined>>> = {
  injection: injectionText,
  'secrets-there': missingText,
  credential: credentialText,
  distribution: notBroughtText,
  node: ({ node }) => (node === undefined ? undefined : nodeText(node)),
  registry: registryText,
};

/** That nothing matches is no fault of a public image, and no credential either. */
function credentialText({ images }: DoctorInput): string | undefined {
  const bare = images.find(({ explanation }) => explanation?.kubelet.anonymous === true);
  return bare === undefined
    ? undefined
    : `no credential that is listed matches "${bare.text}": it is pulled without one, which works where it is public`;
}

/** A template was never pulled itself. */
function registryText({ isPod, pods }: DoctorInput): string | undefined {
  if (isPod) return undefined;
  return pods === 0
    ? 'not judged: no pod of this template was found, so nobody has asked a registry'
    : `no event of its ${pods === 1 ? 'pod' : `${pods} pods`} says that a pull failed`;
}

/** What is known of the node, and what is not. */
function nodeText({ name, agent, behind }: NodeEvidence): string {
  if (agent === 'unknown') return `not judged: nothing here tells of the agent of node "${name}"`;
  const has = `the agent of node "${name}" is ready`;
  return behind === undefined
    ? `${has}; it does not report what the node's file holds (agent.report)`
    : `${has}, and reports the pull secret that is there`;
}

/** What was seen of the list, and not that nothing was missed. */
function injectionText({ images, isPod }: DoctorInput): string {
  const listed = images.flatMap(({ explanation }) => explanation?.secrets ?? []);
  const names = new Set(listed.map(({ name }) => name));
  const who = isPod ? 'the pod' : 'a pod of this template';
  if (names.size === 0) return `${who} lists no Secret, and no profile or SidecarSet gives it one`;
  const injected = new Set(listed.filter(({ listedBy }) => INJECTS.test(listedBy)).map(({ name }) => name));
  const given = injected.size === 0 ? '' : `, ${injected.size} of them by profiles and SidecarSets`;
  return `${who} lists ${counted(names.size, 'Secret')}${given}; nothing that ${names.size === 1 ? 'it gives' : 'they give'} is missing`;
}

/** A Secret that is listed and missing, where the chain holds without it. */
function missingSecret({ images }: DoctorInput): { name: string; listedBy: string } | undefined {
  return images
    .flatMap(({ explanation }) => explanation?.secrets ?? [])
    .find(({ state }) => state === 'missing');
}

function missingText(input: DoctorInput): string | undefined {
  const missing = missingSecret(input);
  if (missing === undefined) return undefined;
  return `Secret "${missing.name}", listed by ${missing.listedBy}, does not exist, and does not stand in the way: the image is tried with other credentials`;
}

function notBroughtText(input: DoctorInput): string | undefined {
  const missing = missingSecret(input);
  const giver = input.givers.find(({ secret }) => secret === missing?.name);
  if (giver === undefined) return undefined;
  const { by, secret, says = 'it is Ready, so the copy is on its way or was refused here' } = giver;
  return `${by} has not brought Secret "${secret}", which does not stand in the way: ${says}`;
}

const INJECTS = /^(PullSecretProfile|SidecarSet)\//;

const OK: Readonly<Record<LinkName, string>> = {
  image: 'every image has a name that can be read',
  places: 'every image has a place to be pulled from',
  'service-account': 'the ServiceAccount is there',
  injection: 'the pod has every Secret that profiles and SidecarSets give it',
  'secrets-there': 'every Secret that is listed exists',
  'secrets-readable': 'every Secret that is listed and there can be read by the kubelet',
  credential: 'nothing stands between the image and its credentials',
  'mirror-credential': 'mirrors get a credential where there is one for them',
  distribution: 'nothing that brings Secrets here reports trouble',
  node: 'the node reports no trouble',
  registry: 'neither the status nor an event says that a pull failed',
};

/** The first broken link. */
export function firstBroken(links: readonly Link[]): Link | undefined {
  return links.find(({ state }) => state === 'broken');
}
