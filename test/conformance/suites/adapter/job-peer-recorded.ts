import { gcpLabels } from '../../../../runtime/pull-secret-adapter/names.ts';
import { type Fault, SecretManagerDouble } from '../../../pull-secret-adapter/doubles/secret-manager.ts';
import { runJobHere } from '../../../pull-secret-adapter/run-job.ts';
import type { ConformanceCase, ConformanceSuite } from '../../suite.ts';

interface Recorded {
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  readonly preexisting: readonly (
    | string
    | {
        readonly name: string;
        readonly labels?: Record<string, string>;
        readonly versions?: readonly string[];
      }
  )[];
  readonly faults: readonly Fault[];
  readonly metadata_mode: string;
  readonly exit_code: number;
  readonly rpc_log: readonly {
    readonly rpc: string;
    readonly request: { readonly secret?: { readonly labels?: Record<string, string> } };
  }[];
  readonly versions_after: Readonly<Record<string, number>>;
}

/** The part of the recording that any good implementation shares: success, stored content, labels. */
interface Answer {
  readonly ok: boolean;
  readonly versions: Readonly<Record<string, number>>;
  readonly labels?: Readonly<Record<string, string>>;
}

export const suite: ConformanceSuite<Recorded, Answer> = {
  cases(document) {
    const { cases } = document as { cases: readonly Recorded[] };
    return cases.map((one): ConformanceCase<Recorded, Answer> => {
      const labels = one.rpc_log.find((call) => call.rpc === 'CreateSecret' && one.exit_code === 0)?.request
        .secret?.labels;
      return {
        name: one.name,
        input: one,
        expected: {
          ok: one.exit_code === 0,
          versions: one.versions_after,
          ...(labels === undefined ? {} : { labels }),
        },
      };
    });
  },
  async answer(input) {
    const double = await SecretManagerDouble.start();
    try {
      const before = prepare(double, input);
      const { PULL_SECRET_DATA: data = '', ...env } = input.env;
      const run = await runJobHere(
        double,
        { GCP_PROJECT_ID: undefined, CLUSTER_ID: undefined, ...env, PULL_SECRET_DATA: spelledOut(data) },
        { dryRun: input.args.includes('--dry-run') },
      );
      const stored = [...double.secrets].map(([path, secret]): [string, number] => [
        path,
        secret.versions.length,
      ]);
      const created = double.calls.find((call) => call.rpc === 'CreateSecret' && call.code === 'OK');
      const labels = (created?.body as { labels?: Record<string, string> } | undefined)?.labels;
      const versions = Object.fromEntries(stored.filter(([path, count]) => count > 0 || before.has(path)));
      return { ok: run.code === 0, versions, ...(labels === undefined || run.code !== 0 ? {} : { labels }) };
    } finally {
      await double.close();
    }
  },
  mutation: {
    file: 'runtime/pull-secret-adapter/names.ts',
    replace: "'resource-type': 'pull-secret'",
    by: "'resource-type': 'other'",
  },
};

/** Secrets of an earlier run of the same cluster carry its labels. */
function prepare(double: SecretManagerDouble, input: Recorded): ReadonlySet<string> {
  const before = new Set<string>();
  for (const one of input.preexisting) {
    const path = typeof one === 'string' ? one : one.name;
    const own = { ...gcpLabels({ id: input.env['CLUSTER_ID'] ?? '' }) };
    const given: { labels?: Record<string, string>; versions?: readonly string[] } =
      typeof one === 'string' ? {} : one;
    const versions = (given.versions ?? []).map((text) => ({
      state: 'ENABLED' as const,
      data: Buffer.from(text),
    }));
    double.put(path, { labels: given.labels ?? own, versions });
    before.add(path);
  }
  double.faults = input.faults;
  double.identity.metadata = input.metadata_mode === 'ok' ? 'ok' : 'down';
  return before;
}

/** The recording abbreviates long texts. */
function spelledOut(text: string): string {
  const repeated = /^<json auths\.(\w+)\.auth = "(.)" repeated (\d+)>$/.exec(text);
  if (repeated === null) return text;
  const [, registry = '', letter = '', count = ''] = repeated;
  return JSON.stringify({ auths: { [registry]: { auth: letter.repeat(Number(count)) } } });
}
