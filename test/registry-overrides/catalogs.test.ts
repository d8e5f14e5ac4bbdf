/** Catalogs of hosted clusters: look-ups in registries, and the objects by their results. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { LookupResult } from '../../runtime/engine/contract.ts';
import { NOT_ASKED } from '../../runtime/engine/lookups.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { CATALOG_NAMES } from './bad-catalogs.ts';
import {
  CATALOGS,
  DEPLOYMENTS,
  DIGEST,
  facts,
  images,
  KNOWN,
  OTHER_STREAM,
  stream,
} from './catalog-world.ts';
import {
  condition,
  deployment,
  deploymentOf,
  hostedCluster,
  NAMESPACE,
  podSpec,
  run,
  statusOf,
} from './world.ts';

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
  assert.deepEqual(
    out.verbs.filter((verb) => /Deployment|ImageStream/.test(verb)),
    [],
  );
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
  assert.deepEqual(
    out.verbs.filter((verb) => /Deployment|ImageStream/.test(verb)),
    [],
  );
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
