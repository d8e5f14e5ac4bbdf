/**
 * Fixes for broken links of the chain: minimal YAML for a server-side apply, or commands. Also the first remedy for a failing
 * pull, by cause. They never contain a value of a Secret.
 */

import { isShortName } from '../../core/image-reference.ts';
import { isObjectName, type KubeObject, kubectl } from '../../core/kubernetes/object.ts';
import { grant, may, secretsByName } from '../../core/kubernetes/objects.ts';
import { recreation } from '../../core/kubernetes/pod-owner.ts';
import { recordsIn, textOf } from '../../core/record.ts';
import { shellWord } from '../../core/text.ts';
import type { PodFailure } from '../model/events.ts';
import type { DoctorImage, DoctorInput } from '../model/look.ts';
import { podSpecIn } from '../model/pull.ts';
import { isRefusal, type PullCause } from '../model/pull-failure.ts';
import type { EntryPlace, Explanation, ListedSecret } from '../model/types.ts';
import type { Told } from './findings.ts';

/** The shell expands the credential from the environment: the printed command never contains it. */
const CREATE_SECRET =
  'kubectl create secret docker-registry {secret} -n {namespace} --docker-server={server} --docker-username="$USERNAME" --docker-password="$PASSWORD"';

/** Meaning of each cause, first remedy, and a command for it; placeholders such as `{host}` are filled in. */
const REMEDIES: Readonly<Record<PullCause, readonly [said: string, advice: string, command?: string]>> = {
  'no-credential': [
    '{host} requires a credential and got none',
    'Put an entry for {host} into a Secret that the pod lists',
  ],
  'auth-required': [
    '{host} requires a credential and accepted none',
    'Check the entry for {host}: pullwright verify with the image shows which credential is rejected, and why',
  ],
  'credential-rejected': ['{host} rejected the credential', 'Renew {entry}'],
  'credential-expired': [
    'the credential for {host} has expired',
    'Renew {entry}; a credential provider on the node renews it automatically',
  ],
  'permission-denied': [
    '{host} accepts the credential, but it may not pull this image',
    'Grant it pull access at {host}, or check that the tag exists',
  ],
  'denied-or-missing': [
    '{host} denied access, or the image does not exist',
    'Check the name of the image, then the entry for {host}: pullwright verify with the image checks both',
  ],
  'not-found': ['{host} does not have the image', 'Correct its tag, or copy it to {host}'],
  'blob-missing': ['{host} has the manifest, but not all of its layers', 'Push or mirror the image again'],
  'platform-mismatch': [
    'the image is not built for the platform of the node',
    'Build it for the architecture of the node',
    "kubectl get node {node} -o jsonpath='{.status.nodeInfo.operatingSystem}/{.status.nodeInfo.architecture}'",
  ],
  'format-unsupported': [
    'the runtime of the node does not support the format of the image',
    'Rebuild it in the OCI format',
  ],
  'digest-mismatch': [
    'content from {host} does not match the digest in the manifest',
    'Push the image again; a proxy or a cache in between may alter it',
  ],
  'disk-full': ['the disk of the node is full', 'Free disk space', 'kubectl describe node {node}'],
  'node-storage': [
    "the storage of the node's runtime fails",
    'Repair the node',
    'kubectl describe node {node}',
  ],
  'rate-limited': ['{host} limits the rate of pulls', 'Pull with a credential, or through a mirror'],
  'kubelet-throttled': [
    'the kubelet limits the rate of its pulls',
    'Wait, or raise registryPullQPS in the configuration of the kubelet',
  ],
  dns: ['the node cannot resolve the name {host}', 'Check that the DNS server of the node resolves {host}'],
  timeout: ['{host} did not respond in time', 'Check the firewall and the proxy between the node and {host}'],
  unreachable: [
    'the node cannot connect to {host}',
    'Check the name and port of {host}, and the routes of the node',
  ],
  'connection-broken': [
    'the connection to {host} broke',
    'Check what is between the node and {host}: a firewall, a proxy, the storage of its layers',
  ],
  proxy: [
    'the proxy of the node failed for {host} or denied it',
    "Check the runtime's proxy settings: HTTPS_PROXY and NO_PROXY",
  ],
  'tls-untrusted': [
    'the node does not trust the certificate of {host}',
    'Add the CA of {host} to the nodes (additionalTrustedCA of image.config.openshift.io/cluster, or the system store); a proxy that inspects TLS uses a CA of its own',
  ],
  'tls-name': [
    'the certificate of {host} is not valid for this name',
    'Install a certificate on {host} that lists its name as a SAN',
  ],
  'tls-expired': [
    'the certificate of {host} is not valid now',
    'Renew the certificate of {host}, or set the clock of the node',
  ],
  'tls-other': [
    'TLS with {host} fails',
    'Check the client certificate and the TLS versions that {host} allows',
  ],
  'plain-http': [
    '{host} serves HTTP, but the node uses HTTPS',
    'Enable TLS on {host}, or list it as insecure (insecureRegistries of image.config.openshift.io/cluster, hosts.toml)',
  ],
  'registry-error': ['{host} reports an internal error', 'Contact the operator of {host}'],
  'unexpected-answer': [
    '{host} does not respond like a registry',
    'Check what responds at {host}: a proxy, a login page, another service',
  ],
  'policy-blocked': [
    'the policy of the node blocks the image',
    'Allow its registry in image.config.openshift.io/cluster, or its source in the mirror set',
    'kubectl get images.config.openshift.io cluster -o yaml',
  ],
  'signature-rejected': [
    'the signature policy of the node rejects the image',
    'Sign the image, or change the policy',
    'kubectl get clusterimagepolicies,imagepolicies -A',
  ],
  'short-name': [
    'the node cannot resolve the short name to a registry',
    'Write the full name, such as docker.io/{short}',
  ],
  'image-name': ['the image name is invalid', 'Correct it in the template'],
  'never-pull': [
    'imagePullPolicy is Never, and the image is not on the node, or was pulled with a credential that the pod lacks',
    'Set imagePullPolicy to IfNotPresent, or load the image onto the node first',
  ],
  'secret-missing': [
    '{host} denied access, and the kubelet could not read a Secret that the pod lists: {missing}',
    'Create the Secret; if it exists now, delete the pod',
    CREATE_SECRET,
  ],
  'secret-malformed': [
    'the kubelet cannot read a pull secret of the pod',
    'Recreate the Secret; pullwright validate names the fault',
  ],
  'runtime-unavailable': [
    'the container runtime of the node does not respond',
    'Restart it (crio or containerd)',
    'kubectl describe node {node}',
  ],
  cancelled: [
    'the pull was cancelled',
    'Wait for the next attempt; if it persists, raise the progress timeout of the runtime',
  ],
  unknown: [
    'the cause is unknown',
    'Read the events of the pod',
    'kubectl describe pod {pod} -n {namespace}',
  ],
};

/** Advice that replaces the general one if the kubelet has a matching credential. */
const WITH_CREDENTIAL: Partial<Readonly<Record<PullCause, string>>> = {
  'rate-limited': 'Use an account with a higher limit, or a mirror',
  'no-credential': 'The kubelet offers {entry} now: wait for its next attempt, or recreate the pod',
};

/** The key under which every client looks up a credential for `host`. */
function serverOf(host: string | undefined): string | undefined {
  return host === 'docker.io' ? 'https://index.docker.io/v1/' : host;
}

type Known = Readonly<Record<string, string | undefined>>;

const NAMED = /\{(\w+)\}/g;

/** Fills in a command; undefined if a name is unknown or is not a valid object name. */
function commandOf(template: string, known: Known): string | undefined {
  const isComplete = [...template.matchAll(NAMED)].every(([, name = '']) =>
    name === 'server' ? known[name] !== undefined : isObjectName(known[name]),
  );
  if (!isComplete) return undefined;
  return template.replace(NAMED, (_whole, name: string) => shellWord(known[name] ?? ''));
}

/** Command that creates a Secret for `host`; undefined if a name is invalid. */
function creation(host: string, namespace: string, secret: string): string | undefined {
  return commandOf(CREATE_SECRET, { secret, namespace, server: serverOf(host) });
}

/**
 * Meaning of a failure and the remedy, with names filled in. A command is added only if all its names are known. Never throws.
 *
 * @param sent entries that the kubelet offers for the image
 */
export function pullRemedy(failure: PodFailure, namespace: string, sent: readonly EntryPlace[]) {
  const { cause, host, image, missing = [], node, places, pod } = failure;
  const [said, general, command] = REMEDIES[cause];
  // CRI-O searched this registry for the short name, which may be that of an image in another one.
  const isSearched =
    cause === 'not-found' && isShortName(image) && host !== 'docker.io' && (places ?? []).length < 2;
  const own = isSearched ? REMEDIES['short-name'][1] : general;
  const advice = (sent.length === 0 ? undefined : WITH_CREDENTIAL[cause]) ?? own;
  const [first, ...others] = sent;
  const more = others.length === 0 ? '' : `, or one of the ${others.length} others that the kubelet offers`;
  const known: Known = {
    host,
    node,
    pod,
    namespace,
    entry: first === undefined ? `the entry for ${host}` : `entry "${first.key}" of ${first.source}${more}`,
    server: serverOf(host),
    secret: missing[0],
    missing: missing.join(', '),
    short: image.includes('/') ? image : `library/${image}`,
  };
  const filled = (text: string): string =>
    text.replace(NAMED, (_whole, name: string) => known[name] ?? 'the registry');
  const run = command === undefined ? undefined : commandOf(command, known);
  return { said: filled(said), advice: `${filled(advice)}${run === undefined ? '' : `: ${run}`}` };
}

/**
 * Replaces `bad` by `good` in imagePullSecrets: of the template if it has a list, which overrides that of the ServiceAccount,
 * otherwise of the ServiceAccount.
 */
export function fixAccount(
  input: Pick<DoctorInput, 'account' | 'namespace' | 'ownList' | 'isPod' | 'template' | 'images'>,
  bad: string | undefined,
  good: readonly string[],
): Pick<Told, 'fix' | 'advice' | 'commands'> {
  const { account, namespace, ownList, isPod, template } = input;
  const listed = input.images[0]?.explanation?.secrets.map(({ name }) => name) ?? [];
  const names = [...listed.filter((name) => name !== bad && !good.includes(name)), ...good];
  const imagePullSecrets = names.map((name) => ({ name }));
  // imagePullSecrets of a Pod, and of the template of a Job, are immutable.
  if (ownList && ['Pod', 'Job'].includes(template.kind))
    return {
      advice: `Write imagePullSecrets: ${JSON.stringify(imagePullSecrets)} into the ${originOf(template)}, then ${recreation(template)}`,
    };
  const again = isPod && {
    advice: `Pod "${template.metadata.name}" keeps its list: apply this, then ${recreation(template)}`,
  };
  const { apiVersion, kind, metadata } = ownList
    ? template
    : { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account.name } };
  const { name } = metadata;
  const path = LIST_IN[kind] ?? ['spec', 'template', 'spec'];
  const own = (ownList ? podSpecIn(template) : account.object)?.['imagePullSecrets'];
  // Applying a list to a ServiceAccount that is known to list no Secret replaces nothing.
  const isEmpty = account.object === undefined ? account.known : recordsIn(own).length === 0;
  // Server-side apply merges a template's list but cannot remove other managers' names. A ServiceAccount's list is replaced.
  if (ownList ? good.length > 0 : isEmpty) {
    const spec = path.reduceRight<object>((inner, key) => ({ [key]: inner }), { imagePullSecrets });
    return { ...again, fix: [{ apiVersion, kind, metadata: { name, namespace }, ...spec }] };
  }
  const commands = listPatches(['', ...path, 'imagePullSecrets'].join('/'), own, bad, good).flatMap(
    (patch) => {
      const words = ['patch', kind.toLowerCase(), name, '-n', namespace, '--type=json'];
      return kubectl([...words, '-p', JSON.stringify(patch)], [name, namespace]) ?? [];
    },
  );
  return { ...again, ...(commands.length > 0 && { commands: [commands.join(' || ')] }) };
}

/** JSON patches of a list; each is the fallback if the one before fails. */
function listPatches(
  path: string,
  list: unknown,
  bad: string | undefined,
  good: readonly string[],
): readonly (readonly object[])[] {
  const own = recordsIn(list).map(({ name }) => textOf(name));
  // A list may repeat a name. Remove from the end, so that the other indexes stay valid.
  const at = own.flatMap((name, index) => (name === bad ? [`${path}/${index}`] : [])).toReversed();
  const added = good.filter((name) => !own.includes(name)).map((name) => ({ name }));
  const patch = [
    ...at.map((place) => ({ op: 'test', path: `${place}/name`, value: bad })),
    ...at.map((place) => ({ op: 'remove', path: place })),
    ...added.map((value) => ({ op: 'add', path: `${path}/-`, value })),
  ];
  if (patch.length === 0) return [];
  const made = [
    { op: 'test', path, value: null },
    { op: 'add', path, value: added },
  ];
  // The list is unknown: append, or create a missing list. A JSON patch `test` treats a missing value as null.
  return list === undefined ? [patch, made] : [patch];
}

function originOf({ kind, metadata: { ownerReferences = [] } }: KubeObject): string {
  return ownerReferences.length > 0 ? 'template of the pod' : `manifest of the ${kind}`;
}

const LIST_IN: Readonly<Record<string, readonly string[]>> = {
  ServiceAccount: [],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template', 'spec'],
};

/** Adds the images' hosts to the credential provider's matchImages if the provider may read the Secrets, else grants access. */
export function fixProvider(input: DoctorInput): Pick<Told, 'fix' | 'commands'> {
  const { namespace, images, account, provider } = input;
  const { matchImages, mayRead } = provider;
  const hosts = images.flatMap(({ explanation, mirrors }) =>
    explanation === undefined || mirrors.length === 0 ? [] : hostOf(explanation.repository),
  );
  const wanted = [...new Set([...matchImages, ...hosts])];
  const config: KubeObject = {
    apiVersion: 'config.openshift.io/v1',
    kind: 'CRIOCredentialProviderConfig',
    metadata: { name: 'cluster' },
    spec: { matchImages: wanted },
  };
  if (mayRead) return { fix: wanted.length > matchImages.length ? [config] : [] };
  const names = images.flatMap(({ elsewhere, explanation, mirrorSecrets }) => [
    ...elsewhere,
    ...mirrorSecrets,
    ...(explanation?.secrets ?? []).flatMap(({ name, state }) => (state === 'found' ? [name] : [])),
  ]);
  const secrets = [...new Set(names)];
  // An RBAC rule without resourceNames would grant access to every Secret.
  if (secrets.length === 0) return { fix: [] };
  const access = providerAccess(namespace, account.name, secrets);
  // The provider reads only Secrets that the pod or its ServiceAccount lists.
  if (images.some(({ explanation }) => explanation?.secrets.length !== 0)) return { fix: access };
  const { fix = [], commands = [] } = fixAccount({ ...input, ownList: false }, undefined, secrets);
  return { fix: [...access, ...fix], commands };
}

/** Role and RoleBinding for the provider's requests, which use the token of the pod's ServiceAccount. */
function providerAccess(namespace: string, account: string, secrets: readonly string[]) {
  // One Role per ServiceAccount: a Role with a shared name may have another owner and grant more.
  const name = `credential-provider-secret-access-${account}`.slice(0, 253);
  // Uninstall finds applied objects by this label.
  const metadata = { name, namespace, labels: { 'app.kubernetes.io/part-of': 'pullwright' } };
  const rules = [secretsByName(secrets, ['get']), may(['get'], '', ['serviceaccounts'], [account])];
  return grant(metadata, rules, { name: account, namespace });
}

/** The registry host of a reference. */
export function hostOf(reference: string): string {
  return reference.split('/', 1)[0] ?? reference;
}

export function explanations(images: readonly DoctorImage[]): readonly Explanation[] {
  return images.flatMap(({ explanation }) => explanation ?? []);
}

/** Recreates the pod's only Secret for its only registry; undefined if another Secret, a profile or a registry is involved. */
export function madeAgain(input: DoctorInput, name: string): Pick<Told, 'advice' | 'commands'> | undefined {
  const { givers, images, namespace } = input;
  const cause = input.failures[0]?.cause;
  const needs = isRefusal(cause) || cause === 'secret-malformed';
  const pulls = explanations(images);
  const [host, ...others] = new Set(pulls.map(({ repository }) => hostOf(repository)));
  const isOnly = others.length === 0 && pulls.every(({ secrets }) => secrets.length === 1);
  const isBrought = givers.some(({ secret }) => secret === name);
  const isElsewhere = images.some(({ elsewhere }) => elsewhere.length > 0);
  if (host === undefined || !isOnly || isBrought || isElsewhere || !needs) return undefined;
  const made = creation(host, namespace, name);
  if (made === undefined) return undefined;
  return {
    advice: `Recreate the Secret; this removes its entries for registries other than ${host}`,
    commands: [`${made} --dry-run=client -o yaml | kubectl replace --force -f -`],
  };
}

/** Recreates a Secret with the type and key of a pull secret; no command if it holds no docker config. */
export function retyped(namespace: string, { name, retype }: ListedSecret): Pick<Told, 'commands'> {
  const get = kubectl(['get', 'secret', name, '-n', namespace, '-o', 'yaml'], [namespace, name]);
  if (get === undefined || retype === undefined || !/^[-._\w]+$/.test(retype.from)) return {};
  const { from, type, key } = retype;
  const edit = [`s#^type: .*#type: ${type}#`, ...(from === key ? [] : [`s#^  ${from}:#  ${key}:#`])];
  return { commands: [`${get} | sed ${shellWord(edit.join(';'))} | kubectl replace --force -f -`] };
}

/** Commands that create a Secret for `host` and list it in imagePullSecrets. */
export function giveEntry(input: DoctorInput, host: string): Pick<Told, 'advice' | 'commands'> {
  if (input.isStatic)
    return {
      advice: `A static pod cannot list Secrets: put an entry for ${host} into the pull secret of the cluster, or into the kubelet's config.json on the node`,
    };
  const { account, namespace, ownList } = input;
  const isGone = account.object === undefined && account.known && !ownList;
  const made = isGone && kubectl(['create', 'serviceaccount', account.name, '-n', namespace], [account.name]);
  const secret = `pull-${host.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`;
  const created = creation(host, namespace, secret);
  const { fix = [], commands = [], advice } = fixAccount(input, undefined, [secret]);
  const lists = fix.flatMap(({ apiVersion: _version, kind, metadata, ...patch }) => {
    const words = ['patch', kind.toLowerCase(), metadata.name, '-n', namespace, '-p', JSON.stringify(patch)];
    return kubectl(words, [metadata.name, namespace]) ?? [];
  });
  const first = `Create a Secret for ${host}, and list it in imagePullSecrets`;
  return {
    advice: advice === undefined ? first : `${first}. ${advice}`,
    commands: created === undefined ? [] : [created, ...(made ? [made] : []), ...lists, ...commands],
  };
}
