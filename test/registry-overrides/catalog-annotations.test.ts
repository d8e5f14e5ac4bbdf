/** Catalogs of hosted clusters with valid and invalid annotations for mirrors or images. */
import assert from 'node:assert/strict';
import { meta, refOf } from '../support/meta.ts';
import { table, test } from '../support/suite.ts';
import { annotated, BAD_CATALOGS } from './bad-catalogs.ts';
import { CATALOGS, DEPLOYMENTS, facts, GOOD, images, KNOWN, OTHER_STREAM, stream } from './catalog-world.ts';
import { condition, deployment, deploymentOf, hostedCluster, podSpec, run, statusOf } from './world.ts';

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
  assert.deepEqual(
    out.verbs.filter((verb) => verb.includes('Deployment')),
    [],
  );
});

test('where HyperShift writes the control plane, annotations are judged and registries are not asked', () => {
  const theirs = deployment('ignition-server', [], 'hypershift-controlplane-manager');
  const good = run([hostedCluster(), OTHER_STREAM, theirs], CATALOGS);
  assert.deepEqual(good.needs, []);
  assert.equal(condition(good, 'CatalogsValid'), 'True Valid');
  const bad = run([hostedCluster(annotated('mirror.example.com/index:1')), OTHER_STREAM, theirs], CATALOGS);
  assert.equal(condition(bad, 'CatalogsValid'), 'False CatalogImagesInvalid');
});

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
