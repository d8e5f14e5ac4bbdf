/** Reports of a node to the API server: its state as a PullStatus, Events on the Node. Pure. */

import { describeError } from '../../core/errors.ts';
import type { ConditionInput } from '../../core/kubernetes/conditions.ts';
import { GLOBAL_PULL_SECRET, NODE_REPORT, NODE_REPORT_LABEL } from '../../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { pullStatus } from '../../core/kubernetes/pull-status.ts';
import { counted } from '../../core/text.ts';
import type { NodeIdentity, NodeWords, Said } from '../../node/report.ts';
import { NODE_HOLDS_REMOVAL, type NodeEvent, type NodeState, stateConditions } from '../../node/task.ts';

/** Gives the PullStatus of a node and its status. The Node owns it, so that it is deleted with the Node. */
export function nodeStatus(
  node: NodeIdentity,
  state: NodeState,
  present: KubeObject | undefined,
  now: Date,
): { readonly object: KubeObject; readonly status: Readonly<Record<string, unknown>> } {
  const { object, status } = pullStatus({
    reporter: 'global-pull-secret-agent',
    about: { apiVersion: 'v1', kind: 'Node', namespace: GLOBAL_PULL_SECRET.namespace, name: node.name },
    conditions: conditionsOf(state),
    verdicts: [],
    ...(state.facts === undefined ? {} : { summary: state.facts }),
    present,
    now,
  });
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid }];
  const labels = { [NODE_REPORT_LABEL]: NODE_REPORT };
  return { object: { ...object, metadata: { ...object.metadata, labels, ownerReferences } }, status };
}

/** A node that holds a removal does not block the rollout; a person must confirm the removal. */
function conditionsOf(state: NodeState): readonly ConditionInput[] {
  const { reason, message } = state;
  const held: readonly ConditionInput[] =
    reason === NODE_HOLDS_REMOVAL
      ? [{ type: NODE_HOLDS_REMOVAL, status: 'True', reason: 'NotConfirmed', message }]
      : [];
  return [...stateConditions(state), ...held];
}

/** The Event for what happened, or undefined when it is not worth one. */
export function eventOf(happened: NodeEvent): Said | undefined {
  switch (happened.event) {
    case 'written': {
      const note = `Wrote ${happened.file} from ${happened.from}: ${counted(happened.entries, 'registry', 'registries')}`;
      return { type: 'Normal', reason: 'PullSecretWritten', action: 'Write', note };
    }
    case 'restarted': {
      const note = happened.byUs
        ? `Restarted ${happened.unit} (attempt ${happened.attempt})`
        : `${happened.unit} runs with the new pull secret, restarted by another process`;
      return { type: 'Normal', reason: 'KubeletRestarted', action: 'Restart', note };
    }
    case 'restart-failed': {
      const note = `Attempt ${happened.attempt}: ${describeError(happened.error)}`;
      return { type: 'Warning', reason: 'KubeletRestartFailed', action: 'Restart', note };
    }
    case 'rolled-back': {
      const note = `The unit did not come up with the new pull secret: ${ROLLED_BACK[happened.to]} (${happened.file})`;
      return { type: 'Warning', reason: 'PullSecretRolledBack', action: 'RollBack', note };
    }
    default:
      return undefined;
  }
}

const ROLLED_BACK = {
  saved: 'the old file is back',
  absent: 'the file is removed, as there was none before',
  none: 'there was no copy of the old file, so nothing was put back',
} as const;

/** The Event for a state that was entered, or undefined when its PullStatus says enough. */
export function eventOfState(state: NodeState): Said | undefined {
  if (state.reason === NODE_HOLDS_REMOVAL)
    return {
      type: 'Warning',
      reason: NODE_HOLDS_REMOVAL,
      action: 'Write',
      note: state.message.slice(0, 1024),
    };
  if (state.reason !== 'BreakerOpen') return undefined;
  return { type: 'Warning', reason: 'BreakerOpen', action: 'Restart', note: state.message };
}

export const AGENT_WORDS: NodeWords = {
  manager: 'pullwright-agent',
  controller: 'pullwright.dev/global-pull-secret-agent',
  status: nodeStatus,
  eventOf,
  eventOfState,
};
