/** What to do first about a failing pull, by its cause. */
import { isObjectName } from '../../core/kubernetes/object.ts';
import { shellWord } from '../../core/text.ts';
import type { PullCause, PullFailure } from '../model/pull-failure.ts';
import type { EntryPlace } from '../model/types.ts';

/** The values stand in the environment, and in no list of commands. */
const CREATE_SECRET =
  'kubectl create secret docker-registry {secret} -n {namespace} --docker-server={server} --docker-username="$USERNAME" --docker-password="$PASSWORD"';

/** What a cause means, what to do first, and a command for it; `{host}` and the like are filled in. */
const REMEDIES: Readonly<Record<PullCause, readonly [said: string, advice: string, command?: string]>> = {
  'no-credential': [
    '{host} requires a credential and got none',
    'Put an entry for {host} into a Secret that the pod lists',
  ],
  'auth-required': [
    '{host} requires a credential and accepted none',
    'Check the entry for {host}: pullwright verify for the image says which credential is refused, and why',
  ],
  'credential-rejected': ['{host} refused the credential', 'Renew {entry}'],
  'credential-expired': [
    'the credential for {host} has expired',
    'Renew {entry}; a credential provider on the node does that by itself',
  ],
  'permission-denied': [
    '{host} knows the credential, which may not pull this image',
    'Grant it the right to pull at {host}; or the tag does not exist',
  ],
  'denied-or-missing': [
    '{host} refused, or the image does not exist',
    'Check the name of the image, then the entry for {host}: pullwright verify for the image asks both',
  ],
  'not-found': ['{host} does not have the image', 'Correct its tag, or copy it to {host}'],
  'blob-missing': ['{host} has the manifest, and lacks a layer of it', 'Push or mirror the image again'],
  'platform-mismatch': [
    'the image does not exist for the platform of the node',
    'Build it for the architecture of the node',
    "kubectl get node {node} -o jsonpath='{.status.nodeInfo.operatingSystem}/{.status.nodeInfo.architecture}'",
  ],
  'format-unsupported': [
    'the runtime of the node does not take the format of the image',
    'Build it again in the OCI format',
  ],
  'digest-mismatch': [
    'what {host} sent has another digest than the manifest says',
    'Push the image again; a proxy or a cache on the way may change it',
  ],
  'disk-full': ['the disk of the node is full', 'Free it', 'kubectl describe node {node}'],
  'node-storage': [
    "the storage of the node's runtime fails",
    'Repair the node',
    'kubectl describe node {node}',
  ],
  'rate-limited': [
    '{host} answers that it was called too often',
    'Pull with a credential, or through a mirror',
  ],
  'kubelet-throttled': [
    'the kubelet starts no more pulls for now',
    'Wait, or raise registryPullQPS in the configuration of the kubelet',
  ],
  dns: ['the node cannot resolve the name {host}', 'Check {host} at the DNS server of the node'],
  timeout: ['{host} did not answer in time', 'Check the firewall and the proxy between the node and {host}'],
  unreachable: [
    'the node cannot connect to {host}',
    'Check name and port of {host}, and the routes of the node',
  ],
  'connection-broken': [
    'the connection to {host} broke',
    'Check what stands between the node and {host}: a firewall, a proxy, the store of its layers',
  ],
  proxy: [
    'the proxy of the node failed or refused for {host}',
    "Check the runtime's proxy settings: HTTPS_PROXY and NO_PROXY",
  ],
  'tls-untrusted': [
    'the node does not trust the certificate of {host}',
    'Add the CA of {host} to the nodes (additionalTrustedCA of image.config.openshift.io/cluster, or the system store); a proxy that inspects TLS has its own',
  ],
  'tls-name': [
    'the certificate of {host} is for another name',
    'Give {host} a certificate that has its name as a SAN',
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
    '{host} speaks HTTP, and the node HTTPS',
    'Switch TLS on at {host}, or list it as insecure (insecureRegistries of image.config.openshift.io/cluster, hosts.toml)',
  ],
  'registry-error': ['{host} has an error of its own', 'Ask who runs {host}'],
  'unexpected-answer': [
    '{host} does not answer as a registry does',
    'See what answers at {host}: a proxy, a login page, another service',
  ],
  'policy-blocked': [
    'the policy of the node blocks the image',
    'Allow its registry in image.config.openshift.io/cluster, or its source in the mirror set',
    'kubectl get images.config.openshift.io cluster -o yaml',
  ],
  'signature-rejected': [
    'the signature policy of the node refuses the image',
    'Sign the image, or change the policy',
    'kubectl get clusterimagepolicies,imagepolicies -A',
  ],
  'short-name': [
    'the node does not know which registry a short name means',
    'Write the full name, such as docker.io/library/{short} if that is meant',
  ],
  'image-name': ['the image has no name that can be read', 'Correct it in the template'],
  'never-pull': [
    'the image is not on the node, and imagePullPolicy is Never',
    'Set imagePullPolicy to IfNotPresent, or bring the image to the node before',
  ],
  'secret-missing': [
    '{host} refuses, and a Secret that the pod lists could not be read: {missing}',
    'Create the Secret; if it is there now, delete the pod',
    CREATE_SECRET,
  ],
  'secret-malformed': [
    'the kubelet cannot read a pull secret of the pod',
    'Make the Secret again; pullwright validate names the fault',
  ],
  'runtime-unavailable': [
    'the container runtime of the node does not answer',
    'Restart it (crio or containerd)',
    'kubectl describe node {node}',
  ],
  cancelled: [
    'the pull was cancelled',
    'Wait for the next try; if it stays, raise the progress timeout of the runtime',
  ],
  unknown: [
    'the cause is not known',
    'Read the events of the pod',
    'kubectl describe pod {pod} -n {namespace}',
  ],
};

/** What to do instead where the kubelet offers a credential. */
const WITH_CREDENTIAL: Partial<Readonly<Record<PullCause, string>>> = {
  'rate-limited': 'Use an account with a higher limit, or a mirror',
  'no-credential': 'The kubelet offers {entry} now: wait for its next try, or create the pod again',
};

/** What a remedy is about, beside the failure. */
export interface RemedyAbout {
  readonly namespace: string;
  readonly pod?: string | undefined;
  readonly node?: string | undefined;
  /** What the kubelet offers for the image. */
  readonly sent?: readonly EntryPlace[];
}

/** The key under which a Secret for `host` is looked up by every client. */
function serverOf(host: string | undefined): string | undefined {
  return host === 'docker.io' ? 'https://index.docker.io/v1/' : host;
}

/** A Secret for `host` to create in `namespace`; undefined where no name can be made of it. */
export function newSecret(
  host: string,
  namespace: string,
  name = `pull-${host.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`,
): { readonly name: string; readonly command: string } | undefined {
  if (!isObjectName(name) || !isObjectName(namespace)) return undefined;
  const known: Readonly<Record<string, string>> = { secret: name, namespace, server: serverOf(host) ?? '' };
  const command = CREATE_SECRET.replace(/\{(\w+)\}/g, (_whole, word: string) => shellWord(known[word] ?? ''));
  return { name, command };
}

/** What a failure means and what to do, with names filled in; a command only where all its names are known. Total. */
export function pullRemedy(
  failure: PullFailure,
  { namespace, pod, node, sent = [] }: RemedyAbout,
): { readonly said: string; readonly advice: string } {
  const { cause, host, image, missing = [] } = failure;
  const [said, general, command] = REMEDIES[cause];
  const advice = (sent.length === 0 ? undefined : WITH_CREDENTIAL[cause]) ?? general;
  const [first, ...others] = sent;
  const more = others.length === 0 ? '' : `, or one of the ${others.length} others that the kubelet offers`;
  const known: Readonly<Record<string, string | undefined>> = {
    host,
    node,
    pod,
    namespace,
    entry: first === undefined ? `the entry for ${host}` : `entry "${first.key}" of ${first.source}${more}`,
    server: serverOf(host),
    secret: missing[0],
    missing: missing.join(', '),
    short: image,
  };
  const filled = (text: string): string =>
    text.replace(/\{(\w+)\}/g, (_whole, name: string) => known[name] ?? 'the registry');
  const isComplete = [...(command ?? '').matchAll(/\{(\w+)\}/g)].every(([, name = '']) =>
    name === 'server' ? known[name] !== undefined : isObjectName(known[name]),
  );
  const quoted = (text: string): string =>
    text.replace(/\{(\w+)\}/g, (_whole, name: string) => shellWord(known[name] ?? ''));
  const run = command === undefined || !isComplete ? '' : `: ${quoted(command)}`;
  return { said: filled(said), advice: `${filled(advice)}${run}` };
}
