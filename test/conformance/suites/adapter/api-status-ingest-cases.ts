import { mirroredType } from '../../../../runtime/pull-secret-adapter/plan.ts';
import { ingestStatus } from '../../../pull-secret-adapter/doubles/status-ingest.ts';
import type { ConformanceCase, ConformanceSuite } from '../../suite.ts';

interface One {
  readonly name: string;
  readonly resource_generation?: number | null;
  readonly existing?: { readonly observed_generation: number; readonly observed_time_offset_s?: number };
  readonly body: Record<string, unknown>;
  readonly status: number;
  readonly detail?: string;
  readonly aggregate?: boolean;
}

type Input = { kind: 'report'; one: One } | { kind: 'type'; adapter: string };

const NOW = new Date('2026-01-01T00:00:00Z');

export const suite: ConformanceSuite<Input> = {
  cases(document) {
    const file = document as { cases: readonly One[]; condition_type_names?: Record<string, string> };
    const reports = file.cases.map(
      (one): ConformanceCase<Input> => ({
        name: one.name,
        input: { kind: 'report', one },
        expected: {
          status: one.status,
          ...(one.detail === undefined ? {} : { detail: one.detail }),
          ...(one.aggregate === undefined ? {} : { aggregate: one.aggregate }),
        },
      }),
    );
    const types = Object.entries(file.condition_type_names ?? {}).map(
      ([adapter, expected]): ConformanceCase<Input> => ({
        name: adapter,
        input: { kind: 'type', adapter },
        expected,
      }),
    );
    return [...reports, ...types];
  },
  answer(input) {
    if (input.kind === 'type') return mirroredType(input.adapter);
    const { one } = input;
    const at = (seconds: number): string => new Date(NOW.getTime() + seconds * 1000).toISOString();
    const { observed_time_offset_s: offset = 0, ...body } = one.body;
    const existing =
      one.existing === undefined
        ? undefined
        : {
            observed_generation: one.existing.observed_generation,
            observed_time: at(one.existing.observed_time_offset_s ?? 0),
          };
    const generation = one.resource_generation ?? undefined;
    const resource = generation === undefined ? undefined : { generation };
    const answer = ingestStatus(
      { adapter: 'a', observed_time: at(Number(offset)), ...body },
      resource,
      existing,
      NOW,
    );
    const { aggregate, ...rest } = answer;
    return one.aggregate === undefined ? rest : { ...rest, aggregate };
  },
  mutation: {
    file: 'test/pull-secret-adapter/doubles/status-ingest.ts',
    replace: 'ahead > 300_000',
    by: 'ahead > 400_000',
  },
};
