/** Constructs and builders that users of the library touch: CRDs, secret sources, Argo CD and Flux. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { Testing } from 'cdk8s';
import { parse } from 'yaml';
import { z } from 'zod';
import { ObjectGroup, PullSecret, parseFleet, renderFleet } from '../../charts/mod.ts';
import { crd, structuralSchema } from '../../runtime/core/kubernetes/kind.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { secretSourceObjects } from '../../runtime/global-pull-secret/secret-source.ts';
import { plantedPassword } from '../support/canary.ts';
import { meta } from '../support/meta.ts';
import { loadedBy } from '../support/reach.ts';
import { test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;

test('structuralSchema() refuses what the API server would refuse', () => {
  assert.throws(
    () => structuralSchema(z.strictObject({ a: z.union([z.string(), z.int()]) })),
    /\$\.a uses "anyOf", expected one type per field/,
  );
  assert.deepEqual(structuralSchema(z.looseObject({ a: z.string().max(3) })), {
    type: 'object',
    required: ['a'],
    properties: { a: { type: 'string', maxLength: 3 } },
    'x-kubernetes-preserve-unknown-fields': true,
  });
});

test('crd() wants exactly one stored version', () => {
  const version = { name: 'v1', schema: z.strictObject({}) };
  const input = { group: 'pullwright.dev', kind: 'X', scope: 'Cluster' } as const;
  assert.throws(
    () => crd({ ...input, versions: [version, { ...version, name: 'v2' }] }),
    /2 stored versions, expected 1/,
  );
  const annotations = crd({ ...input, versions: [version] }).metadata.annotations;
  assert.equal(annotations?.['kustomize.toolkit.fluxcd.io/prune'], 'disabled');
});

test('a wrapped credential cannot be rendered, and the error does not show it', () => {
  const chart = Testing.chart();
  const object = { ...meta('v1 Secret', { name: 'a' }), data: { x: redact(plantedPassword('chart')) } };
  new ObjectGroup(chart, 'secret', [object]);
  assert.throws(
    () => chart.toJson(),
    (error: Error) => !error.message.includes(plantedPassword('chart')),
  );
});

const target = { namespace: 'kube-system', name: 'additional-pull-secret' };

test('an ExternalSecret keeps the Secret when the store loses the key, and types it', () => {
  const [object] = secretSourceObjects(target, {
    externalSecret: { store: 'vault', key: 'a', property: 'b', version: '3' },
  });
  assert.deepEqual(object?.spec, {
    refreshInterval: '1h',
    secretStoreRef: { kind: 'ClusterSecretStore', name: 'vault' },
    target: {
      name: target.name,
      creationPolicy: 'Owner',
      deletionPolicy: 'Retain',
      template: { type: 'kubernetes.io/dockerconfigjson' },
    },
    data: [{ secretKey: '.dockerconfigjson', remoteRef: { key: 'a', property: 'b', version: '3' } }],
  });
});

test('a SealedSecret carries the ciphertext and its scope in both places', () => {
  const [object] = secretSourceObjects(target, {
    sealedSecret: { encrypted: 'AgB=', scope: 'namespace-wide' },
  });
  const annotations = { 'sealedsecrets.bitnami.com/namespace-wide': 'true' };
  assert.deepEqual(object?.metadata.annotations, annotations);
  assert.deepEqual(object?.spec, {
    encryptedData: { '.dockerconfigjson': 'AgB=' },
    template: { type: 'kubernetes.io/dockerconfigjson', metadata: { ...target, annotations } },
  });
});

test("SOPS renders nothing: the file is the user's, and the overlay lists it", () => {
  const secret = new PullSecret(Testing.chart(), 'a', { ...target, source: { sops: {} } });
  assert.deepEqual(secret.keptFiles, ['overlays/sops/kube-system/secret-additional-pull-secret.sops.yaml']);
});

const FLEET = `image: registry.example.com/p:1
gitops: { tool: TOOL, repository: 'https://git.example.com/f.git', path: clusters }
defaults: { systems: { global-pull-secret: { source: { SOURCE } } } }
clusters:
  - { name: hub, kind: management }
  - { name: a, kind: hosted, management: hub, destination: { name: a, kubeConfigSecret: a-kubeconfig } }
`;

const rendered = (tool: string, source: string): ReadonlyMap<string, string> =>
  renderFleet(parseFleet(FLEET.replace('TOOL', tool).replace('SOURCE', source))).tree;

test('Flux gets a source and a Kustomization per folder; overlays wait for the base, SOPS gets its key', () => {
  const tree = rendered('flux', 'sops: {}');
  const base = parse(tree.get('_gitops/flux-system/kustomization-pullwright-a.yaml') ?? '');
  assert.equal(base.spec.path, './clusters/a');
  assert.deepEqual(base.spec.kubeConfig, { secretRef: { name: 'a-kubeconfig' } });
  const sops = parse(tree.get('_gitops/flux-system/kustomization-pullwright-a-sops.yaml') ?? '');
  assert.deepEqual(sops.spec.dependsOn, [{ name: 'pullwright-a' }]);
  assert.deepEqual(sops.spec.decryption, { provider: 'sops', secretRef: { name: 'sops-age' } });
  assert.ok(tree.has('_gitops/flux-system/gitrepository-pullwright.yaml'));
  assert.doesNotMatch([...tree.values()].join(''), /sync-wave/);
});

test('the reconciler of a management cluster works on the clusters that have a section, with the options of each', () => {
  const tree = renderFleet(
    parseFleet(`image: registry.example.com/p:1
clusters:
  - { name: hub, kind: management }
  - { name: a, kind: hosted, management: hub, systems: { global-pull-secret: { mode: own } } }
  - { name: b, kind: hosted, management: hub, systems: { registry-overrides: {} } }
  - { name: c, kind: hosted, management: hub }
`),
  ).tree;
  const map = parse(tree.get('hub/pullwright-system/configmap-pullwright-reconciler-config.yaml') ?? '');
  const { systems } = parse(map.data['config.yaml']);
  assert.deepEqual(systems['global-pull-secret'], {
    only: ['clusters/a'],
    // Git cannot see who else makes the objects of HyperShift's names, so that they come from the reconciler.
    clusters: {
      'clusters/a': {
        delivery: 'reconciler',
        mode: 'own',
        enforce: 'off',
        agent: { image: 'registry.example.com/p:1' },
      },
    },
  });
  assert.deepEqual(systems['registry-overrides'].only, ['clusters/b']);
  const roles = [...tree.keys()].filter((path) => /role-pullwright-(global|registry)/.test(path));
  assert.ok(roles.some((path) => path.startsWith('hub/clusters-a/')));
  assert.ok(!roles.some((path) => path.startsWith('hub/clusters-c/')));
});

test('plain objects bring no cdk8s with them, however far one follows their imports', () => {
  const seen = loadedBy(globSync('charts/*/{access,consent,webhook}.ts', { cwd: root }));
  assert.ok(seen.size > 10);
  assert.deepEqual(
    [...seen].filter((name) => /^(cdk8s|constructs)/.test(name)),
    [],
  );
});
