/** One restart over D-Bus, as the node agent of HyperShift words its end. */

import type { PullwrightError } from '../../../../runtime/core/errors.ts';
import { attemptRestart } from '../../../../runtime/node/restart.ts';
import { BusRefused, SystemdOverBus } from '../../../../runtime/node/systemd.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { scriptedBus } from '../../../support/scripted-bus.ts';
import { type ConformanceSuite, rows } from '../../suite.ts';

interface Input {
  readonly restartUnitError?: string | null;
  readonly jobResult?: string | null;
  /** The bus cannot be reached. */
  readonly connectError?: string;
}

interface Expected {
  readonly error: string | null;
}

export const suite: ConformanceSuite<Input, Expected> = {
  cases: rows,
  answer: async (input) => {
    const clock = fakeClock();
    const hangs = input.jobResult === null && (input.restartUnitError ?? null) === null;
    const { connect } = scriptedBus({
      result: input.jobResult ?? null,
      ...(input.restartUnitError
        ? { refused: ['org.freedesktop.systemd1.Failed', input.restartUnitError] }
        : {}),
      before: { active: 'active', invocation: 'aa' },
      after: { active: 'active', invocation: input.jobResult === 'done' ? 'bb' : 'aa', busy: hangs },
    });
    const end = await attemptRestart(
      input.connectError === undefined
        ? new SystemdOverBus({ connect, clock })
        : new SystemdOverBus({ socket: '/nonexistent/bus', clock }),
      { unit: 'kubelet.service', before: 'aa', settleMs: 0, clock },
      new AbortController().signal,
    );
    return { error: end.ok ? null : inTheirWords(end.error) };
  },
  accepts: (actual, expected) => {
    // The text after the colon is the message of D-Bus.
    const head = (text: string | null): string | null =>
      text === null ? null : text.replace(/^(failed to (?:restart kubelet|connect to dbus)): .*/s, '$1:');
    return head(actual.error) === head(expected.error);
  },
  mutation: { file: 'runtime/node/restart.ts', replace: "result === 'done'", by: "result !== ''" },
};

function inTheirWords(error: PullwrightError): string {
  if (error.code === 'JobOverdue') return 'timeout';
  if (error.code === 'BusUnreachable') return `failed to connect to dbus: ${error.message}`;
  if (error instanceof BusRefused) return `failed to restart kubelet: ${error.message}`;
  const result = /its job ended with "(\w+)"/.exec(error.message)?.[1];
  return result === undefined ? error.message : `failed to restart kubelet, result: ${result}`;
}
