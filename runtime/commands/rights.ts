/** `pullwright rights`: what each account can reach, by which rule, and which policy binds it. */

import { readFile } from 'node:fs/promises';
import { readFolder } from '../controller/folder.ts';
import { toYaml } from '../kube/yaml.ts';
import { UsageError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { grantsOf } from '../rules/rights/grants.ts';
import type { Right } from '../rules/rights/right.ts';
import { rightsOf } from '../rules/rights/rights.ts';
import { grownRights } from '../rules/rights/rights-growth.ts';
import { rightsMarkdown, rightsText } from '../rules/rights/rights-text.ts';
import { countedOf } from '../rules/text/counted.ts';
import { jsonText } from '../rules/text/json-text.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { type CommandTable, defineCommand } from './define.ts';
import { CLUSTER_FLAGS, outputFlag } from './flags/common.ts';
import { type Flags, file, folder, several, text, toggle } from './flags/flag.ts';
import type { Given } from './flags/parse.ts';
import { readObjects, type SourceKind, type SourceObjects } from './object-source.ts';
import { writeProblems } from './problems.ts';
import { columnsOf } from './terminal.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
const ADMISSION = 'admissionregistration.k8s.io/v1';
const KINDS: readonly SourceKind[] = [
  { apiVersion: 'v1', kind: 'ServiceAccount' },
  { apiVersion: RBAC, kind: 'Role' },
  { apiVersion: RBAC, kind: 'ClusterRole' },
  { apiVersion: RBAC, kind: 'RoleBinding' },
  { apiVersion: RBAC, kind: 'ClusterRoleBinding' },
  { apiVersion: ADMISSION, kind: 'ValidatingAdmissionPolicy' },
  { apiVersion: ADMISSION, kind: 'ValidatingAdmissionPolicyBinding' },
];

const TABLE = {
  name: 'rights',
  summary: 'Show what each account can reach, and by which rule',
  about: [
    'Computes from Roles, bindings and admission policies what somebody who has the token of an account can do: read or write Secrets, run pods, change Nodes, Machines or MachineConfigs, grant or bind roles, make tokens, act as other accounts, become administrator; where, under which names, by which rule of which role, and which policy binds what RBAC cannot.',
    'In a cluster it speaks of the accounts that Pullwright has there, by every binding that names them or their groups; of a folder, of every account that its bindings name.',
  ],
  flags: {
    from: folder({ help: 'a folder of manifests of one cluster, in place of a cluster' }),
    ...CLUSTER_FLAGS,
    account: several(
      text({ value: 'NAMESPACE/NAME', help: 'only this service account, whoever brought it' }),
    ),
    wide: toggle({
      help: 'only what reaches into every namespace, or leads to the rights of others',
    }),
    baseline: file({
      help: 'what --output json printed once: show only what is more than that, and exit 1 if there is something',
    }),
    output: outputFlag(['text', 'json', 'yaml', 'markdown']),
  },
  notes: [
    'Of a policy is decided whether it is asked for every such write of the account, and refuses where it cannot be evaluated; what its expressions mean, its messages say. Policies with failurePolicy Ignore, with parameters or without validations bind nobody here, nor do those that the account may change or delete, itself or by their bindings: admission is never asked about its own objects. A role that is not among the objects counts as wide: nobody knows what it grants. What an account may bind or change at will it has. Whether a pod may be root of its node is not asked: PodSecurity and SecurityContextConstraints say it, and who may change what they say counts as an administrator.',
  ],
  exitCodes:
    '0 the rights were computed, with --baseline none is more than that; 1 one is, or something could not be read; 2 wrong usage',
  examples: [
    'pullwright rights --from manifests/prod --wide',
    'pullwright rights --from manifests/prod --baseline rights.json',
  ],
  permissions: {
    reads: [],
    writes: [],
    hosts: ['none; without --from the API server of the kubeconfig'],
    api: [
      'list serviceaccounts, roles, clusterroles, rolebindings, clusterrolebindings, validatingadmissionpolicies, validatingadmissionpolicybindings',
    ],
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);
type Values = Given<typeof TABLE.flags>['flags'];

/** What is printed as JSON; `--baseline` reads it again. */
export interface RightsOutput {
  readonly rights: readonly Right[];
}

async function run({ flags: values }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const asked = new Set((values.account ?? []).map(accountOf));
  const { objects, problems } = await read(values, io);
  const accounts = accountsOf(asked, values.from === undefined ? objects : undefined);
  const known = new Set(objects.flatMap(serviceAccountOf));
  const rights = rightsOf(objects, (account) => accounts?.has(account) ?? true);
  for (const account of asked) expectAccount(account, known, rights);
  const wanted = values.wide ? rights.filter((right) => right.wide) : rights;
  const shown =
    values.baseline === undefined ? wanted : grownRights(wanted, await baselineOf(values.baseline));
  io.stdout.write(render(shown, values, io));
  writeProblems(io, problems);
  const grown = values.baseline !== undefined && shown.length > 0;
  if (grown)
    io.stderr.write(
      `${countedOf(shown.length, rights.length, ['right', 'rights'], ['is', 'are'])} more than ${values.baseline} says\n`,
    );
  return grown || problems.length > 0 ? 1 : 0;
}

/** Of a cluster, ours; of a folder all, which is undefined. */
function accountsOf(
  asked: ReadonlySet<string>,
  cluster: readonly KubeObject[] | undefined,
): ReadonlySet<string> | undefined {
  if (asked.size > 0) return asked;
  return cluster === undefined ? undefined : oursIn(cluster);
}

function expectAccount(account: string, known: ReadonlySet<string>, rights: readonly Right[]): void {
  if (!known.has(account) && !rights.some((right) => right.account === account))
    throw new UsageError(`Cannot find ${account}: neither an object nor a binding names it`);
}

function render(rights: readonly Right[], { output }: Values, io: CommandIo): string {
  if (output === 'json') return jsonText<RightsOutput>({ rights });
  if (output === 'yaml') return toYaml({ rights });
  return output === 'markdown' ? rightsMarkdown(rights) : rightsText(rights, columnsOf(io));
}

async function read(
  values: Values,
  io: CommandIo,
): Promise<{ readonly objects: readonly KubeObject[]; readonly problems: SourceObjects['problems'] }> {
  if (values.from === undefined) {
    const { store, problems } = await readObjects(values, KINDS, io);
    return { objects: KINDS.flatMap((kind) => store.list(kind)), problems };
  }
  const { manifests, problems } = await readFolder(values.from, new Set(KINDS.map(({ kind }) => kind)));
  const twice = problems.find(({ first }) => first !== undefined);
  // Two clusters in one folder would give each account the rights of both.
  if (twice !== undefined)
    throw new UsageError(
      `Cannot tell the clusters of "${values.from}" apart: ${twice.file}: ${twice.message}; give the folder of one`,
    );
  const texts = problems.map(({ file: path, line, message }) => `${path}:${line}: ${message}`);
  return { objects: manifests.map(({ object }) => object), problems: texts };
}

/** Those that our bindings name, wherever else they are bound. */
function oursIn(objects: readonly KubeObject[]): ReadonlySet<string> {
  const ours = objects.filter(
    ({ metadata }) => metadata.labels?.['app.kubernetes.io/part-of'] === 'pullwright',
  );
  return new Set([...grantsOf(ours).map(({ account }) => account), ...ours.flatMap(serviceAccountOf)]);
}

function serviceAccountOf({ kind, metadata }: KubeObject): readonly string[] {
  return kind === 'ServiceAccount'
    ? [`ServiceAccount ${metadata.namespace ?? 'default'}/${metadata.name}`]
    : [];
}

function accountOf(written: string): string {
  if (!/^[^/\s]+\/[^/\s]+$/.test(written))
    throw new UsageError(`invalid value "${written}" for --account: must be NAMESPACE/NAME`);
  return `ServiceAccount ${written}`;
}

async function baselineOf(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined)
    throw new UsageError(`Cannot read --baseline "${path}": it is not there or may not be read`);
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(
      `Cannot read --baseline "${path}": it is no JSON; expected what --output json prints`,
    );
  }
}
