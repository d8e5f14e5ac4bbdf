/** A stolen token of the reconciler in control planes: one variable and the images of catalogs, and nothing runs there. */
import assert from 'node:assert/strict';
import {
  CATALOG_CONTAINERS,
  catalogImageStream,
  catalogTriggers,
  IS_REGISTRY_OVERRIDES,
  TRIGGERS_ANNOTATION,
} from '../../runtime/registry-overrides/olm-catalogs.ts';
import { MAX_VALUE } from '../../runtime/registry-overrides/reconciler/deployments.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { Answer } from '../control-plane/request.ts';
import { hostedControlPlane } from '../support/hypershift.ts';
import { meta } from '../support/meta.ts';
import type { Thief } from './rights-live-agents.ts';

interface DeploymentThief extends Thief {
  readonly plane: ControlPlane;
  readonly patch: (path: string, body: object, type?: string) => Promise<Answer>;
}

const NAMESPACE = 'clusters-guest';
const DEPLOYMENTS = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`;
const STREAM = `/apis/image.openshift.io/v1/namespaces/${NAMESPACE}/imagestreams/catalogs`;
const MIRROR = 'mirror.example.com:5000/catalogs';
const DIGEST = `@sha256:${'a'.repeat(64)}`;
const ANNOTATED = `registry.example.com/other/certified${DIGEST}`;
const POLICY = /ValidatingAdmissionPolicy 'pullwright-reconciler-(deployments|catalogs)'/;
const { container, initContainer } = CATALOG_CONTAINERS;

function deployment(name: string, containers: readonly string[], initContainers: readonly string[] = []) {
  const labels = { app: name };
  const all = (names: readonly string[]) =>
    names.map((one) => ({
      name: one,
      image: 'registry.example.com/own:1',
      env: [
        { name: 'A', value: 'b' },
        { name: 'B', value: 'c' },
      ],
    }));
  return {
    ...meta('apps/v1 Deployment', { name, namespace: NAMESPACE, labels }),
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: 'operator',
          containers: all(containers),
          ...(initContainers.length === 0 ? {} : { initContainers: all(initContainers) }),
        },
      },
    },
  };
}

/** Adds its tests to a suite. */
export function deploymentThefts(
  test: (name: string, body: () => Promise<void>) => void,
  { plane, patch, apply, refused, walk }: DeploymentThief,
): void {
  const operator = deployment('control-plane-operator', ['control-plane-operator', 'beside']);
  const catalog = deployment('redhat-operators-catalog', [container, 'beside'], [initContainer]);
  const certified = deployment('certified-operators-catalog', [container]);
  const at = (object: { metadata: { name: string } }): string => `${DEPLOYMENTS}/${object.metadata.name}`;
  const pod = (spec: object) => ({ spec: { template: { spec } } });
  const image = (value: string) => pod({ containers: [{ name: container, image: value }] });
  const strategic = (path: string, body: object, query = 'dryRun=All'): Promise<Answer> =>
    patch(`${path}?${query}`, body, 'strategic-merge');
  const done = (answer: Answer): void => assert.ok(answer.status < 300, answer.body.message);
  const variable = (name: string, more: object = { value: 'a=b' }) =>
    pod({ containers: [{ name, env: [{ name: 'OPENSHIFT_IMG_OVERRIDES', ...more }] }] });

  test('finds a control plane as HyperShift makes it', async () => {
    const plain = hostedControlPlane('guest') as { metadata: object };
    await plane.apply({
      ...hostedControlPlane('guest'),
      metadata: {
        ...plain.metadata,
        name: 'guest',
        namespace: NAMESPACE,
        annotations: {
          [IS_REGISTRY_OVERRIDES]: `registry.redhat.io=${MIRROR}`,
          'hypershift.openshift.io/certified-operators-catalog-image': ANNOTATED,
        },
      },
    });
    for (const object of [operator, catalog, certified]) await plane.apply(object);
    // Until then the policy finds no control plane.
    await refused(/may use catalogs only from/, () => strategic(at(catalog), image('evil')));
  });

  for (const object of [operator, catalog])
    test(`sets no field of Deployment ${object.metadata.name} but those of the list`, async () => {
      const { body } = await plane.client.request('GET', at(object));
      await walk(
        object.metadata.name,
        '/openapi/v3/apis/apps/v1',
        'io.k8s.api.apps.v1.Deployment',
        at(object),
        { spec: body.spec },
      );
    });

  test('sets the variable in its container alone', async () => {
    done(await strategic(at(operator), variable('control-plane-operator'), ''));
    const pair = 'registry.example.com=mirror.example.com:5000/a';
    const longest = Array(Math.floor((MAX_VALUE + 1) / (pair.length + 1)))
      .fill(pair)
      .join(',');
    for (const value of ['=', 'a=b,a=c', '*.example.com=m/x_y,quay.io/team=m:5000', longest])
      done(await strategic(at(operator), variable('control-plane-operator', { value })));
    for (const [object, body] of [
      ...['a', 'a=', 'a=b c', 'a=b;c', 'a=b@c', 'a=b\nc=d', '$(A)=b', `${longest},${pair}`].map(
        (value) => [operator, variable('control-plane-operator', { value })] as const,
      ),
      [operator, variable('beside')],
      [catalog, variable(container)],
      [
        operator,
        variable('control-plane-operator', {
          value: '',
          valueFrom: { fieldRef: { fieldPath: 'metadata.name' } },
        }),
      ],
    ] as const)
      await refused(POLICY, () => strategic(at(object), body));
  });

  test('gives catalogs the images that the hosted cluster names, and no others', async () => {
    for (const value of [
      'registry.redhat.io/redhat/redhat-operator-index:v4.20',
      `registry.redhat.io/redhat/redhat-operator-index${DIGEST}`,
      `${MIRROR}/redhat-operator-index${DIGEST}`,
      `${MIRROR}/redhat/redhat-operator-index:v4.19`,
    ])
      done(await strategic(at(catalog), image(value)));
    done(await strategic(at(certified), image(ANNOTATED)));
    for (const value of [
      'registry.example.com/evil:1',
      ANNOTATED,
      'registry.redhat.io/redhat/certified-operator-index:v4.20',
      'registry.redhat.io/redhat/evil:1',
      'registry.redhat.io/redhat-operator-index:1',
      `${MIRROR}-evil/redhat-operator-index:1`,
      'mirror.example.com:6000/catalogs/redhat-operator-index:1',
      'redhat-operator-index',
    ])
      await refused(POLICY, () => strategic(at(catalog), image(value)));
    await refused(POLICY, () =>
      strategic(
        at(catalog),
        pod({ containers: [{ name: 'beside', image: `${MIRROR}/redhat-operator-index:1` }] }),
      ),
    );
  });

  test('changes only the triggers of catalogs besides the fields of a Deployment', async () => {
    const annotated = (value: string) => ({ metadata: { annotations: { [TRIGGERS_ANNOTATION]: value } } });
    const own = JSON.stringify(catalogTriggers('redhat-operators'));
    done(await strategic(at(catalog), annotated(own)));
    done(await strategic(at(catalog), annotated('[]')));
    for (const [object, body] of [
      [catalog, annotated(own.replaceAll('redhat-operators', 'certified-operators'))],
      [catalog, annotated(own.replaceAll('ImageStreamTag', 'ImageStreamImage'))],
      [operator, annotated(own)],
      [catalog, { metadata: { annotations: { a: 'b' } } }],
      [catalog, { metadata: { labels: { a: 'b' } } }],
      [catalog, { metadata: { finalizers: ['a/b'] } }],
      [operator, { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'b' }] } }],
    ] as const)
      await refused(POLICY, () => strategic(at(object), body));
  });

  test('takes catalogs by ImageStream only from where the hosted cluster says', async () => {
    const stream = (value: string) => catalogImageStream(NAMESPACE, { 'redhat-operators': value });
    done(await apply(STREAM, stream(`${MIRROR}/redhat/redhat-operator-index:v4.19`), 'dryRun=All'));
    for (const value of ['registry.example.com/evil:1', 'registry.redhat.io/redhat/evil:1'])
      await refused(/may use catalogs only from/, () => apply(STREAM, stream(value), 'dryRun=All'));
  });
}
