import assert from 'node:assert/strict';
import type { Fact } from '../../runtime/controller/contract.ts';
import { NOT_ASKED } from '../../runtime/controller/facts.ts';
import type { KubeObject } from '../../runtime/rules/kube-object.ts';
import { suite, table } from '../support/suite.ts';
import { annotated, BAD_CATALOGS, CATALOG_NAMES } from './bad-catalogs.ts';
import {
  condition,
  deployment,
  deploymentOf,
  hostedCluster,
  NAMESPACE,
  podSpec,
  type RunInput,
  type RunOutput,
  run,
  statusOf,
} from './world.ts';

const test = suite('registry-overrides catalogs');

const NAMES = CATALOG_NAMES;
const DIGEST = `sha256:${'c'.repeat(64)}`;
const THERE: Fact = { ok: true, value: DIGEST };
const ABSENT: Fact = { ok: false, reason: 'manifest unknown' };
const DOWN: Fact = { ok: false, reason: 'the registry did not answer within 5 s' };
const CATALOGS: RunInput = { options: { catalogs: true } };

/** Something of the kind is there, so the cluster serves it. */
const OTHER_STREAM: KubeObject = {
  apiVersion: 'image.openshift.io/v1',
  kind: 'ImageStream',
  metadata: { name: 'other', namespace: 'elsewhere', uid: 'u-other' },
};

function facts(image: (index: string) => string, fact: Fact = THERE): Readonly<Record<string, Fact>> {
  return Object.fromEntries(
    ['certified-operator', 'community-operator', 'redhat-operator'].map((index) => [
      image(`${index}-index`),
      fact,
    ]),
  );
}

function stream(out: RunOutput): KubeObject | undefined {
  return out.management.get({
    apiVersion: 'image.openshift.io/v1',
    kind: 'ImageStream',
    namespace: NAMESPACE,
    name: 'catalogs',
  });
}

function images(out: RunOutput): readonly string[] {
  const spec = stream(out)?.spec as { tags: readonly { name: string; from: { name: string } }[] } | undefined;
  return (spec?.tags ?? []).map((tag) => `${tag.name} ${tag.from.name}`);
}

const GOOD = `mirror.example.com/index@${DIGEST}`;
const DEPLOYMENTS = NAMES.map((name) => deployment(`${name}-catalog`));

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

test('makes the ImageStream of what is there', () => {
  const out = run([hostedCluster(), OTHER_STREAM], {
    ...CATALOGS,
    facts: facts((index) => `registry.redhat.io/redhat/${index}:v4.22`),
  });
  assert.deepEqual(images(out), [
    'certified-operators registry.redhat.io/redhat/certified-operator-index:v4.22',
    'community-operators registry.redhat.io/redhat/community-operator-index:v4.22',
    'redhat-operators registry.redhat.io/redhat/redhat-operator-index:v4.22',
  ]);
});

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

test('a registry that does not answer changes nothing', () => {
  const known = facts((index) => `registry.redhat.io/redhat/${index}:v4.22`);
  const first = run([hostedCluster(), OTHER_STREAM], { ...CATALOGS, facts: known });
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
  const known = facts((index) => `registry.redhat.io/redhat/${index}:v4.22`);
  const out = run([cluster, OTHER_STREAM], { ...CATALOGS, facts: Object.assign({}, known, ...absent) });
  assert.match(
    images(out).join(),
    /redhat-operators registry\.redhat\.io\/redhat\/redhat-operator-index:v4\.22/,
  );
  const fallen = statusOf(out).verdicts.filter(({ reason }) => reason === 'FellBack');
  assert.deepEqual(
    fallen.map(({ subject, verdict }) => `${subject} ${verdict}`),
    NAMES.map((name) => `${name} Warning`),
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

test('annotated images: no ImageStream of ours, and the images on the Deployments', () => {
  const known = facts((index) => `registry.redhat.io/redhat/${index}:v4.22`);
  const first = run([hostedCluster(), OTHER_STREAM, ...DEPLOYMENTS], { ...CATALOGS, facts: known });
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

test('without the ImageStream API the Deployments get the digest', () => {
  const out = run([hostedCluster(), ...DEPLOYMENTS], {
    ...CATALOGS,
    facts: facts((index) => `registry.redhat.io/redhat/${index}:v4.22`),
  });
  assert.equal(
    podSpec(deploymentOf(out, 'certified-operators-catalog')).containers[0]?.image,
    `registry.redhat.io/redhat/certified-operator-index@${DIGEST}`,
  );
});

test('guest placement behaves alike: the image is in the CatalogSource', () => {
  const hosted = [
    {
      apiVersion: 'operators.coreos.com/v1alpha1',
      kind: 'CatalogSource',
      metadata: { name: 'mine', namespace: 'openshift-marketplace', uid: 'u' },
    },
  ];
  const cluster = hostedCluster(annotated(GOOD), { olmCatalogPlacement: 'guest' });
  const out = run([cluster, OTHER_STREAM, ...DEPLOYMENTS], { ...CATALOGS, hosted });
  const source = out.hosted.get({
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'CatalogSource',
    namespace: 'openshift-marketplace',
    name: 'redhat-operators',
  });
  assert.equal((source?.spec as { image?: string } | undefined)?.image, GOOD);
  assert.equal(stream(out), undefined);
  assert.deepEqual(
    out.verbs.filter((verb) => verb.includes('Deployment')),
    [],
  );
});

test('what HyperShift writes is observed', () => {
  const theirs: KubeObject = {
    ...OTHER_STREAM,
    metadata: {
      name: 'catalogs',
      namespace: NAMESPACE,
      uid: 'u-c',
      managedFields: [{ manager: 'control-plane-operator', operation: 'Update' }],
    },
    spec: { tags: [] },
  };
  const known = facts((index) => `registry.redhat.io/redhat/${index}:v4.22`);
  const out = run(
    [
      hostedCluster(),
      theirs,
      ...NAMES.map((name) => deployment(`${name}-catalog`, [], 'control-plane-operator')),
    ],
    { ...CATALOGS, facts: known },
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

test('where HyperShift writes the control plane, annotations are judged and registries are not asked', () => {
  const theirs = deployment('ignition-server', [], 'control-plane-operator');
  const good = run([hostedCluster(), OTHER_STREAM, theirs], CATALOGS);
  assert.deepEqual(good.needs, []);
  assert.equal(condition(good, 'CatalogsValid'), 'True Valid');
  const bad = run([hostedCluster(annotated('mirror.example.com/index:1')), OTHER_STREAM, theirs], CATALOGS);
  assert.equal(condition(bad, 'CatalogsValid'), 'False CatalogImagesInvalid');
});

test('where no registry may be asked, nothing is wrong and nothing is changed', () => {
  const fact: Fact = { ok: false, reason: NOT_ASKED };
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
  const other = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'CatalogSource',
    metadata: { name: 'mine', namespace: 'openshift-marketplace', uid: 'u' },
  };
  const known = facts((index) => `registry.redhat.io/redhat/${index}:v4.22`);
  const first = run([cluster], { ...CATALOGS, hosted: [other], facts: known });
  assert.equal([...first.hosted].length, 4);
  const second = run([...first.management], { ...CATALOGS, hosted: [...first.hosted] });
  assert.equal([...second.hosted].length, 4);
  assert.equal(second.needs.length, 3);
});

table(test, BAD_CATALOGS, (row) => {
  const known = facts((index) => `registry.redhat.io/redhat/${index}:v4.22`);
  const first = run([hostedCluster(), OTHER_STREAM, ...DEPLOYMENTS], { ...CATALOGS, facts: known });
  const objects = [...first.management].map((object) =>
    object.kind === 'HostedCluster' ? hostedCluster(row.annotations) : object,
  );
  const out = run(objects, { ...CATALOGS, facts: known });
  assert.deepEqual(images(out), images(first), 'what was in place stays');
  assert.equal(condition(out, 'CatalogsValid'), 'False CatalogImagesInvalid');
  assert.match(out.problems.join(), row.says);
  assert.match(out.events.join(), /CatalogImagesInvalid/);
  assert.deepEqual(
    out.verbs.filter((verb) => /configured Deployment/.test(verb)),
    [],
  );
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

test.run();
