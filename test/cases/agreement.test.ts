/** The same dump, asked of every command: what one finds none denies, and says it in the same words. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { StatusRow } from '../../runtime/diagnose/checks/status.ts';
import type { Report, ReportCluster } from '../../runtime/diagnose/model/cluster.ts';
import type { Cause, Explanation, Finding } from '../../runtime/diagnose/model/types.ts';
import { objectsOf, readCases } from '../conformance/suites/pull-failures/read.ts';
import { runInProcess } from '../support/in-process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const here = import.meta.dirname;
const root = join(here, '../..');
const work = tempFolder();

async function json<T>(...args: readonly string[]): Promise<T> {
  const ran = await runInProcess([...args, '-o', 'json']);
  assert.notEqual(ran.stdout, '', `${args.join(' ')}\n${ran.stderr}`);
  return JSON.parse(ran.stdout) as T;
}

/** Failing pods with texts of real kubelets and runtimes, a dozen in one dump. */
function failingDumps(): readonly string[] {
  const folder = join(root, 'test/conformance/cases/pull-failures');
  const inputs = readdirSync(folder).flatMap((file) =>
    readCases(JSON.parse(readFileSync(join(folder, file), 'utf8'))).map(({ input }) => input),
  );
  const dumps = Object.groupBy(inputs, (_input, at) => Math.floor(at / 12));
  return Object.entries(dumps).map(([number, some = []]) => {
    const items = some.flatMap((input, at) =>
      objectsOf(input).map((object): unknown =>
        JSON.parse(JSON.stringify(object).replaceAll('"app-0', `"app-${at}`)),
      ),
    );
    const file = join(work, `failing-${number}.json`);
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    return file;
  });
}

const dumps = [
  ...readdirSync(here)
    .flatMap((name) => ['all.yaml', 'all.json', 'out.yaml', 'in'].map((part) => join(here, name, part)))
    .filter((path) => existsSync(path)),
  ...[
    'examples/fleet',
    'examples/troubled',
    'examples/credential-tests/manifests',
    'examples/gitops-repository/manifests',
  ].map((path) => join(root, path)),
  ...failingDumps(),
];

test('there are thirty dumps', () => assert.ok(dumps.length >= 30, `${dumps.length}`));

/** Workloads and pods that are asked about one by one. */
const MOST = 12;

/** Problems of a cluster's objects in the report. */
function casesOf({ problems }: Report, { name }: ReportCluster) {
  return problems.flatMap(({ cases }) => cases).filter(({ cluster }) => cluster === name);
}

interface Asked {
  readonly cluster: ReportCluster;
  /** Whether the Secret's name exists in one cluster only. */
  readonly isOnly: boolean;
  /** The flags that lead to it. */
  readonly where: readonly string[];
  readonly cases: ReturnType<typeof casesOf>;
  readonly problems: readonly Finding[];
}

/** Every failing pod is in the report, with the same finding, and the other way round. */
async function doctorAgrees({ where, cases }: Asked): Promise<void> {
  const { causes } = await json<{ readonly causes: readonly Cause[] }>('doctor', '--all', '-A', ...where);
  const said = causes.flatMap((one) => one.cases).map(({ cluster: _cluster, ...one }) => one);
  for (const { subject, check, message } of said)
    assert.ok(
      cases.some((one) => one.subject === subject && one.check === check && one.message === message),
      `report says nothing of ${subject}: ${message}`,
    );
  for (const { subject, message } of cases.filter((one) => one.cause !== undefined))
    assert.ok(
      !subject.startsWith('Pod/') || said.some((one) => one.subject === subject && one.message === message),
      `doctor --all says nothing of ${subject}: ${message}`,
    );
}

/** The problems of `status` are in the report, and the report marks no other status as a problem. */
async function statusAgrees({ where, cases }: Asked): Promise<void> {
  const rows = await json<readonly StatusRow[]>('status', ...where);
  for (const { subject, check, severity, message } of rows) {
    const own = cases.filter((one) => one.subject === subject && one.system !== undefined);
    if (severity === 'warning' && !subject.startsWith('PullStatus/kube-system/node-'))
      assert.ok(
        own.some((one) => one.check === check && one.message === message),
        `report says nothing of ${subject}: ${message}`,
      );
    if (severity !== 'warning') assert.deepEqual(own, []);
  }
}

/** A Secret that the report faults has the same fault in validate, and so has a mirror set that is refused. */
function validateAgrees({ cluster, problems, isOnly }: Asked): void {
  const secrets = cluster.namespaces.flatMap(({ name, secrets: all }) =>
    all.map((secret) => ({ ...secret, subject: `Secret/${name}/${secret.name}` })),
  );
  for (const { subject, fault } of secrets) {
    const own = problems.filter((one) => one.subject === subject);
    if (fault === undefined) assert.ok(!isOnly || own.every(({ severity }) => severity !== 'error'), subject);
    else
      assert.ok(
        own.some(({ message }) => fault.includes(message)),
        `validate does not say of ${subject} that it ${fault}`,
      );
  }
  for (const { severity, code } of cluster.mirrors.refusals)
    assert.ok(
      problems.some((one) => one.check === code && one.severity === severity),
      `validate says nothing of ${code}`,
    );
}

/** The first that is broken of one object is the same everywhere. */
async function objectAgrees(object: string, { cluster, where, cases }: Asked): Promise<void> {
  const [kind = '', namespace = '', name = ''] = object.split('/');
  const one = [`${kind.toLowerCase()}/${name}`, '-n', namespace, ...where];
  const { findings } = await json<{ readonly findings: readonly Finding[] }>('doctor', ...one);
  const broken = findings.find(({ severity }) => severity === 'error');
  const own = cases.filter(({ subject, pods }) => subject === object && pods !== undefined);
  assert.deepEqual(
    own.map(({ check, message }) => [check, message]),
    broken === undefined ? [] : [[broken.check, broken.message]],
    object,
  );
  if (broken?.check === 'image') {
    const refused = await runInProcess(['explain', ...one]);
    assert.equal(refused.code, 1);
    assert.ok(`${refused.stdout}${refused.stderr}`.includes(broken.message));
    return;
  }
  const told = [await json<Explanation | readonly Explanation[]>('explain', ...one)].flat();
  const firsts = (told as readonly Explanation[]).map(({ findings: all }) =>
    all.find((it) => it.subject === object),
  );
  // What doctor cannot know, explain and report do not know either.
  const isUnknown = (all: readonly Finding[]): boolean => all.some((it) => it.severity === 'unknown');
  if (broken === undefined && findings.some((it) => it.check === 'credential' && it.severity === 'unknown')) {
    assert.ok((told as readonly Explanation[]).some((it) => isUnknown(it.findings) && !it.kubelet.anonymous));
    assert.ok(cluster.pulls.some((pull) => pull.object === object && pull.verdict === 'unknown'));
    assert.notEqual(cluster.verdict, 'ok');
  }
  // Other images of the pod show only findings that also apply to them.
  if (broken === undefined) assert.ok(firsts.every((first) => first === undefined));
  else
    assert.ok(
      firsts.some((first) => isDeepStrictEqual(first, broken)),
      JSON.stringify([firsts, broken]),
    );
}

for (const dump of dumps)
  test(dump.startsWith(work) ? dump.slice(work.length + 1) : dump.slice(root.length + 1), async () => {
    const report = await json<Report>('report', '--from', dump);
    const { problems } = await json<{ readonly problems: readonly Finding[] }>('validate', dump);
    const isOnly = report.clusters.length === 1;
    for (const cluster of report.clusters) {
      const where = ['--from', dump, ...(isOnly ? [] : ['--cluster', cluster.name])];
      const asked = { cluster, isOnly, where, problems, cases: casesOf(report, cluster) };
      await doctorAgrees(asked);
      await statusAgrees(asked);
      validateAgrees(asked);
      const objects = [...new Set(cluster.pulls.map(({ object }) => object))].slice(0, MOST);
      for (const object of objects) await objectAgrees(object, asked);
    }
  });
