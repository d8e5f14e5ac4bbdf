/** Catalogs of hosted clusters: look-ups in registries, and the objects by their results. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { LookupResult } from '../../runtime/engine/contract.ts';
import { NOT_ASKED } from '../../runtime/engine/lookups.ts';
import { meta, refOf } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import {
  annotated,
  CATALOG_NAMES,
  CATALOGS,
  DEPLOYMENTS,
  DIGEST,
  facts,
  GOOD,
  GOOD_CATALOGS,
  images,
  KNOWN,
  OTHER_STREAM,
  stream,
} from './catalog-objects.ts';
import {
  condition,
  deployment,
  deploymentOf,
  hostedCluster,
  NAMESPACE,
  podSpec,
  run,
  statusOf,
  verbsOf,
} from './run-once.ts';

const ABSENT: LookupResult = { ok: false, reason: 'manifest unknown' };
const DOWN: LookupResult = { ok: false, reason: 'the registry did not answer within 5 s' };

test('asks for the digest of the newest version first', () => {
  const out = run([hostedCluster(), OTHER_STREAM], CATALOGS);
  assert.deepEqual(
    out.needs.map((need) => need.image),
    [
      'registry.redhat.io/redhat/certified-operator-index:v4.22',
      'registry.redhat.io/redhat/community-operator-index:v4.22',
      'registry.redhat.io/redhat/redhat-operator-index:v4.22',
    ],
  );
  assert.equal(stream(out), undefined);
});

test('asks with the pull secret of the hosted cluster, and unasked only where it says so', () => {
  const needsWith = (options: object): readonly unknown[] =>
    run([hostedCluster(), OTHER_STREAM], { options: { catalogs: true, ...options } }).needs.map(
      ({ pullSecret, asked }) => ({ pullSecret, asked }),
    );
  const pullSecret = { namespace: NAMESPACE, name: 'pull-secret' };
  assert.deepEqual(needsWith({})[0], { pullSecret, asked: undefined });
  assert.deepEqual(needsWith({ askRegistries: true })[0], { pullSecret, asked: true });
});

test('makes the ImageStream of what is there', () => {
  const out = run([hostedCluster(), OTHER_STREAM], {
    ...CATALOGS,
    facts: KNOWN,
  });
  assert.deepEqual(images(out), [
    'certified-operators registry.redhat.io/redhat/certified-operator-index:v4.22',
    'community-operators registry.redhat.io/redhat/community-operator-index:v4.22',
    'redhat-operators registry.redhat.io/redhat/redhat-operator-index:v4.22',
  ]);
});

test('a registry that does not answer changes nothing', () => {
  const first = run([hostedCluster(), OTHER_STREAM], { ...CATALOGS, facts: KNOWN });
  const down = run([...first.management], {
    ...CATALOGS,
    facts: facts((index) => `registry.redhat.io/redhat/${index}:v4.22`, DOWN),
  });
  assert.deepEqual(images(down), images(first));
  assert.equal(condition(down, 'Ready'), 'False CatalogImageMissing');
});

test('a catalog that no mirror has comes from the source, and that is said, counted and an event', () => {
  const cluster = hostedCluster({
    'hypershift.openshift.io/olm-catalogs-is-registry-overrides': 'registry.redhat.io=mirror.example.com',
  });
  const absent = ['v4.22', 'v4.21', 'v4.20', 'v4.19'].map((tag) =>
    facts((index) => `mirror.example.com/redhat/${index}:${tag}`, ABSENT),
  );
  const out = run([cluster, OTHER_STREAM], { ...CATALOGS, facts: Object.assign({}, KNOWN, ...absent) });
  assert.match(
    images(out).join(),
    /redhat-operators registry\.redhat\.io\/redhat\/redhat-operator-index:v4\.22/,
  );
  const fallen = statusOf(out).verdicts.filter(({ reason }) => reason === 'FellBack');
  assert.deepEqual(
    fallen.map(({ subject, verdict }) => `${subject} ${verdict}`),
    CATALOG_NAMES.map((name) => `${name} Warning`),
  );
  assert.match(out.events.join(), /FellBack: redhat-operators: registry\.redhat\.io.* is used/);
  assert.equal(condition(out, 'Ready'), 'True Reconciled');
  assert.deepEqual(
    out.metrics.filter((text) => text.startsWith('pullwright_override_catalogs')),
    [
      '{"result":"annotated"} 0',
      '{"result":"found"} 0',
      '{"result":"fallback"} 3',
      '{"result":"failed"} 0',
    ].map((text) => `pullwright_override_catalogs${text}`),
  );
});

test('an older version is taken where the newest is absent', () => {
  const known = {
    ...facts((index) => `registry.redhat.io/redhat/${index}:v4.22`, ABSENT),
    ...facts((index) => `registry.redhat.io/redhat/${index}:v4.21`),
  };
  const out = run([hostedCluster(), OTHER_STREAM], { ...CATALOGS, facts: known });
  assert.deepEqual(
    images(out)[0],
    'certified-operators registry.redhat.io/redhat/certified-operator-index:v4.21',
  );
});

test('without the ImageStream API the Deployments get the digest', () => {
  const out = run([hostedCluster(), ...DEPLOYMENTS], {
    ...CATALOGS,
    facts: KNOWN,
  });
  assert.equal(
    podSpec(deploymentOf(out, 'certified-operators-catalog')).containers[0]?.image,
    `registry.redhat.io/redhat/certified-operator-index@${DIGEST}`,
  );
});

test('what HyperShift writes is observed', () => {
  const theirs: KubeObject = {
    ...OTHER_STREAM,
    metadata: {
      name: 'catalogs',
      namespace: NAMESPACE,
      uid: 'u-c',
      managedFields: [{ manager: 'hypershift-controlplane-manager', operation: 'Update' }],
    },
    spec: { tags: [] },
  };
  const out = run(
    [
      hostedCluster(),
      theirs,
      ...CATALOG_NAMES.map((name) => deployment(`${name}-catalog`, [], 'hypershift-controlplane-manager')),
    ],
    { ...CATALOGS, facts: KNOWN },
  );
  assert.deepEqual(verbsOf(out, /Deployment|ImageStream/), []);
});

test('a hosted cluster that wants no default sources gets none', () => {
  const cluster = hostedCluster({}, { configuration: { operatorhub: { disableAllDefaultSources: true } } });
  const out = run([cluster, OTHER_STREAM, ...DEPLOYMENTS], CATALOGS);
  assert.deepEqual(out.needs, []);
  assert.equal(stream(out), undefined);
});

test('where no registry may be asked, nothing is wrong and nothing is changed', () => {
  const fact: LookupResult = { ok: false, reason: NOT_ASKED };
  const out = run([hostedCluster(), OTHER_STREAM, ...DEPLOYMENTS], {
    ...CATALOGS,
    facts: facts((index) => `registry.redhat.io/redhat/${index}:v4.22`, fact),
  });
  assert.equal(condition(out, 'Ready'), 'True Reconciled');
  assert.deepEqual(verbsOf(out, /Deployment|ImageStream/), []);
});

test('in guest placement too, what is in place stays while nothing is known', () => {
  const cluster = hostedCluster({}, { olmCatalogPlacement: 'guest' });
  const other = meta('operators.coreos.com/v1alpha1 CatalogSource', {
    name: 'mine',
    namespace: 'openshift-marketplace',
    uid: 'u',
  });
  const first = run([cluster], { ...CATALOGS, hosted: [other], facts: KNOWN });
  assert.equal([...first.hosted].length, 4);
  const second = run([...first.management], { ...CATALOGS, hosted: [...first.hosted] });
  assert.equal([...second.hosted].length, 4);
  assert.equal(second.needs.length, 3);
});

// Annotations that name mirrors or images.

test('follows the annotation with a registry, and asks at the mirror first', () => {
  const cluster = hostedCluster({
    'hypershift.openshift.io/olm-catalogs-is-registry-overrides':
      'registry.redhat.io=mirror.example.com,quay.io=other.example.com',
  });
  const out = run([cluster, OTHER_STREAM], {
    ...CATALOGS,
    facts: facts((index) => `mirror.example.com/redhat/${index}:v4.22`),
  });
  assert.deepEqual(
    images(out)[0],
    'certified-operators mirror.example.com/redhat/certified-operator-index:v4.22',
  );
});

test('annotated images: no ImageStream of ours, and the images on the Deployments', () => {
  const first = run([hostedCluster(), OTHER_STREAM, ...DEPLOYMENTS], { ...CATALOGS, facts: KNOWN });
  const triggers = deploymentOf(first, 'redhat-operators-catalog')?.metadata.annotations?.[
    'image.openshift.io/triggers'
  ];
  assert.match(String(triggers), /ImageStreamTag/);
  const objects = [...first.management].map((object) =>
    object.kind === 'HostedCluster' ? hostedCluster(annotated(GOOD)) : object,
  );
  const out = run(objects, CATALOGS);
  assert.equal(stream(out), undefined);
  const changed = deploymentOf(out, 'redhat-operators-catalog');
  assert.equal(podSpec(changed).containers[0]?.image, GOOD);
  assert.equal(podSpec(changed).initContainers?.[0]?.image, GOOD);
  assert.equal(podSpec(changed).containers[1]?.image, 's');
  assert.equal(changed?.metadata.annotations?.['image.openshift.io/triggers'], '[]');
});

test('guest placement behaves alike: the image is in the CatalogSource', () => {
  const hosted = [
    meta('operators.coreos.com/v1alpha1 CatalogSource', {
      name: 'mine',
      namespace: 'openshift-marketplace',
      uid: 'u',
    }),
  ];
  const cluster = hostedCluster(annotated(GOOD), { olmCatalogPlacement: 'guest' });
  const out = run([cluster, OTHER_STREAM, ...DEPLOYMENTS], { ...CATALOGS, hosted });
  const source = out.hosted.get(
    refOf('operators.coreos.com/v1alpha1 CatalogSource', 'redhat-operators', 'openshift-marketplace'),
  );
  assert.equal((source?.spec as { image?: string } | undefined)?.image, GOOD);
  assert.equal(stream(out), undefined);
  assert.deepEqual(verbsOf(out, /Deployment/), []);
});

test('where HyperShift writes the control plane, annotations are judged and registries are not asked', () => {
  const theirs = deployment('ignition-server', [], 'hypershift-controlplane-manager');
  const good = run([hostedCluster(), OTHER_STREAM, theirs], CATALOGS);
  assert.deepEqual(good.needs, []);
  assert.equal(condition(good, 'CatalogsValid'), 'True Valid');
  const bad = run([hostedCluster(annotated('mirror.example.com/index:1')), OTHER_STREAM, theirs], CATALOGS);
  assert.equal(condition(bad, 'CatalogsValid'), 'False CatalogImagesInvalid');
});

const some = (count: number): Readonly<Record<string, string>> =>
  annotated(GOOD, CATALOG_NAMES.slice(0, count));
const LAST = 'hypershift.openshift.io/redhat-operators-catalog-image';

interface BadCatalogs extends Case {
  readonly annotations: Readonly<Record<string, string>>;
  readonly says: RegExp;
}

/** Invalid catalog image annotations of release 4.22, and their errors. */
const BAD_CATALOGS: readonly BadCatalogs[] = [
  {
    name: 'one of three',
    reason: 'all or none',
    annotations: { [LAST]: GOOD },
    says: /all the values for the 3 default catalogs/,
  },
  {
    name: 'two of three',
    reason: 'all or none',
    annotations: some(2),
    says: /all the values for the 3 default catalogs/,
  },
  {
    name: 'two of three, and the one that 4.22 has no more',
    reason: 'it does not stand for another',
    annotations: { ...some(2), ...annotated(GOOD, ['redhat-marketplace']) },
    says: /all the values for the 3 default catalogs/,
  },
  {
    name: 'one that is empty',
    reason: 'empty is absent',
    annotations: { ...GOOD_CATALOGS, [LAST]: '' },
    says: /all the values for the 3 default catalogs/,
  },
  {
    name: 'a tag',
    reason: 'only digests',
    annotations: annotated('mirror.example.com/index:v4.22'),
    says: /referenced only by digest/,
  },
  {
    name: 'one tag among digests',
    reason: 'only digests',
    annotations: { ...GOOD_CATALOGS, [LAST]: 'mirror.example.com/index:v4.22' },
    says: /referenced only by digest/,
  },
  {
    name: 'a short digest',
    reason: 'the whole syntax counts',
    annotations: annotated('mirror.example.com/index@sha256:abc'),
    says: /is not an image reference/,
  },
  {
    name: 'a digest of another kind',
    reason: 'the whole syntax counts',
    annotations: annotated(`mirror.example.com/index@sha512:${'c'.repeat(128)}`),
    says: /referenced only by digest/,
  },
  {
    name: 'a scheme',
    reason: 'the whole syntax counts',
    annotations: annotated(`https://mirror.example.com/index@${DIGEST}`),
    says: /is not an image reference/,
  },
  {
    name: 'a space',
    reason: 'the whole syntax counts',
    annotations: annotated(` ${GOOD}`),
    says: /is not an image reference/,
  },
];

table(test, BAD_CATALOGS, (row) => {
  const first = run([hostedCluster(), OTHER_STREAM, ...DEPLOYMENTS], { ...CATALOGS, facts: KNOWN });
  const objects = [...first.management].map((object) =>
    object.kind === 'HostedCluster' ? hostedCluster(row.annotations) : object,
  );
  const out = run(objects, { ...CATALOGS, facts: KNOWN });
  assert.deepEqual(images(out), images(first), 'what was in place stays');
  assert.equal(condition(out, 'CatalogsValid'), 'False CatalogImagesInvalid');
  assert.match(out.problems.join(), row.says);
  assert.match(out.events.join(), /CatalogImagesInvalid/);
  assert.deepEqual(verbsOf(out, /configured Deployment/), []);
});

test('an annotation with empty pairs says which of them mean nothing', () => {
  const cluster = hostedCluster({
    'hypershift.openshift.io/olm-catalogs-is-registry-overrides': 'a=b,,c,=d,e=',
  });
  const out = run([cluster, OTHER_STREAM], CATALOGS);
  const odd = statusOf(out).verdicts.filter((verdict) => verdict.reason === 'PairIgnored');
  assert.deepEqual(
    odd.map((verdict) => /^"([^"]*)"/.exec(verdict.message)?.[1]),
    ['c', '=d', 'e='],
  );
});
