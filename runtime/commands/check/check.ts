/** `pullwright check`: whether a cluster can take what a fleet renders, and whether it has it. */

import type { Fleet, FleetCluster } from '../../../charts/mod.ts';
import { readFolder } from '../../controller/folder.ts';
import { withIdentity } from '../../controller/identity.ts';
import { ObjectStore } from '../../controller/store.ts';
import { toYaml } from '../../kube/yaml.ts';
import { checkAfter, checkBefore, worstLevel } from '../../rules/check/check.ts';
import type { AskedRight, CheckInput, CheckLevel, CheckLine } from '../../rules/check/types.ts';
import type { Paint } from '../../rules/diagnose/explain-text.ts';
import { PullwrightError, UsageError } from '../../rules/errors.ts';
import { readSelector } from '../../rules/kubernetes/label-selector.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { recordOf } from '../../rules/record.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import { oneLined } from '../../rules/text/printable.ts';
import type { Command, CommandIo, ExitCode } from '../command.ts';
import { type CommandTable, defineCommand } from '../define.ts';
import { CLUSTER_FLAGS, fromFlag, outputFlag } from '../flags/common.ts';
import { type Flags, file, text, toggle } from '../flags/flag.ts';
import type { Given } from '../flags/parse.ts';
import { type ClusterAccess, readSteps, withClient } from '../object-source.ts';
import { statusRows } from '../status.ts';
import { loadFleet } from '../synth/synth.ts';
import { paintFor } from '../terminal.ts';
import { clusterRequests, folderKinds } from './kinds.ts';
import { askRights } from './rights.ts';

const TABLE = {
  name: 'check',
  summary: 'Check a cluster before an installation, and the installation after it',
  about: [
    'Renders the fleet for one cluster and holds it against that cluster. Before an installation (--pre): its version, definitions, priority classes, pod security or SecurityContextConstraints, eligible nodes and their runtime, the Machine Config Operator, HyperShift, other tools that write the same objects, and what the account may do. After it: every object there, definitions served, workloads ready, admission at work, nodes and pull secrets in order. Each line says ok, warn or fail, and what to do. Nothing is changed, and no Secret of the cluster is read.',
  ],
  flags: {
    pre: toggle({ help: 'look at what an installation needs, before it is made' }),
    fleet: file({ help: 'the fleet; without it, fleet.yaml here, else the built-in fleet of one cluster' }),
    cluster: text({ value: 'NAME', help: 'which cluster of the fleet, where it has several' }),
    from: fromFlag,
    ...CLUSTER_FLAGS,
    output: outputFlag(['text', 'json', 'yaml']),
  },
  exitCodes: '0 nothing fails (warnings are shown), 1 something fails, or could not be read, 2 wrong usage',
  examples: ['pullwright check --pre --fleet fleet.yaml', 'pullwright check --fleet fleet.yaml'],
  permissions: {
    reads: [],
    writes: [],
    hosts: ['the API server of the kubeconfig; none with --from'],
    api: [
      'list nodes, namespaces, customresourcedefinitions, priorityclasses, securitycontextconstraints, deployments, clusterrolebindings, mutatingwebhookconfigurations, validatingwebhookconfigurations',
      'list rolebindings, endpointslices (namespaces of the fleet)',
      'list pullstatuses, pullsecretprofiles, criocredentialproviderconfigs; list jobs (hyperfleet-system)',
      'get every object that the fleet renders',
      'create selfsubjectaccessreviews',
    ],
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

type Values = Given<typeof TABLE.flags>['flags'];

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const charts = await import('../../../charts/mod.ts');
  const { fleet, name } = await loadFleet(charts, flags.fleet, io.cwd);
  const cluster = chosen(fleet, name, flags.cluster);
  const plan = charts.renderCluster(fleet, cluster).objects;
  if (plan.length === 0)
    throw new PullwrightError(
      `Cannot check cluster "${cluster.context.name}": the fleet renders nothing for it`,
      {
        code: 'NothingToCheck',
        disposition: 'terminal',
        hint: 'Its reconciler brings what it needs: check the management cluster, then run pullwright status here',
      },
    );
  const seen = await look(flags, plan, io);
  const input = { ...seen.input, plan, ...askedOf(cluster) };
  const lines = [
    ...(flags.pre ? checkBefore(input) : checkAfter(input, statusRows(seen.store))),
    ...unreadLines(seen.problems),
  ];
  io.stdout.write(FORMS[flags.output](lines, paintFor(io)));
  return worstLevel(lines) === 'fail' ? 1 : 0;
}

/** @throws UsageError */
function chosen({ clusters }: Fleet, name: string, wanted: string | undefined): FleetCluster {
  const names = clusters.map(({ context }) => context.name).join(', ');
  const found = wanted === undefined ? clusters[0] : clusters.find(({ context }) => context.name === wanted);
  if (found === undefined)
    throw new UsageError(`Cannot find cluster "${wanted ?? ''}" in fleet "${name}": must be one of ${names}`);
  if (wanted === undefined && clusters.length > 1)
    throw new UsageError(
      `Cannot tell which cluster of fleet "${name}" is meant: choose one with --cluster: ${names}`,
    );
  return found;
}

/** What the fleet switches on, and which nodes it takes. */
function askedOf({ sections, context }: FleetCluster): Pick<CheckInput, 'systems' | 'nodes'> {
  const section = sections.find(({ system }) => system.name === 'global-pull-secret');
  const read = readSelector(recordOf(section?.config)['nodes']);
  const otherwise = context.kind === 'standalone' ? 'linux' : 'pools';
  return {
    // Sections of a management cluster speak of the hosted ones: of its own nodes none takes part.
    systems: context.kind === 'management' ? [] : sections.map(({ system }) => system.name),
    nodes: read.ok ? read.requirements : otherwise,
  };
}

interface Seen {
  readonly store: ObjectStore;
  readonly input: Omit<CheckInput, 'plan' | 'systems' | 'nodes'>;
  readonly problems: readonly string[];
}

async function look(flags: Values, plan: readonly KubeObject[], io: CommandIo): Promise<Seen> {
  if (flags.from !== undefined) return lookInto(flags.from, plan);
  const access: ClusterAccess = flags;
  return withClient(access, io, async (client) => {
    const { store, problems } = await readSteps(client, clusterRequests(plan), []);
    const serverVersion = await client.serverVersion();
    const rights: readonly AskedRight[] = flags.pre ? await askRights(client, plan) : [];
    return { store, problems, input: { objects: [...store], live: true, serverVersion, rights } };
  });
}

/** Several folders are parts of one dump. */
async function lookInto(dirs: readonly string[], plan: readonly KubeObject[]): Promise<Seen> {
  const store = new ObjectStore();
  const problems: string[] = [];
  for (const dir of dirs) {
    const folder = await readFolder(dir, folderKinds(plan));
    for (const { object } of folder.manifests) store.set(withIdentity(object));
    problems.push(...folder.problems.map(({ file: path, line, message }) => `${path}:${line}: ${message}`));
  }
  return { store, problems, input: { objects: [...store], live: false } };
}

/** What could not be read is not in order: nothing is concluded from its absence. */
function unreadLines(problems: readonly string[]): readonly CheckLine[] {
  return problems.map((message) => ({
    check: 'read',
    level: 'fail',
    message,
    fix: 'Grant the right, or correct the file',
  }));
}

/** What is printed as JSON. */
export interface CheckOutput {
  /** The worst of the lines. */
  readonly level: CheckLevel;
  readonly lines: readonly CheckLine[];
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

const FORMS: Readonly<Record<Values['output'], (lines: readonly CheckLine[], paint: Paint) => string>> = {
  text: asText,
  json: (lines) => jsonText<CheckOutput>({ level: worstLevel(lines), lines }),
  yaml: (lines) => toYaml({ level: worstLevel(lines), lines }, { lineWidth: 0 }),
};

function asText(given: readonly CheckLine[], paint: Paint): string {
  const lines = oneLined(given);
  const width = Math.max(...lines.map(({ check }) => check.length));
  const rows = lines.flatMap(({ check, level, message, fix }) => [
    `${paint(COLOURS[level], level.padEnd(4))}  ${check.padEnd(width)}  ${message}`,
    ...(fix === undefined ? [] : [`      ${' '.repeat(width)}  ${paint('dim', 'fix:')} ${fix}`]),
  ]);
  const count = (level: CheckLine['level']): number => lines.filter((line) => line.level === level).length;
  return `${rows.join('\n')}\n\n${count('ok')} ok, ${count('warn')} warn, ${count('fail')} fail\n`;
}
