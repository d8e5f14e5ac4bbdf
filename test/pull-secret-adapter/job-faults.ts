/** Everything that can go wrong between the Job and Google, with exit code and reason. Run here and compiled. */
import assert from 'node:assert/strict';
import { type TestSuite, table } from '../support/suite.ts';
import { ANSWERS, PERMISSIONS } from './job-fault-answers.ts';
import { CONTENT, INPUT } from './job-fault-content.ts';
import { withDouble } from './job-scenarios.ts';
import { type JobRunner, PATH } from './run-job.ts';

export function jobFaults(test: TestSuite, run: JobRunner): void {
  table(test, [...PERMISSIONS, ...ANSWERS, ...CONTENT, ...INPUT], (row) =>
    withDouble(async (double) => {
      if (row.present !== undefined) double.put(PATH, row.present());
      if (row.denied !== undefined) double.denied = new Set([row.denied]);
      double.faults = row.faults ?? [];
      const { interruptAt } = row;
      const cut =
        interruptAt === undefined ? {} : { interruptWhen: () => double.calls.at(-1)?.rpc === interruptAt };
      const ended = await run(double, row.env, cut);
      assert.deepEqual([ended.code, ended.result.reason], [row.code, row.is], ended.result.message);
      assert.equal(double.secrets.get(PATH)?.versions.length ?? 0, row.versions);
      if (row.says !== undefined) assert.match(ended.result.message, row.says);
      if (row.calls !== undefined) assert.equal(double.calls.length, row.calls);
      row.also?.(double, ended);
    }),
  );
}
