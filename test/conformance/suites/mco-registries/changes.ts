import { schemaFaults } from '../../../../runtime/registry-overrides/machine-config/admission.ts';
import {
  disruptionOf,
  renderNodeFiles,
} from '../../../../runtime/registry-overrides/machine-config/render.ts';
import { type ConformanceSuite, rows } from '../../suite.ts';
import { objectsOf, type RunInput } from './read.ts';

type Fields = Readonly<Record<string, unknown>>;
interface Change {
  readonly before: RunInput;
  readonly after: RunInput;
}

export const suite: ConformanceSuite<Change, Fields> = {
  cases: rows,
  answer: ({ before, after }) => {
    const [old, next] = [before, after].map((input) => renderNodeFiles(objectsOf(input)));
    if (old === undefined || next === undefined || old.refused) throw new Error('no rendering before');
    const admitted = schemaFaults(objectsOf(after)).length === 0;
    if (next.refused)
      return {
        admitted,
        error: next.faults[0]?.text,
        changedFiles: [],
        actions: [],
        drain: false,
        reboot: false,
      };
    const { because: _, ...disruption } = disruptionOf(old, next);
    return { admitted, ...disruption };
  },
  mutation: {
    file: 'runtime/registry-overrides/machine-config/render.ts',
    replace: "pullFrom !== 'digest-only' && pullFrom !==",
    by: 'pullFrom !==',
  },
};
