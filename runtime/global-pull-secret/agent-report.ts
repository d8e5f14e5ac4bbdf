/** What the API server is told about a node: the state as a PullStatus, what happened as Events on the Node. Pure. */
import type { EventInput } from '../kube/events.ts';
import type { NodeEvent, NodeState } from '../node/events.ts';
import { type ConditionInput, readiness } from '../rules/conditions.ts';
import { describeError } from '../rules/errors.ts';
import { GLOBAL_PULL_SECRET } from '../rules/global-pull-secret.ts';
import type { KubeObject } from '../rules/kube-object.ts';
import { pullStatus } from '../rules/pull-status.ts';

/** The node, as references to it need it. */
export interface NodeIdentity {
  readonly name: string;
  readonly uid: string;
}

/** Gives the PullStatus of a node and its status. The Node owns it, so that it goes when the Node goes. */
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
    present,
    now,
  });
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid }];
  return { object: { ...object, metadata: { ...object.metadata, ownerReferences } }, status };
}

/** `Ready`; while it is not: `Reconciling` for what goes on by itself, else `Stalled`. */
function conditionsOf({ ready, reason, message, busy }: NodeState): readonly ConditionInput[] {
  const said = { reason, message };
  if (ready) return readiness({ ready: said });
  return readiness({ ready: said, ...(busy === true ? { progressing: said } : { stalled: said }) });
}

type Said = Pick<EventInput, 'type' | 'reason' | 'action' | 'note'>;

/** The Event for what happened, or undefined when it is not worth one. */
export function eventOf(happened: NodeEvent): Said | undefined {
  switch (happened.event) {
    case 'written': {
      const note = `Wrote ${happened.file} from ${happened.from}: ${happened.entries} registries`;
      return { type: 'Normal', reason: 'PullSecretWritten', action: 'Write', note };
    }
    case 'restarted': {
      const note = happened.byUs
        ? `Restarted ${happened.unit} (attempt ${happened.attempt})`
        : `${happened.unit} runs with the new pull secret, restarted by somebody else`;
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
  if (state.reason !== 'BreakerOpen') return undefined;
  return { type: 'Warning', reason: 'BreakerOpen', action: 'Restart', note: state.message };
}
