/** What the API server is told about the installation on a node: a PullStatus, and Events on the Node. Pure. */
import { type NodeEvent, type NodeState, stateConditions } from '../../node/events.ts';
import type { NodeIdentity, NodeWords, Said } from '../../node/reporter.ts';
import { installerStatusName } from '../../rules/credential-provider/report-names.ts';
import { describeError } from '../../rules/errors.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { pullStatus, type Verdict } from '../../rules/kubernetes/pull-status.ts';
import { counted } from '../../rules/text/counted.ts';
import type { FailureNote } from '../plugin/failure-note.ts';
import { failureVerdict } from './failures.ts';
import type { InstallPlan } from './plan.ts';

/** Where the DaemonSet runs. */
const NAMESPACE = 'kube-system';

/** `plan`: the last good one; `failures`: those of runs for pods. Both are asked for when something is said. */
export function installerWords(
  plan: () => InstallPlan | undefined,
  failures: () => readonly FailureNote[],
): NodeWords {
  return {
    manager: 'pullwright-installer',
    controller: 'pullwright.dev/credential-provider-installer',
    status: (node, state, present, now) =>
      installerStatus({ node, state, plan: plan(), failures: failures(), present, now }),
    eventOf,
    eventOfState,
  };
}

function installerStatus({
  node,
  state,
  plan,
  failures,
  present,
  now,
}: {
  readonly node: NodeIdentity;
  readonly state: NodeState;
  readonly plan: InstallPlan | undefined;
  readonly failures: readonly FailureNote[];
  readonly present: KubeObject | undefined;
  readonly now: Date;
}): { readonly object: KubeObject; readonly status: Readonly<Record<string, unknown>> } {
  const { object, status } = pullStatus({
    reporter: 'credential-provider-installer',
    about: { apiVersion: 'v1', kind: 'Node', namespace: NAMESPACE, name: node.name },
    conditions: stateConditions(state),
    verdicts: [
      ...failures.map(failureVerdict),
      ...(plan?.ok === true ? plan.verdicts.map(entryVerdict) : []),
    ],
    present,
    now,
  });
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid }];
  const name = installerStatusName(node.name);
  return { object: { ...object, metadata: { ...object.metadata, name, ownerReferences } }, status };
}

function entryVerdict({
  pattern,
  verdict,
  message,
}: (InstallPlan & { ok: true })['verdicts'][number]): Verdict {
  return verdict === 'Rendered'
    ? { subject: pattern, verdict: 'Accepted', reason: verdict, message: "it is in the kubelet's file" }
    : { subject: pattern, verdict: 'Rejected', reason: verdict, message };
}

function eventOf(happened: NodeEvent): Said | undefined {
  switch (happened.event) {
    case 'written': {
      const note = `Wrote ${happened.file} with ${counted(happened.entries, 'entry', 'entries')}`;
      return { type: 'Normal', reason: 'CredentialProviderWritten', action: 'Write', note };
    }
    case 'restarted': {
      const note = `${happened.unit} runs with the new drop-in (attempt ${happened.attempt})`;
      return { type: 'Normal', reason: 'KubeletRestarted', action: 'Restart', note };
    }
    case 'restart-failed': {
      const note = `Attempt ${happened.attempt}: ${describeError(happened.error)}`;
      return { type: 'Warning', reason: 'KubeletRestartFailed', action: 'Restart', note };
    }
    case 'rolled-back': {
      const note = `The kubelet did not come up with the credential provider: the old drop-in is back (${happened.file})`;
      return { type: 'Warning', reason: 'CredentialProviderRolledBack', action: 'RollBack', note };
    }
    default:
      return undefined;
  }
}

/** What a person must act on is worth an Event; what goes on by itself is not. */
function eventOfState({ ready, busy, reason, message }: NodeState): Said | undefined {
  if (ready || busy === true || reason === 'Starting') return undefined;
  return { type: 'Warning', reason, action: 'Install', note: message };
}
