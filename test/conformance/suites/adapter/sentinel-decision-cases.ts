/* oxlint-disable complexity -- one branch for each table of the case file */
import { clusterDocument, type HyperfleetCluster } from '../../../../runtime/pull-secret-adapter/cluster.ts';
import { type DataNode, messageData } from '../../../../runtime/pull-secret-adapter/sentinel/messages.ts';
import { sentinelSettings } from '../../../../runtime/pull-secret-adapter/sentinel/options.ts';
import {
  decideToPublish,
  searchByLabels,
} from '../../../../runtime/pull-secret-adapter/sentinel/sentinel.ts';
import type { ConformanceCase, ConformanceSuite } from '../../suite.ts';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly age_seconds?: number;
  readonly observed_generation?: number;
}

interface File {
  readonly cases: readonly {
    name: string;
    resource: { generation: number; conditions?: readonly Condition[] } | null;
    /** Here the time is an argument, which is never missing. */
    now_zero?: boolean;
    publish: boolean;
    reason: string;
  }[];
  readonly defaults: {
    readonly reconciled_max_age_s: number;
    readonly not_reconciled_max_age_s: number;
    /** The running system's own: parameters, and `result`. */
    readonly expressions?: Readonly<Record<string, string>>;
  };
  readonly v0_1_rule?: { readonly max_age_ready_s: number; readonly max_age_not_ready_s: number };
  readonly payload?: readonly {
    def: Record<string, unknown>;
    expect?: unknown;
    expect_omitted?: readonly string[];
    resource_has_owner?: boolean;
    error?: boolean;
  }[];
  readonly search_string?: readonly { selector: Record<string, string>; search: string }[];
}

type Input =
  | {
      kind: 'decision' | 'expressions';
      resource: File['cases'][number]['resource'];
      ages: File['defaults'];
    }
  | { kind: 'first-release'; ready: boolean; age: number; observed: number }
  | { kind: 'payload'; def: Record<string, unknown>; omitted: readonly string[]; owner: boolean }
  | { kind: 'search'; selector: Record<string, string> };

const NOW = new Date('2026-01-02T00:00:00Z');
const RESOURCE = {
  id: 'cls-1',
  kind: 'Cluster',
  href: '/api/hyperfleet/v1/clusters/cls-1',
  generation: 3,
};

export const suite: ConformanceSuite<Input> = {
  cases(document) {
    const file = document as File;
    // Each case is asked twice: by our rule, and by the running system's own expressions.
    const kinds = file.defaults.expressions === undefined ? ['decision'] : ['decision', 'expressions'];
    const found: ConformanceCase<Input>[] = file.cases
      .filter((one) => one.now_zero !== true)
      .flatMap((one) =>
        kinds.map((kind) => ({
          name: kind === 'decision' ? one.name : `by expressions: ${one.name}`,
          input: {
            kind: kind as 'decision' | 'expressions',
            resource: one.resource,
            ages: file.defaults,
          },
          expected: { publish: one.publish, reason: one.reason },
        })),
      );
    const first = file.v0_1_rule;
    if (first !== undefined) {
      const rows: [boolean, number, number, boolean][] = [
        [true, first.max_age_ready_s, 1, true],
        [true, first.max_age_ready_s - 1, 1, false],
        [false, first.max_age_not_ready_s, 1, true],
        [false, first.max_age_not_ready_s - 1, 1, false],
        [true, 0, 0, true],
      ];
      for (const [ready, age, observed, publish] of rows) {
        const reason =
          observed === 0 ? 'generation changed' : publish ? 'max age exceeded' : 'max age not exceeded';
        found.push({
          name: `first release ${ready} ${age} ${observed}`,
          input: { kind: 'first-release', ready, age, observed },
          expected: { publish, reason },
        });
      }
    }
    for (const one of file.payload ?? []) {
      const omitted = one.expect_omitted ?? [];
      const owner = one.resource_has_owner !== false;
      const input: Input = { kind: 'payload', def: one.def, omitted, owner };
      const expected =
        one.error === true ? 'error' : omitted.length > 0 ? { omitted } : (one.expect ?? plain(one.def));
      found.push({ name: `payload ${JSON.stringify(one.def)}`, input, expected });
    }
    for (const one of file.search_string ?? [])
      found.push({
        name: `search ${one.search}`,
        input: { kind: 'search', selector: one.selector },
        expected: one.search,
      });
    return found;
  },
  answer(input) {
    if (input.kind === 'search') return searchByLabels(input.selector);
    if (input.kind === 'payload') return payload(input);
    if (input.kind === 'first-release') return firstRelease(input);
    // The resource of the API is parsed before the decision.
    if (input.resource === null)
      return clusterDocument.safeParse(null).success ? 'read' : { publish: false, reason: 'resource is nil' };
    const conditions = (input.resource.conditions ?? []).map(({ age_seconds, ...condition }) => ({
      ...condition,
      ...(age_seconds === undefined
        ? {}
        : { last_updated_time: new Date(NOW.getTime() - age_seconds * 1000).toISOString() }),
    }));
    const { generation } = input.resource;
    if (input.kind === 'expressions') return byExpressions(input.ages, clusterOf(generation, conditions));
    const ages = {
      maxAgeSeconds: input.ages.reconciled_max_age_s,
      debounceSeconds: input.ages.not_reconciled_max_age_s,
    };
    return decideToPublish({ generation, conditions }, NOW, ages);
  },
  mutation: {
    file: 'runtime/pull-secret-adapter/sentinel/sentinel.ts',
    replace: 'age > limit',
    by: 'age >= limit',
  },
};

function clusterOf(
  generation: number,
  conditions: readonly Condition[],
  owner: object = {},
): HyperfleetCluster {
  return clusterDocument.parse({ id: RESOURCE.id, generation, status: { conditions }, ...owner });
}

function byExpressions({ expressions = {} }: File['defaults'], cluster: HyperfleetCluster): unknown {
  const { result, ...params } = expressions;
  const { decide } = sentinelSettings({}, { message_decision: { params, result } }).messages;
  const { publish, reason, failed } = decide?.(cluster, NOW) ?? {};
  return failed === true ? `failed: ${reason}` : { publish, reason };
}

/** The shipped rule, asked about a cluster as the first release saw it, in that release's words. */
function firstRelease({ ready, age, observed }: Extract<Input, { kind: 'first-release' }>): unknown {
  const { publish } = decideToPublish(
    {
      generation: 1,
      conditions: [
        {
          type: 'Reconciled',
          status: ready ? 'True' : 'False',
          observed_generation: observed,
          last_updated_time: new Date(NOW.getTime() - age * 1000).toISOString(),
        },
      ],
    },
    NOW,
  );
  if (observed === 0) return { publish, reason: 'generation changed' };
  return { publish, reason: publish ? 'max age exceeded' : 'max age not exceeded' };
}

function plain(def: Readonly<Record<string, unknown>>): unknown {
  return Object.fromEntries(
    Object.entries(def).map(([key, path]) => [
      key,
      RESOURCE[String(path).replace('resource.', '') as keyof typeof RESOURCE],
    ]),
  );
}

function payload(input: Extract<Input, { kind: 'payload' }>): unknown {
  const owner = input.owner ? { owner_references: { id: 'cls-0' } } : {};
  let data: Readonly<Record<string, unknown>>;
  try {
    data = messageData(input.def as DataNode)(clusterOf(RESOURCE.generation, [], owner), '');
  } catch {
    return 'error';
  }
  if (input.omitted.length === 0) return data;
  return { omitted: input.omitted.filter((name) => !(name in data)) };
}
