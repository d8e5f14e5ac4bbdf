/** Reports of a node to the API server: its state as a PullStatus, Events on the Node. Pure. */

import { NODE_REPORT, NODE_REPORT_LABEL } from '../../core/kubernetes/hypershift.ts';
import { counted } from '../../core/text.ts';
import type { NodeWords } from '../../node/report.ts';
import { NODE_HOLDS_REMOVAL, stateConditions } from '../../node/task.ts';

const ROLLED_BACK = {
  saved: 'the old file is back',
  absent: 'the file is removed, as there was none before',
  none: 'there was no copy of the old file, so nothing was put back',
} as const;

export const AGENT_WORDS: NodeWords = {
  manager: 'pullwright-agent',
  reporter: 'global-pull-secret-agent',
  metadata: () => ({ labels: { [NODE_REPORT_LABEL]: NODE_REPORT } }),
  report: (state) => ({
    conditions: [
      ...stateConditions(state),
      // A node that holds a removal does not block the rollout; a person must confirm the removal.
      ...(state.reason === NODE_HOLDS_REMOVAL
        ? [
            {
              type: NODE_HOLDS_REMOVAL,
              status: 'True',
              reason: 'NotConfirmed',
              message: state.message,
            } as const,
          ]
        : []),
    ],
    verdicts: [],
    ...(state.facts === undefined ? {} : { summary: state.facts }),
  }),
  written: ({ file, from, entries }) => {
    const note = `Wrote ${file} from ${from}: ${counted(entries, 'registry', 'registries')}`;
    return { type: 'Normal', reason: 'PullSecretWritten', action: 'Write', note };
  },
  restarted: ({ unit, byUs, attempt }) => {
    const note = byUs
      ? `Restarted ${unit} (attempt ${attempt})`
      : `${unit} runs with the new pull secret, restarted by another process`;
    return { type: 'Normal', reason: 'KubeletRestarted', action: 'Restart', note };
  },
  rolledBack: ({ file, to }) => {
    const note = `The unit did not come up with the new pull secret: ${ROLLED_BACK[to]} (${file})`;
    return { type: 'Warning', reason: 'PullSecretRolledBack', action: 'RollBack', note };
  },
  eventOfState: ({ reason, message }) => {
    if (reason === NODE_HOLDS_REMOVAL)
      return { type: 'Warning', reason: NODE_HOLDS_REMOVAL, action: 'Write', note: message.slice(0, 1024) };
    if (reason !== 'BreakerOpen') return undefined;
    return { type: 'Warning', reason: 'BreakerOpen', action: 'Restart', note: message };
  },
};
