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
  subject: 'PullSecret',
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
  written: ({ file, from, entries }) =>
    `Wrote ${file} from ${from}: ${counted(entries, 'registry', 'registries')}`,
  restarted: ({ unit, byUs, attempt }) =>
    byUs
      ? `Restarted ${unit} (attempt ${attempt})`
      : `${unit} runs with the new pull secret, restarted by another process`,
  rolledBack: ({ file, to }) =>
    `The unit did not come up with the new pull secret: ${ROLLED_BACK[to]} (${file})`,
  eventOfState: ({ reason, message }) => {
    if (reason === NODE_HOLDS_REMOVAL)
      return { type: 'Warning', reason, action: 'Write', note: message.slice(0, 1024) };
    return reason === 'BreakerOpen'
      ? { type: 'Warning', reason, action: 'Restart', note: message }
      : undefined;
  },
};
