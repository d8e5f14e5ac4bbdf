/** What fixes a link of the chain: the least YAML for a server-side apply, or commands. No value of a Secret is ever among them. */

import { type KubeObject, kubectl } from '../../core/kubernetes/object.ts';
import { may, role, roleBinding, secretsByName } from '../../core/kubernetes/objects.ts';
import { recreation } from '../../core/kubernetes/pod-owner.ts';
import { recordsIn, textOf } from '../../core/record.ts';
import { shellWord } from '../../core/text.ts';
import { podSpecIn } from '../model/pull.ts';
import { isRefusal } from '../model/pull-failure.ts';
import type { DoctorInput, Explanation } from '../model/types.ts';
import type { Told } from './findings.ts';
import { newSecret } from './pull-remedies.ts';

/**
 * Takes `bad` out of the list of Secrets and puts `good` in: in the template when it has a list of its own, which hides that of
 * the ServiceAccount, else in the ServiceAccount.
 */
export function fixAccount(
  input: DoctorInput,
  bad: string | undefined,
  good: string | undefined,
): Pick<Told, 'fix' | 'advice' | 'commands'> {
  const { account, namespace, ownList, isPod, template } = input;
  const listed = input.images[0]?.explanation?.secrets.map(({ name }) => name) ?? [];
  const names = [
    ...listed.filter((name) => name !== bad && name !== good),
    ...(good === undefined ? [] : [good]),
  ];
  const imagePullSecrets = names.map((name) => ({ name }));
  if (ownList && isFinal(template))
    return {
      advice: `Write imagePullSecrets: ${JSON.stringify(imagePullSecrets)} into the ${originOf(template)}, and ${recreation(template)}`,
    };
  const { apiVersion, kind, metadata } = template;
  const advice = `Pod "${metadata.name}" keeps its list; then ${recreation(template)}`;
  const again = isPod && { advice };
  const serviceAccount = { kind: 'ServiceAccount', metadata: { name: account.name } };
  const own = ownList ? podSpecIn(template)['imagePullSecrets'] : account.object?.['imagePullSecrets'];
  // Another field manager can add to the list of a template, but not take a name out; the list of a ServiceAccount it replaces.
  if (ownList ? good === undefined : !isEmptyList(account))
    return { ...again, ...patchedList(ownList ? template : serviceAccount, namespace, own, bad, good) };
  const fix = ownList
    ? {
        apiVersion,
        kind,
        metadata: { name: metadata.name, namespace },
        spec: inTemplate(kind, { imagePullSecrets }),
      }
    : accountWith(input, names);
  return { ...again, fix: [fix] };
}

/** Whether the ServiceAccount is known to list no Secret: then there is none that a list would replace. */
const isEmptyList = ({ object, known }: DoctorInput['account']): boolean =>
  object === undefined ? known : recordsIn(object['imagePullSecrets']).length === 0;

/** The list of a pod, and of the template of a Job, cannot be changed. */
const isFinal = ({ kind }: KubeObject): boolean => ['Pod', 'Job'].includes(kind);

function originOf({ kind, metadata: { ownerReferences = [] } }: KubeObject): string {
  return ownerReferences.length > 0 ? 'template that the pod is made from' : `manifest of the ${kind}`;
}

const LIST_IN: Readonly<Record<string, string>> = {
  ServiceAccount: '',
  CronJob: '/spec/jobTemplate/spec/template/spec',
};

function patchedList(
  { kind, metadata: { name } }: Pick<KubeObject, 'kind' | 'metadata'>,
  namespace: string,
  list: unknown,
  bad: string | undefined,
  good: string | undefined,
): Pick<Told, 'commands'> {
  const own = recordsIn(list).map(({ name: one }) => textOf(one));
  const path = `${LIST_IN[kind] ?? '/spec/template/spec'}/imagePullSecrets`;
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
  const command = kubectl(['patch', kind.toLowerCase(), name, '-n', namespace], [name, namespace]);
  if (patch.length === 0 || command === undefined) return {};
  const run = (patches: readonly object[]): string =>
    `${command} --type=json -p ${shellWord(JSON.stringify(patches))}`;
  const made = [
    { op: 'test', path, value: null },
    { op: 'add', path, value: [{ name: good }] },
  ];
  // Of a list that was not read: it is added to, or made where there is none. What is missing equals null in a test.
  return { commands: [list === undefined ? `${run(patch)} || ${run(made)}` : run(patch)] };
}

/**
 * A pod without a credential that Secrets of its namespace hold. There is a reason that they are not injected, which a manual list
 * would hide.
 *
 * @param lack what is about what, and what is missing
 */
export function useOther(
  input: DoctorInput,
  elsewhere: readonly string[],
  lack: Required<Pick<Told, 'about' | 'message'>>,
): Told | undefined {
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
export function fixProvider({
  namespace,
  images,
  account,
  provider: { matchImages, mayRead },
}: DoctorInput): Pick<Told, 'fix' | 'commands'> {
  const hosts = images.flatMap(({ explanation, mirrors }) =>
    explanation === undefined || mirrors.length === 0 ? [] : (explanation.repository.split('/', 1)[0] ?? []),
  );
  const wanted = [...new Set([...matchImages, ...hosts])];
  const names = images.flatMap(({ elsewhere, explanation, mirrorSecrets = [] }) => [
    ...elsewhere,
    ...mirrorSecrets,
    ...(explanation?.secrets ?? []).flatMap(({ name, state }) => (state === 'found' ? [name] : [])),
  ]);
  const secrets = [...new Set(names)];
  const config: KubeObject = {
    apiVersion: 'config.openshift.io/v1',
    kind: 'CRIOCredentialProviderConfig',
    metadata: { name: 'cluster' },
    spec: { matchImages: wanted },
  };
  const fix = [
    ...(wanted.length > matchImages.length && mayRead ? [config] : []),
    ...(mayRead ? [] : providerAccess(namespace, account.name, secrets)),
  ];
  // By name it reads only what pod and account list.
  if (mayRead || secrets.length === 0 || images.some(({ explanation }) => explanation?.secrets.length !== 0))
    return { fix };
  if (isEmptyList(account)) return { fix: [...fix, accountWith({ namespace, account }, secrets)] };
  const serviceAccount = { kind: 'ServiceAccount', metadata: { name: account.name } };
  const own = account.object?.['imagePullSecrets'];
  return {
    fix,
    commands: secrets.flatMap(
      (good) => patchedList(serviceAccount, namespace, own, undefined, good).commands ?? [],
    ),
  };
}

function accountWith(
  { namespace, account: { name } }: Pick<DoctorInput, 'namespace' | 'account'>,
  secrets: readonly string[],
): KubeObject {
  const imagePullSecrets = secrets.map((one) => ({ name: one }));
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace }, imagePullSecrets };
}

/** What the provider requests with the token of the pod's ServiceAccount. */
function providerAccess(
  namespace: string,
  account: string,
  secrets: readonly string[],
): readonly KubeObject[] {
  // A rule without names would be one for every Secret.
  if (secrets.length === 0) return [];
  // Of its own: the Role of that name may be another's, with more rights.
  const name = `credential-provider-secret-access-${account}`.slice(0, 253);
  // So that the way out finds what was applied of these.
  const metadata = { name, namespace, labels: { 'app.kubernetes.io/part-of': 'pullwright' } };
  return [
    role(metadata, [secretsByName(secrets, ['get']), may(['get'], '', ['serviceaccounts'], [account])]),
    roleBinding(metadata, [{ name: account, namespace }]),
  ];
}

/** The registry of a reference. */
export function hostOf(reference: string): string {
  return reference.split('/', 1)[0] ?? reference;
}

export function explanations({ images }: Pick<DoctorInput, 'images'>): readonly Explanation[] {
  return images.flatMap(({ explanation }) => explanation ?? []);
}

/** The only Secret of a pod whose only registry requires a credential: without it there would be none. */
export function madeAgain(input: DoctorInput, name: string): Pick<Told, 'advice' | 'commands'> | undefined {
  const { failure, givers, images, namespace } = input;
  const needs = isRefusal(failure?.cause) || failure?.cause === 'secret-malformed';
  const pulls = explanations(input);
  const [host, ...others] = new Set(pulls.map(({ repository }) => hostOf(repository)));
  const isOnly = others.length === 0 && pulls.every(({ secrets }) => secrets.length === 1);
  const isBrought = givers.some(({ secret }) => secret === name);
  const isElsewhere = images.some(({ elsewhere }) => elsewhere.length > 0);
  if (host === undefined || !isOnly || isBrought || isElsewhere || !needs) return undefined;
  const made = newSecret(host, namespace, name);
  return (
    made && {
      advice: `Make the Secret again; entries that it may have for registries other than ${host} are lost`,
      commands: [`${made.command} --dry-run=client -o yaml | kubectl replace --force -f -`],
    }
  );
}

/** Recreates a Secret, with the type that its key requires. */
export function retyped(namespace: string, name: string): Pick<Told, 'commands'> {
  const get = kubectl(['get', 'secret', name, '-n', namespace, '-o', 'yaml'], [namespace, name]);
  if (get === undefined) return {};
  const type = `s#^type: .*#type: kubernetes.io/dockerconfigjson#`;
  return { commands: [`${get} | sed ${shellWord(type)} | kubectl replace --force -f -`] };
}

/** A Secret for `host`, and the list that names it. */
export function giveEntry(input: DoctorInput, host: string): Pick<Told, 'advice' | 'commands'> {
  if (input.isStatic)
    return {
      advice: `A static pod cannot list Secrets: put an entry for ${host} into the pull secret of the cluster, or into the kubelet's config.json on the node`,
    };
  const created = newSecret(host, input.namespace);
  const { fix = [], commands = [], advice } = fixAccount(input, undefined, created?.name ?? `for-${host}`);
  const lists = fix.map((object) => {
    const { apiVersion: _version, kind, metadata, ...patch } = object;
    const { name, namespace = '' } = metadata;
    const words = ['patch', kind.toLowerCase(), name, '-n', namespace, '-p', JSON.stringify(patch)];
    return kubectl(words, [name, namespace]) ?? [];
  });
  const first = `Create a Secret for ${host}, and list it in imagePullSecrets`;
  return {
    advice: advice === undefined ? first : `${first}. ${advice}`,
    commands: created === undefined ? [] : [created.command, ...lists.flat(), ...commands],
  };
}
