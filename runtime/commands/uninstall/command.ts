/** `pullwright uninstall`: removes everything in an order that leaves every node with a working kubelet. */

import { createInterface } from 'node:readline';
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import { CLUSTER_FLAGS, duration, outputFlag, toggle, type ValuesOf } from '../../cli/flags.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import { describeObject } from '../../core/kubernetes/object.ts';
import { counted, onOneLine } from '../../core/text.ts';
import { withClient } from '../../diagnose/model/objects.ts';
import { answer } from '../../diagnose/views/text.ts';
import type { KubeClient } from '../../kube/client.ts';
import { systemClock } from '../../node/clock.ts';
import { type CarryOutOptions, carryOut, findObjects, isStillThere } from './carry-out.ts';
import { delivererText, planUninstall, type Stage, type UninstallPlan } from './plan.ts';

const TABLE = {
  name: 'uninstall',
  about: [
    'Removes Pullwright from one cluster, in this order: programs, policies, custom resources, MachineConfigs, nodes, computed objects, rendered objects, definitions, namespaces. Nodes keep the last good config.json and a running kubelet. Secrets of users, and objects that another operator manages, are kept. Run it again to continue an interrupted run.',
  ],
  flags: {
    ...CLUSTER_FLAGS,
    'dry-run': toggle({ help: 'print what would be removed and kept, and change nothing' }),
    yes: toggle({ short: 'y', help: 'skip the confirmation' }),
    'keep-secrets': toggle({
      help: 'keep the computed Secrets and ConfigMaps, so that pods can still pull with them',
    }),
    'skip-nodes': toggle({ help: 'delete the DaemonSets without cleaning up the nodes first' }),
    'ignore-gitops': toggle({
      help: 'continue although Argo CD or Flux delivers some of the objects and may recreate them',
    }),
    timeout: duration({
      default: '10m',
      least: 1000,
      most: 86_400_000,
      help: 'timeout for the nodes, or for one object',
    }),
    output: outputFlag(['text', 'json', 'yaml'], 'output format of the plan and the result'),
  },
  notes: [
    'Uninstall the hosted clusters of a management cluster first, each with its own kubeconfig; before that, remove them from the fleet.',
  ],
  exitCodes: '0 done, 1 an object could not be removed, 2 wrong usage',
  examples: ['pullwright uninstall --kubeconfig admin.kubeconfig --dry-run'],
  permissions: {
    hosts: ['the API server of the kubeconfig'],
    api: [
      'get, list, delete every kind that is rendered or applied (cluster-admin)',
      'patch daemonsets/global-pull-secret-syncer, daemonsets/credential-provider-installer (kube-system)',
      'list pods (kube-system)',
      'patch nodes, deployments (releases own fields)',
    ],
  },
} as const;

export const command: Command = defineCommand(TABLE, ({ flags }, io) =>
  withClient({ ...flags, tries: 5 }, io, (client) => uninstall(client, flags, io)),
);

type Values = ValuesOf<typeof TABLE.flags>;

async function uninstall(client: KubeClient, flags: Values, io: CommandIo): Promise<ExitCode> {
  const plan = planUninstall(await findObjects(client), flags);
  if (flags['dry-run']) {
    const stages = plan.stages.map(({ name, removals }) => ({
      name,
      removals: removals.map((removal) => ({ object: describeObject(removal.object), do: removal.do })),
    }));
    const data = { stages, kept: plan.kept.map(keptRow) };
    return answer(io, flags.output, { data, text: () => planText(plan), failed: false });
  }
  if (plan.stages.length > 0) {
    if (!flags['ignore-gitops']) await assertNotDelivered(plan, client);
    if (!flags.yes) await confirm(plan, client.host, io);
  }
  const { removed, inUse } = await carryOutAll(plan, client, flags, io);
  const left = planUninstall(await findObjects(client), { ...flags, inUse });
  assertNothingCameBack(left);
  return answer(io, flags.output, {
    data: { removed, kept: left.kept.map(keptRow) },
    text: () => `${[...keptLines(left), `${removed} removed, ${left.kept.length} kept`].join('\n')}\n`,
    failed: false,
  });
}

/** Removes the programs first, and plans the rest after they exit: until then they may create further objects. */
async function carryOutAll(plan: UninstallPlan, client: KubeClient, flags: Values, io: CommandIo) {
  const options: CarryOutOptions = {
    client,
    clock: systemClock,
    signal: io.signal,
    timeoutMs: flags.timeout,
    say: (line) => io.stderr.write(`${line}\n`),
  };
  const isProgram = ({ name }: Stage): boolean => name === 'programs';
  const ended = await carryOut({ stages: plan.stages.filter(isProgram) }, options);
  const rest = ended.removed === 0 ? plan : planUninstall(await findObjects(client), flags);
  const done = await carryOut({ stages: rest.stages.filter((stage) => !isProgram(stage)) }, options);
  return { removed: ended.removed + done.removed, inUse: done.inUse };
}

/** Ignores the marks of a deleted Application or Kustomization: a deletion may leave them on the objects. */
async function assertNotDelivered({ delivered }: UninstallPlan, client: KubeClient): Promise<void> {
  const groups = Map.groupBy(delivered, ({ by }) => `${delivererText(by)} ${by.namespace ?? ''}`);
  for (const [first, ...more] of groups.values()) {
    if (first === undefined || !(await isStillThere(client, first.by))) continue;
    throw new PullwrightError(
      `Cannot uninstall: ${counted(more.length + 1, 'object is', 'objects are')} delivered from git, "${describeObject(first.object)}" by ${delivererText(first.by)}`,
      {
        code: 'DeliveredFromGit',
        hint: 'Delete that first, without deleting its objects (see docs/operations.md). If it ran in another cluster and no longer exists, use --ignore-gitops',
      },
    );
  }
}

function assertNothingCameBack({ stages }: UninstallPlan): void {
  const [stage] = stages;
  const object = stage?.removals[0]?.object;
  if (object === undefined) return;
  throw new PullwrightError(`Cannot finish: "${describeObject(object)}" was recreated after its removal`, {
    code: 'CameBack',
    hint: 'A GitOps tool or the reconciler of the management cluster recreates it. Stop that, then run this again',
  });
}

async function confirm(plan: UninstallPlan, host: string, io: CommandIo): Promise<void> {
  if (io.stderr.isTTY !== true)
    throw new UsageError('Cannot ask for confirmation without a terminal: use --yes or --dry-run');
  const count = plan.stages.reduce((sum, { removals }) => sum + removals.length, 0);
  io.stderr.write(`Remove ${counted(count, 'object')} from ${host}? Type "yes" to continue: `);
  const lines = createInterface({ input: io.stdin, signal: io.signal });
  try {
    for await (const line of lines) {
      if (line.trim() === 'yes') return;
      break;
    }
  } finally {
    lines.close();
  }
  throw new PullwrightError('Nothing was removed: not confirmed', { code: 'UninstallNotConfirmed' });
}

function planText(plan: UninstallPlan): string {
  const lines = [
    ...plan.stages.flatMap(({ name, removals }) => [
      name,
      ...removals.map((removal) => `  ${VERBS[removal.do]} ${describeObject(removal.object)}`),
    ]),
    ...keptLines(plan),
    ...plan.delivered.map(({ object, by }) => `delivered by ${delivererText(by)}: ${describeObject(object)}`),
    ...(plan.stages.length === 0 ? ['nothing to remove'] : []),
  ];
  return `${lines.join('\n')}\n`;
}

const VERBS = { delete: 'remove ', 'leave-nodes': 'remove ', release: 'release' } as const;

function keptLines({ kept }: UninstallPlan): readonly string[] {
  return kept.map(({ object, reason }) => `kept ${describeObject(object)}: ${onOneLine(reason)}`);
}

function keptRow({ object, reason }: UninstallPlan['kept'][number]): object {
  return { object: describeObject(object), reason };
}
