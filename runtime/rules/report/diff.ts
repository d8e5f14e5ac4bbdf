/** What is different between two reports. The earlier one is a file that anybody may have written. */
import { recordOf, textOf } from '../record.ts';
import type { Report, ReportChange, ReportChanges } from './types.ts';

/** Of a report, what is compared: by name, in order. */
interface Snapshot {
  readonly verdicts: ReadonlyMap<string, string>;
  readonly nodes: ReadonlyMap<string, string>;
  readonly mirrors: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, string>;
  readonly problems: ReadonlyMap<string, string>;
}

/** Stands between the cluster and the rest of a name: no name of Kubernetes has it. */
const BETWEEN = '\n';

/**
 * Compares; undefined when `before` is no report.
 *
 * @param before an earlier report, as its JSON says
 * @example
 * ```ts
 * import { reportChanges } from './diff.ts';
 * import assert from 'node:assert/strict';
 *
 * const now = { version: 1, madeAt: '', source: '', clusters: [], problems: [], unread: [] } as const;
 * const problems = [{ title: 'A credential has ended', cases: [{ cluster: 'prod', object: 'Secret/a', message: 'ended' }] }];
 * const changes = reportChanges({ ...now, problems }, now);
 * assert.deepEqual(changes?.list, [{ what: 'problem', change: 'gone', cluster: 'prod', subject: 'Secret/a', before: 'A credential has ended: ended' }]);
 * assert.equal(reportChanges({ kind: 'List' }, now), undefined);
 * ```
 */
export function reportChanges(before: unknown, after: Report): ReportChanges | undefined {
  const { version, madeAt, clusters, problems } = recordOf(before);
  if (version !== 1 || typeof madeAt !== 'string' || !Array.isArray(clusters) || !Array.isArray(problems))
    return undefined;
  const old = snapshotOf(before);
  const now = snapshotOf(after);
  return {
    since: madeAt,
    list: [
      ...changed('problem', old.problems, now.problems),
      ...clusterChanges(old.verdicts, now.verdicts),
      ...changed('key', old.keys, now.keys),
      ...changed('nodes', old.nodes, now.nodes),
      ...changed('mirrors', old.mirrors, now.mirrors),
    ],
  };
}

function clusterChanges(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly ReportChange[] {
  return changed('verdict', before, after).map((one) =>
    one.change === 'changed' ? one : { ...one, what: 'cluster' },
  );
}

function changed(
  what: ReportChange['what'],
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly ReportChange[] {
  const names = [...new Set([...after.keys(), ...before.keys()])];
  return names.flatMap((name): ReportChange[] => {
    const old = before.get(name);
    const now = after.get(name);
    if (old === now) return [];
    const [cluster = '', subject = ''] = name.split(BETWEEN, 2);
    return [
      {
        what,
        change: old === undefined ? 'new' : now === undefined ? 'gone' : 'changed',
        cluster,
        subject,
        ...(old === undefined ? {} : { before: old }),
        ...(now === undefined ? {} : { after: now }),
      },
    ];
  });
}

function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(recordOf) : [];
}

function snapshotOf(report: unknown): Snapshot {
  const { clusters, problems } = recordOf(report);
  const all = listOf(clusters).map((cluster): Named => ({ ...cluster, name: textOf(cluster['name']) }));
  return {
    verdicts: new Map(all.map((one) => [one.name, textOf(one['verdict'])])),
    nodes: new Map(all.map((one) => [one.name, nodesText(one['nodes'])])),
    mirrors: new Map(
      all.flatMap((one) =>
        listOf(recordOf(one['mirrors'])['rules']).map((rule): [string, string] => [
          `${one.name}${BETWEEN}${textOf(rule['source'])}`,
          listOf(rule['mirrors'])
            .map(({ location }) => textOf(location))
            .join(', '),
        ]),
      ),
    ),
    keys: new Map(
      all.flatMap((one) =>
        listOf(one['keys']).map((key): [string, string] => [
          `${one.name}${BETWEEN}${textOf(key['key'])} (${textOf(key['source'])})`,
          textOf(key['state']),
        ]),
      ),
    ),
    problems: problemsOf(problems),
  };
}

type Named = Readonly<Record<string, unknown>> & { readonly name: string };

/** Several problems of one object with one title are told apart by what they say. */
function problemsOf(problems: unknown): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const { title, cases } of listOf(problems))
    for (const one of listOf(cases)) {
      const text = `${textOf(title)}: ${textOf(one['message'])}`;
      found.set([textOf(one['cluster']), textOf(one['object']), text].join(BETWEEN), text);
    }
  return found;
}

function nodesText(nodes: unknown): string {
  const { total, eligible, inSync } = recordOf(nodes);
  return `${countOf(inSync)} in sync of ${countOf(eligible)} eligible of ${countOf(total)}`;
}

function countOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
