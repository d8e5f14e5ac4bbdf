/** The Secret for HyperShift, written with exactly the rights that the charts grant. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { type Case, type TestSuite, table } from '../support/suite.ts';
import { type JobPlane, secretNamed } from './job-plane.ts';
import { type JobRunner, pullSecret } from './run-job.ts';

const LABEL = 'hyperfleet.io/cluster-id';

interface Row extends Case {
  /** The Secret that is there; absent: none. */
  readonly present?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly code: number;
  readonly is: string;
  readonly says?: RegExp;
  /** Whether the Secret contains the pull secret afterwards. */
  readonly written: boolean;
  /** A label that is there afterwards. */
  readonly keeps?: readonly [string, string];
}

const OTHER = {
  type: 'kubernetes.io/dockerconfigjson',
  data: { '.dockerconfigjson': Buffer.from('{}').toString('base64') },
};
const WRITTEN = { code: 0, is: 'SecretUnchanged', written: true } as const;
const CONFLICT = { code: 73, is: 'PullSecretConflict', written: false } as const;
const ROWS: readonly Row[] = [
  { name: 'no Secret', reason: 'made', ...WRITTEN },
  {
    name: 'a Secret of this cluster',
    reason: 'changed; what others put there stays',
    present: { ...OTHER, metadata: { labels: { [LABEL]: 'cls-123', team: 'a' } } },
    ...WRITTEN,
    keeps: ['team', 'a'],
  },
  {
    name: 'a Secret of another cluster',
    reason: 'never overwritten, not even adopted',
    present: { ...OTHER, metadata: { labels: { [LABEL]: 'cls-9' } } },
    env: { ADOPT: 'true' },
    ...CONFLICT,
    says: /belongs to another cluster/,
  },
  { name: 'a Secret of nobody', reason: 'not ours', present: OTHER, ...CONFLICT, says: /has no label/ },
  {
    name: 'a Secret of nobody, adopted',
    reason: 'said so',
    present: OTHER,
    env: { ADOPT: 'true' },
    ...WRITTEN,
  },
  {
    name: 'a Secret of another type',
    reason: 'a type cannot be changed',
    present: { type: 'Opaque', metadata: { labels: { [LABEL]: 'cls-123' } } },
    ...CONFLICT,
    says: /type/,
  },
  {
    name: 'an immutable Secret',
    reason: 'cannot be changed',
    present: { ...OTHER, immutable: true, metadata: { labels: { [LABEL]: 'cls-123' } } },
    ...CONFLICT,
    says: /immutable/,
  },
  {
    name: 'a namespace that is not there',
    reason: 'comes later: tried again soon, not in an hour',
    env: { MANAGEMENT_NAMESPACE: 'clusters-none' },
    code: 75,
    is: 'ManagementNamespaceMissing',
    says: /does not exist yet/,
    written: false,
  },
  {
    name: 'another name in the same namespace',
    reason: 'the role is for one name',
    env: { MANAGEMENT_SECRET_NAME: 'other' },
    code: 75,
    is: 'ManagementNamespaceMissing',
    written: false,
  },
  {
    name: 'an API server that is not there',
    reason: 'later',
    env: { KUBECONFIG: '/nonexistent/kubeconfig' },
    code: 75,
    is: 'ManagementClusterUnavailable',
    written: false,
  },
];

export function jobManagementCases(test: TestSuite, cluster: JobPlane, run: JobRunner): void {
  const { gcp, plane } = cluster;
  const env = { KUBECONFIG: cluster.kubeconfig, MANAGEMENT_NAMESPACE: 'clusters-cls-123' };
  const at = secretNamed('clusters-cls-123', 'pull-secret');
  const others = { ...at, ...OTHER, metadata: { ...at.metadata, labels: { [LABEL]: 'cls-9' } } };

  /** The text that the Secret holds. */
  const held = async (): Promise<string> => {
    const { data = {} } = ((await plane.get(at)) ?? {}) as { data?: Readonly<Record<string, string>> };
    return Buffer.from(data['.dockerconfigjson'] ?? '', 'base64').toString();
  };
  const version = async (): Promise<unknown> => (await plane.get(at))?.metadata['resourceVersion'];

  test('the right to write comes with a binding', async () => {
    const refused = await run(gcp, env);
    assert.deepEqual([refused.code, refused.result.reason], [75, 'ManagementNamespaceMissing']);
    await cluster.bind('cls-123');
    await eventually(async () => assert.equal((await run(gcp, env)).code, 0));
  });

  table(test, ROWS, async (row) => {
    await plane.remove(at);
    if (row.present !== undefined) await plane.apply(merged(at, row.present));
    const before = await version();
    const { code, result } = await run(gcp, { ...env, ...row.env });
    assert.deepEqual([code, result.reason], [row.code, row.is], result.message);
    if (row.says !== undefined) assert.match(result.message, row.says);
    assert.equal((await held()) === pullSecret(), row.written);
    if (!row.written) assert.equal(await version(), before);
    const labels = (await plane.get(at))?.metadata['labels'] as Readonly<Record<string, string>> | undefined;
    if (row.keeps !== undefined) assert.equal(labels?.[row.keeps[0]], row.keeps[1]);
  });

  test('a second run sends nothing to the API server but one look', async () => {
    await plane.remove(at);
    await run(gcp, env);
    const [first, lines] = [await version(), cluster.audit().length];
    assert.equal((await run(gcp, env)).code, 0);
    assert.equal(await version(), first);
    const verbs = cluster
      .audit()
      .slice(lines)
      .map((line) => line.verb);
    assert.deepEqual(verbs, ['get']);
  });

  test('a dry run goes through the write and keeps nothing: by the log of Google and the audit of the API server', async () => {
    await plane.remove(at);
    gcp.secrets.clear();
    gcp.calls.length = 0;
    const lines = cluster.audit().length;
    const { code, result } = await run(gcp, env, { dryRun: true });
    assert.equal(code, 0, result.message);
    assert.deepEqual([result.details['plan'], result.details['managementPlan']], ['create', 'create']);
    const rpcs = gcp.calls.map((call) => call.rpc);
    assert.deepEqual(rpcs, ['GetSecret', 'TestProjectPermissions']);
    const asked = cluster
      .audit()
      .slice(lines)
      .map((line) => [line.verb, line.requestURI.includes('dryRun=All')]);
    assert.deepEqual(asked, [
      ['get', false],
      ['patch', true],
    ]);
    assert.equal(await plane.get(at), undefined);
    const none = await run(gcp, { ...env, MANAGEMENT_NAMESPACE: 'clusters-none' }, { dryRun: true });
    assert.equal(none.result.reason, 'ManagementNamespaceMissing');
  });

  test('deletion removes the Secret of this cluster and leaves another one', async () => {
    await run(gcp, env);
    const deletion = { ...env, JOB_MODE: 'delete', PULL_SECRET_DATA: '' };
    assert.equal((await run(gcp, deletion)).result.reason, 'SecretDeleted');
    assert.equal(await plane.get(at), undefined);
    await plane.apply(others);
    assert.equal((await run(gcp, deletion)).code, 0);
    assert.notEqual(await plane.get(at), undefined);
  });
}

function merged(at: TestObject, present: Readonly<Record<string, unknown>>): TestObject {
  const { metadata, ...rest } = present as { metadata?: object };
  return { ...at, ...rest, metadata: { ...at.metadata, ...metadata } };
}
