/** What a tenant sees of a report: a property over random clusters, and a table of texts that must not get through. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { reportHtml } from '../../runtime/rules/report/html.ts';
import type { Report, ReportCase, ReportPull } from '../../runtime/rules/report/types.ts';
import { tenantView } from '../../runtime/rules/report-page/tenant-view.ts';
import { suite } from '../support/suite.ts';

const test = suite('the view of a tenant');

/** Everything of one namespace, with its mark in every name, host, digest and text. */
interface Planted {
  readonly namespace: string;
  readonly mark: string;
  readonly count: number;
}

/** Links whose texts `doctor` makes of other things than the namespace: those must be written anew. */
const FOREIGN_LINKS = ['places', 'injection', 'credential', 'mirror-credential', 'node', 'secrets-readable'];

function pullsOf({ namespace, mark, count }: Planted, foreign: string): readonly ReportPull[] {
  return Array.from({ length: count }, (_, at) => {
    const object = `Deployment/${namespace}/${mark}-web-${at}`;
    const image = `${mark}.example.com/app@sha256:${mark}`;
    const entry = { key: `${foreign}.example.com`, source: `Secret/${foreign}/${foreign}-pull` };
    return {
      id: `cluster ${object} ${image}`,
      namespace,
      object,
      pods: 41 + at,
      image,
      verdict: 'broken',
      secrets: [
        { name: `${mark}-gone`, listedBy: `ServiceAccount/${namespace}/${mark}`, state: 'missing' },
        { name: `${mark}-copy`, listedBy: `PullSecretProfile/${foreign}`, state: 'found' },
      ],
      kubelet: {
        blocked: `Secret/${foreign}/x has an entry "${foreign}.example.com"`,
        tried: [{ key: `${mark}.example.com`, source: `Secret/${namespace}/${mark}` }, entry],
        lost: [{ ...entry, why: `${foreign} comes first` }],
        others: 7919,
      },
      places: [
        {
          reference: `mirror.example.com/${mark}/app`,
          kind: 'mirror',
          from: `ImageTagMirrorSet/${foreign}`,
          sent: 'entry',
          entry,
        },
        { reference: image, kind: 'source', sent: 'nothing', why: `no entry but ${foreign}` },
      ],
      containerd: 'kubelet',
      skipped: [
        { reference: `mirror.example.com/${mark}`, from: `ImageTagMirrorSet/${foreign}`, why: foreign },
      ],
      findings: [{ severity: 'warning', message: `entry of ${foreign}`, fix: `ask ${foreign}` }],
    };
  });
}

function casesOf(one: Planted, foreign: string): readonly (ReportCase & { readonly cause: string })[] {
  const [pull] = pullsOf(one, foreign);
  const object = pull?.object ?? `Pod/${one.namespace}/${one.mark}`;
  const base = {
    cluster: 'cluster',
    object,
    advice: `ask ${foreign}`,
    ...(pull === undefined ? {} : { pull: pull.id }),
  };
  return [
    ...FOREIGN_LINKS.map((link) => ({ ...base, cause: `link/${link}`, message: `because of ${foreign}` })),
    { cluster: 'cluster', object: `Secret/${one.namespace}/x`, cause: 'entry/rejected', message: foreign },
    { cluster: 'cluster', object: `Node/${foreign}`, cause: 'nodes/out-of-sync', message: foreign },
    { cluster: 'cluster', object: `ImageTagMirrorSet/${foreign}`, cause: 'mirrors/x', message: foreign },
  ];
}

function reportOf(own: Planted, other: Planted): Report {
  const both = [own, other].map((one) => ({ one, foreign: one === own ? other.mark : own.mark }));
  return {
    version: 1,
    madeAt: '2026-01-01T00:00:00Z',
    source: other.mark,
    unread: [`Cannot list "Secret in ${other.mark}"`],
    changes: {
      since: other.mark,
      list: [{ what: 'key', change: 'new', cluster: 'cluster', subject: other.mark }],
    },
    clusters: [
      {
        name: 'cluster',
        verdict: 'broken',
        systems: [
          { system: 'pulls', verdict: 'broken', summary: `${other.mark} ${own.count + other.count}` },
        ],
        nodes: {
          total: 104_729,
          eligible: 104_729,
          inSync: 0,
          outOfSync: 104_729,
          ineligible: 0,
          unknown: 0,
          list: [{ name: other.mark, state: 'out-of-sync', why: other.mark }],
        },
        runtimes: ['cri-o'],
        keys: [
          { key: other.mark, source: `Secret/kube-system/${other.mark}`, state: 'used', onNodes: 104_729 },
        ],
        pulls: both.flatMap(({ one, foreign }) => pullsOf(one, foreign)),
        pullsLeftOut: 104_729,
        namespaces: both.map(({ one, foreign }) => ({
          name: one.namespace,
          secrets: [
            {
              name: `${one.mark}-copy`,
              type: 'kubernetes.io/dockerconfigjson',
              keys: [`${one.mark}.example.com`],
              copy: { profile: 'shared', of: `${foreign}/${foreign}-pull` },
            },
          ],
          grants: [],
          pulls: one.count,
          verdict: 'broken',
        })),
        mirrors: {
          state: 'rendered',
          summary: other.mark,
          rules: [{ source: other.mark, blocked: false, from: [other.mark], mirrors: [] }],
          refusals: [{ severity: 'error', code: 'x', object: other.mark, message: other.mark }],
        },
      },
    ],
    problems: both
      .flatMap(({ one, foreign }) => casesOf(one, foreign))
      .map(({ cause, ...one }) => ({
        cause,
        system: 'pulls',
        verdict: 'broken',
        title: 'Something is wrong',
        clusters: ['cluster'],
        cases: [one],
      })),
  };
}

const NAME = fc.stringMatching(/^[a-z]{6,10}$/);

test('nothing of another namespace, of nodes, of mirror sets or of the cluster is in it, whatever they are called', () => {
  fc.assert(
    fc.property(NAME, NAME, fc.nat(3), fc.nat(3), (first, second, few, more) => {
      // Marks are texts that no sentence of ours holds.
      const own: Planted = { namespace: `own-${first}`, mark: `qq${first}qq`, count: few };
      const other: Planted = { namespace: `far-${second}`, mark: `zz${second}zz`, count: more };
      const view = tenantView(reportOf(own, other), own.namespace);
      for (const text of [JSON.stringify(view), reportHtml(view)]) {
        for (const foreign of [other.mark, other.namespace, '104729', '7919'])
          assert.equal(text.includes(foreign), false, `${foreign} in ${text.slice(0, 2000)}`);
      }
      assert.equal(view.clusters[0]?.pulls.length, few);
    }),
  );
});

test("what is the tenant's own is there: images, Secrets, what is sent, what to do", () => {
  const own: Planted = { namespace: 'shop', mark: 'qqshopqq', count: 2 };
  const view = tenantView(reportOf(own, { namespace: 'other', mark: 'zzotherzz', count: 1 }), 'shop');
  const [cluster] = view.clusters;
  assert.equal(view.namespace, 'shop');
  assert.equal(cluster?.verdict, 'broken');
  assert.deepEqual(cluster?.pulls[0]?.kubelet.tried, [
    { key: 'qqshopqq.example.com', source: 'Secret/shop/qqshopqq' },
    { key: 'qqshopqq.example.com', source: 'the platform' },
  ]);
  assert.deepEqual(
    cluster?.pulls[0]?.secrets.map(({ name, listedBy }) => `${name} by ${listedBy}`),
    ['qqshopqq-gone by ServiceAccount/shop/qqshopqq', 'qqshopqq-copy by the platform'],
  );
  assert.deepEqual(
    view.problems.map(({ cause }) => cause).toSorted(),
    FOREIGN_LINKS.map((link) => `link/${link}`).toSorted(),
  );
  for (const { cases } of view.problems) assert.ok((cases[0]?.advice ?? '') !== '', JSON.stringify(cases));
});

test('a namespace that the cluster does not have is an empty one', () => {
  const view = tenantView(
    reportOf({ namespace: 'a', mark: 'qqaqq', count: 1 }, { namespace: 'b', mark: 'zzbzz', count: 1 }),
    'c',
  );
  assert.deepEqual([view.problems, view.clusters[0]?.pulls, view.clusters[0]?.namespaces], [[], [], []]);
});

test('a name that begins as another one does is another namespace', () => {
  const view = tenantView(
    reportOf(
      { namespace: 'shop', mark: 'qqaqq', count: 1 },
      { namespace: 'shop-b', mark: 'zzbzz', count: 1 },
    ),
    'shop',
  );
  assert.equal(JSON.stringify(view).includes('zzbzz'), false);
});

test.run();
