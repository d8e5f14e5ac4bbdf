/**
 * Test helpers of `@pullwright/charts/testing`: which credential a pod of a chart would pull an image with, judged by the code of
 * `pullwright test`. For unit tests of one's own YAML; works with every test runner, for what does not hold is thrown.
 */
import assert from 'node:assert/strict';
import { folderOf } from '../controller/folder.ts';
import { parseImageReference } from '../rules/auth-lookup/image-reference.ts';
import { type Expectation, judgeExpectation } from '../rules/diagnose/expectations.ts';
import type { Explanation } from '../rules/diagnose/explain.ts';
import { FOLDER_WORLD_KINDS, locate, type ReadWorld, worldIn } from './explain/folders.ts';
import { explainIn, findWorld } from './explain/world.ts';
import { parsePodName, WORKLOADS } from './pod-spec.ts';

/** What is looked at: a chart of cdk8s, objects, or the files that `renderTree` gives. */
export type PullSources = { toJson(): readonly unknown[] } | readonly unknown[] | ReadonlyMap<string, string>;

/** An image that a pod pulls. Each method throws an `AssertionError` when it does not hold. */
export interface ExpectedPull {
  /** The kubelet's first credential is of this Secret: `team`, or `Secret/shop/team`. */
  with(secret: string): void;
  /** The kubelet's first credential is of this key, such as `quay.io/team`. */
  withKey(key: string): void;
  /** No credential is offered, and one attempt without is made. */
  anonymously(): void;
  /** CRI-O asks the place whose reference begins with `at`, such as a mirror, with the credential of this Secret. */
  at(at: string): Pick<ExpectedPull, 'with' | 'withKey' | 'anonymously'>;
}

/** Pods that pull. */
export interface PullingPod {
  /** `image` need not be one that the pod names. */
  pulls(image: string): ExpectedPull;
}

/** What a chart is asked for. */
export interface ExpectedPulls {
  /**
   * A pod or what makes pods: `web` for whatever has that name, or `deploy/web`; with a namespace where there are several.
   *
   * @throws AssertionError when there is none, or more than one
   */
  pod(name: string, namespace?: string): PullingPod;
}

/**
 * Reads `sources` as one cluster. Secrets that are not in git have stand-ins by {@link standInSecret}.
 *
 * @throws AssertionError when an object cannot be read
 *
 * @example
 * ```ts
 * import { expectPull, standInSecret } from './expect-pull.ts';
 * import assert from 'node:assert/strict';
 *
 * const web = {
 *   apiVersion: 'v1',
 *   kind: 'Pod',
 *   metadata: { name: 'web', namespace: 'shop' },
 *   spec: { imagePullSecrets: [{ name: 'team' }], containers: [{ name: 'web', image: 'quay.io/x' }] },
 * };
 * const cluster = expectPull([web], [standInSecret('shop', 'team', ['quay.io'])]);
 * cluster.pod('web').pulls('quay.io/x').with('team');
 * cluster.pod('web').pulls('docker.io/library/nginx').anonymously();
 * assert.throws(() => cluster.pod('web').pulls('quay.io/x').with('other'), /expected Secret "other"/);
 * ```
 */
export function expectPull(...sources: readonly PullSources[]): ExpectedPulls {
  const world = readSources(sources);
  return {
    pod: (name, namespace) => {
      const pod = findNamed(world, name, namespace);
      return { pulls: (image) => expectedPull(image, explained(world, pod, image)) };
    },
  };
}

/** A pull secret with an entry for each of `keys` and an invented password, for what a store or an operator brings. */
export function standInSecret(namespace: string, name: string, keys: readonly string[]): object {
  const auth = Buffer.from(`${name}:stand-in`).toString('base64');
  const config = JSON.stringify({ auths: Object.fromEntries(keys.map((key) => [key, { auth }])) });
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(config).toString('base64') },
  };
}

function readSources(sources: readonly PullSources[]): ReadWorld {
  const texts = sources.flatMap((source, index) => textsOf(source, `source ${index + 1}`));
  const world = worldIn([locate('.', folderOf(texts, FOLDER_WORLD_KINDS), true)]);
  assert.deepEqual(world.problems, [], 'every object can be read');
  return world;
}

function textsOf(
  source: PullSources,
  file: string,
): readonly { readonly file: string; readonly text: string }[] {
  if (source instanceof Map)
    return [...source].map(([path, text]: [string, string]) => ({ file: path, text }));
  const items = 'toJson' in source ? source.toJson() : [...(source as readonly unknown[])];
  return [{ file, text: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) }];
}

interface NamedPod {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
}

function findNamed({ store }: ReadWorld, text: string, namespace: string | undefined): NamedPod {
  const asked = parsePodName(text);
  assert.ok(
    asked !== undefined,
    `"${text}" is no pod: expected a name, or a kind and a name as in deploy/web`,
  );
  const kinds = [...new Map(Object.values(WORKLOADS).map((one) => [one.kind, one])).values()];
  const found = kinds
    .filter(({ kind }) => !text.includes('/') || kind === asked.kind)
    .flatMap((kind) => store.list(kind, namespace))
    .filter(({ metadata }) => metadata.name === asked.name)
    .map(({ kind, metadata }) => ({ kind, name: asked.name, namespace: metadata.namespace ?? 'default' }));
  const [only] = found;
  const names = found.map((one) => `${one.kind}/${one.namespace}/${one.name}`).join(', ');
  assert.ok(only !== undefined, `nothing that makes pods is named "${text}"`);
  assert.equal(found.length, 1, `"${text}" names several: ${names}`);
  return only;
}

function explained({ store, hosted }: ReadWorld, pod: NamedPod, image: string): Explanation {
  const parsed = parseImageReference(image);
  assert.ok(parsed.ok, `the image "${image}" cannot be read`);
  const puller = { namespace: pod.namespace, serviceAccount: 'default', pod };
  return explainIn(findWorld(store, puller, { hosted }), parsed.reference);
}

function expectedPull(image: string, explanation: Explanation, at?: string): ExpectedPull {
  const judge = (expect: Expectation['expect']): void => {
    const place = at === undefined ? {} : { at };
    const failure = judgeExpectation({ name: image, image, expect, ...place }, explanation);
    if (failure !== undefined) assert.fail(`${image}: ${failure}`);
  };
  return {
    with: (secret) => judge({ secret }),
    withKey: (key) => judge({ key }),
    anonymously: () => judge('anonymous'),
    at: (place) => expectedPull(image, explanation, place),
  };
}
