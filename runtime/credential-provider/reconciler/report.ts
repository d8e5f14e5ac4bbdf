/** What the reconciler says: conditions of the object, events, gauges; the PullStatus is in pull-report.ts. */

import type { EventNote, Outcome, Problem, Ref, Sample } from '../../controller/contract.ts';
import type { MatchImageVerdict } from '../../rules/credential-provider/merge.ts';
import { type Condition, type ConditionInput, nextConditions } from '../../rules/kubernetes/conditions.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { conditionOf, NO_POOL, validated } from './conditions.ts';
import { statusWriter } from './managed.ts';
import { howToRefer } from './node-pools.ts';
import { BY_DAEMON_SET, listed, pullReport } from './pull-report.ts';
import type { NodesReportInput, PoolState } from './report-input.ts';

/** The whole outcome. Where somebody else manages the object, nothing of it is written, its status included. */
export function reportNodes(input: NodesReportInput): Outcome {
  const { world, object, states, elsewhere } = input;
  const verdicts = [...verdictsOf(states), ...input.faults];
  const own = [validated(verdicts, input.isServed ? 0 : input.patterns.length), renderedCondition(input)];
  const status = pullReport(input, own, verdicts);
  // Two programs that write the same conditions would go on for ever, also where the rest of it is ours.
  const isOurs = elsewhere === undefined && statusWriter(object) === undefined;
  const problems = elsewhere === undefined ? [...refusals(object, input.faults), ...problemsOf(states)] : [];
  return {
    apply: [...input.apply, status.apply],
    keep: input.keep,
    status: [...(isOurs ? [statusPatch(object, own, world.now)] : []), status.status],
    // What waits for a person is no Event by itself, and the owner of a NodePool looks at its Events.
    events: elsewhere === undefined ? [...eventsOf(object, own), ...problemsOf(states).flatMap(noteOf)] : [],
    metrics: states.flatMap(poolGauges),
    ...(problems.length === 0 ? {} : { problems }),
  };
}

/** The same entries are judged for every pool; pools differ only where their templates do. */
function verdictsOf(states: readonly PoolState[]): readonly MatchImageVerdict[] {
  const worst = new Map<string, MatchImageVerdict>();
  for (const verdict of states.flatMap(({ verdicts }) => verdicts)) {
    const known = worst.get(verdict.pattern);
    if (known === undefined || known.verdict === 'Rendered') worst.set(verdict.pattern, verdict);
  }
  return [...worst.values()];
}

function renderedCondition({ states, isServed, installer }: NodesReportInput): ConditionInput {
  if (!isServed && installer) return conditionOf({ reason: NO_POOL, message: BY_DAEMON_SET });
  if (!isServed) {
    return conditionOf({
      reason: NO_POOL,
      message:
        'The cluster has no built-in MachineConfigPool, so nothing is rendered: "installer" of the section brings a DaemonSet that installs the provider on its nodes; docs/credential-provider.md says how',
    });
  }
  const held = states.flatMap(({ pool, hold }) => (hold === undefined ? [] : [{ pool, hold }]));
  const failed = held.filter(({ hold }) => hold.reason !== 'UnsupportedVersion');
  if (failed.length > 0) {
    const said = failed.map(({ pool, hold }) => `pool ${pool.name}: ${hold.message}`).join('; ');
    return conditionOf({
      reason: 'MachineConfigRenderingFailed',
      message: `Not rendered: ${said}. What is rendered stays`,
    });
  }
  const placeless = states.flatMap(({ pool, noPlace }) =>
    noPlace === undefined ? [] : [`pool ${pool.name}: ${noPlace}`],
  );
  if (placeless.length > 0)
    return conditionOf({ reason: 'NoPlaceForFlags', message: `Not rendered: ${placeless.join('; ')}` });
  if (held.length === 0) return conditionOf({});
  const nodes = held.map(({ pool }) => `pool ${pool.name}: ${listed(pool.tooOld)}`).join('; ');
  return conditionOf({
    reason: 'UnsupportedVersion',
    message: `Not rendered, because kubelet and CRI-O 1.34 are needed on every node: ${nodes}. Upgrade these nodes; what is rendered stays`,
  });
}

function statusPatch(
  object: KubeObject,
  conditions: readonly ConditionInput[],
  now: Date,
): { ref: Ref; status: Readonly<Record<string, unknown>> } {
  const present =
    (object.status as { readonly conditions?: readonly Condition[] } | undefined)?.conditions ?? [];
  const { generation } = object.metadata;
  const observed =
    generation === undefined
      ? conditions
      : conditions.map((one) => ({ ...one, observedGeneration: generation }));
  return { ref: refOf(object), status: { conditions: nextConditions(present, observed, now) } };
}

function refOf({ apiVersion, kind, metadata }: KubeObject): Ref {
  return {
    role: 'hosted',
    apiVersion,
    kind,
    name: metadata.name,
    ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
  };
}

/** Only a folder can hold such an object, and what applies it would fail. */
function refusals(object: KubeObject, faults: readonly MatchImageVerdict[]): readonly Problem[] {
  if (faults.length === 0) return [];
  const said = faults.slice(0, 5).map(({ pattern, message }) => `${pattern}: ${message}`);
  const more = faults.length > 5 ? `; and ${faults.length - 5} more` : '';
  return [
    {
      disposition: 'terminal',
      code: 'RefusedByDefinition',
      message: `Cannot apply "${object.kind}/${object.metadata.name}": its definition refuses ${said.join('; ')}${more}`,
      hint: 'Correct or remove these entries; the others are rendered',
      regarding: refOf(object),
    },
  ];
}

/** NodePools belong to somebody who never looks at the hosted cluster, so they are told there. */
function problemsOf(states: readonly PoolState[]): readonly Problem[] {
  return states.flatMap(({ nodePools, configName, files }) =>
    nodePools
      .filter(({ refers }) => files.length > 0 && !refers)
      .map((pool): Problem => {
        const { reason, message } = howToRefer(pool, configName);
        const { namespace, name } = pool;
        return {
          disposition: 'waiting',
          afterMs: 600_000,
          code: reason === 'NotReferenced' ? 'NodePoolNotConfigured' : reason,
          message,
          regarding: {
            role: 'management',
            apiVersion: 'hypershift.openshift.io/v1beta1',
            kind: 'NodePool',
            namespace,
            name,
          },
        };
      }),
  );
}

function noteOf({ regarding, code, message }: Problem): readonly EventNote[] {
  if (regarding === undefined) return [];
  return [{ regarding, type: 'Warning', reason: code, action: 'Render', note: message.slice(0, 1024) }];
}

function eventsOf(object: KubeObject, conditions: readonly ConditionInput[]): readonly EventNote[] {
  return conditions
    .filter(({ status }) => status === 'False')
    .map(({ reason, message }) => ({
      regarding: refOf(object),
      type: 'Warning',
      reason,
      action: 'Render',
      note: message.slice(0, 1024),
    }));
}

/** One per pool; for a hosted cluster one per NodePool, where it has some. Nothing wanted is not waited for. */
function poolGauges({ pool, nodePools, files }: PoolState): readonly Sample[] {
  if (files.length === 0) return [];
  const rows =
    nodePools.length === 0
      ? [{ name: pool.name, isDone: pool.rollout === 'Done' }]
      : nodePools.map(({ namespace, name, refers, rollout }) => ({
          name: `${namespace}/${name}`,
          isDone: refers && rollout === 'Done',
        }));
  return rows.map(({ name, isDone }) => ({
    name: 'pullwright_credential_provider_pool_rolled_out',
    help: 'Whether every node of the pool has the rendered configuration',
    value: isDone ? 1 : 0,
    labels: { pool: name },
  }));
}
