/** commit(): what the API server judged and refused is not sent again with every event. */
import assert from 'node:assert/strict';
import type { Author, Delta } from '../../runtime/controller/changes.ts';
import type { Cluster } from '../../runtime/controller/cluster.ts';
import { commit, commitStatus } from '../../runtime/controller/commit.ts';
import { FightBreaker } from '../../runtime/controller/conflict-breaker.ts';
import { HeldWrites } from '../../runtime/controller/held-writes.ts';
import { apiErrorOf } from '../../runtime/kube/api-error.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('commit() and refusals');
const AUTHOR: Author = { reconciler: 'global-pull-secret', key: { scope: 'local', name: 'global' } };
const REF = { role: 'hosted', apiVersion: 'v1', kind: 'ConfigMap', namespace: 'web', name: 'a' } as const;
const LABELS = { 'pullwright.dev/owner': AUTHOR.reconciler };

interface Attempt {
  readonly verb: 'created' | 'configured' | 'removed' | 'status';
  readonly atMs: number;
  /** Content that is written. */
  readonly content?: string;
  /** `resourceVersion` of what is there. */
  readonly version?: string;
}

function objectOf({ content = 'wanted', version }: Attempt) {
  const { role: _role, name, namespace, ...type } = REF;
  const resourceVersion = version === undefined ? {} : { resourceVersion: version };
  const metadata = { name, namespace, labels: LABELS, uid: 'u', ...resourceVersion };
  return { ...type, metadata, data: { content } };
}

/** A cluster that answers every write with `status`, and counts them. */
function clusterWith(status: number, body: unknown) {
  let now = 0;
  let sent = 0;
  let present: object | undefined;
  const refuse = (): Promise<never> => {
    sent += 1;
    return Promise.reject(apiErrorOf({ verb: 'apply', subject: 'ConfigMap/web/a', status, body }));
  };
  const cluster = {
    assertMayWrite: () => undefined,
    fights: new FightBreaker(() => now),
    held: new HeldWrites(() => now),
    cache: { observe: () => undefined, store: { get: () => present } },
    client: { apply: refuse, remove: refuse, get: () => Promise.resolve(undefined) },
  } as unknown as Cluster;
  return {
    attempt: async (attempt: Attempt): Promise<string> => {
      now = attempt.atMs;
      const object = objectOf(attempt);
      if (attempt.verb === 'status') {
        present = object;
        const patch = { ref: REF, status: { content: attempt.content ?? 'wanted' } };
        return commitStatus(patch, AUTHOR, cluster).then(String, (error: { code: string }) => error.code);
      }
      const change = { verb: attempt.verb, ref: REF, desired: object, before: object, differences: [] };
      const done = await commit(
        (attempt.verb === 'created' ? { ...change, before: undefined } : change) as unknown as Delta,
        AUTHOR,
        cluster,
      );
      return done.verb === 'failed' ? done.problem.code : done.verb;
    },
    sent: () => sent,
  };
}

interface Row extends Case {
  readonly status: number;
  readonly body?: unknown;
  readonly attempts: readonly Attempt[];
  readonly sent: number;
  /** What is said of each. */
  readonly code: string;
}

const hundred = (verb: Attempt['verb'], everyMs: number): readonly Attempt[] =>
  Array.from({ length: 100 }, (_, index) => ({ verb, atMs: index * everyMs, version: '7' }));
const TERMINATING = {
  details: { causes: [{ reason: 'NamespaceTerminating', field: 'metadata.namespace', message: '' }] },
};

table<Row>(
  test,
  [
    {
      name: 'a hundred events in two seconds, content invalid',
      reason: 'the answer is known',
      status: 422,
      attempts: hundred('configured', 20),
      sent: 1,
      code: 'Invalid',
    },
    {
      name: 'events over a hundred seconds',
      reason: 'what judges may have changed: it is asked again',
      status: 422,
      attempts: hundred('configured', 1000),
      sent: 10,
      code: 'Invalid',
    },
    {
      name: 'no right to create',
      reason: 'nothing gives one within a blink',
      status: 403,
      attempts: hundred('created', 20),
      sent: 1,
      code: 'Forbidden',
    },
    {
      name: 'no right to remove',
      reason: 'the same',
      status: 403,
      attempts: hundred('removed', 20),
      sent: 1,
      code: 'Forbidden',
    },
    {
      name: 'a status that its schema refuses',
      reason: 'statuses are writes too',
      status: 422,
      attempts: hundred('status', 20),
      sent: 1,
      code: 'Invalid',
    },
    {
      name: 'other content',
      reason: 'nobody has judged it',
      status: 422,
      attempts: [
        { verb: 'configured', atMs: 0, content: 'a', version: '7' },
        { verb: 'configured', atMs: 1, content: 'b', version: '7' },
      ],
      sent: 2,
      code: 'Invalid',
    },
    {
      name: 'the object has changed',
      reason: 'the same content may suit it now',
      status: 422,
      attempts: [
        { verb: 'configured', atMs: 0, version: '7' },
        { verb: 'configured', atMs: 1, version: '8' },
      ],
      sent: 2,
      code: 'Invalid',
    },
    {
      name: 'a server in trouble',
      reason: 'it judged nothing; the back-off of the queue is for that',
      status: 503,
      attempts: hundred('configured', 20),
      sent: 100,
      code: 'ServiceUnavailable',
    },
    {
      name: 'a namespace that goes away',
      reason: 'it may be made anew in this second',
      status: 403,
      body: TERMINATING,
      attempts: hundred('created', 20),
      sent: 100,
      code: 'NamespaceTerminating',
    },
  ],
  async ({ status, body = {}, attempts, sent, code }) => {
    const cluster = clusterWith(status, body);
    for (const attempt of attempts) assert.equal(await cluster.attempt(attempt), code);
    assert.equal(cluster.sent(), sent);
  },
);

test.run();
