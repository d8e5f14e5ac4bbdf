// deadline: 600 s
// needs: Go
/**
 * Three ways from mirror sets to the places that are asked, for random sets of one to six objects: the `registries.conf` that we
 * render, pulled from by containers/image; the same file, read by our reader; and what `mirrors` says of the objects.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseImageReference } from '../../../runtime/core/image-reference.ts';
import type { KubeObject } from '../../../runtime/core/kubernetes/object.ts';
import { parseRegistriesConf } from '../../../runtime/core/mirrors/registries-conf.ts';
import { compileMirrors, type Resolution, resolveMirrors } from '../../../runtime/core/mirrors/resolve.ts';
import {
  registriesText,
  renderNodeFiles,
} from '../../../runtime/registry-overrides/machine-config/render.ts';
import { planeResolver } from '../../../runtime/registry-overrides/planes.ts';
import { test } from '../../support/suite.ts';
import { caseCount, compareAll, SEED } from '../kubernetes/oracle.ts';
import { askContainersImage, type Question } from './oracle.ts';

const cases = caseCount(400);
const DIGEST = `sha256:${'a'.repeat(64)}`;

const KINDS = [
  ['ImageDigestMirrorSet', 'config.openshift.io/v1', 'imageDigestMirrors'],
  ['ImageContentSourcePolicy', 'operator.openshift.io/v1alpha1', 'repositoryDigestMirrors'],
  ['ImageTagMirrorSet', 'config.openshift.io/v1', 'imageTagMirrors'],
] as const;
const PLACES = [
  'a.io',
  'a.io/x',
  'a.io/x/y',
  'b.io',
  'b.io/x',
  'b.io:5000/x',
  'm.io',
  'm.io/x',
  'n.io/z',
  'c.a.io/x',
];
const place = fc.constantFrom(...PLACES);
const source = fc.oneof(
  { arbitrary: place, weight: 6 },
  { arbitrary: fc.constantFrom('*.io', '*.a.io'), weight: 1 },
);

function objects(): fc.Arbitrary<readonly KubeObject[]> {
  const entry = fc.record({
    source,
    // The API server refuses a mirror that is there twice.
    mirrors: fc.uniqueArray(place, { minLength: 1, maxLength: 4 }),
    // Most sources have one policy, or nearly every case would be refused.
    never: fc.integer({ min: 0, max: 9 }).map((dice) => dice === 0),
  });
  const set = fc.tuple(fc.constantFrom(...KINDS), fc.array(entry, { minLength: 1, maxLength: 3 }));
  const image = fc.option(
    fc.record({
      blockedRegistries: fc.subarray(['b.io', 'm.io/x', '*.a.io'], { maxLength: 1 }),
      insecureRegistries: fc.subarray(['a.io/x/y', 'n.io'], { maxLength: 1 }),
    }),
  );
  return fc.tuple(fc.array(set, { minLength: 1, maxLength: 6 }), image).map(([sets, sources]) => [
    ...sets.map(
      ([[kind, apiVersion, list], entries], at): KubeObject => ({
        apiVersion,
        kind,
        metadata: { name: `set-${at}` },
        spec: {
          [list]: entries.map(({ never, ...rest }) => ({
            ...rest,
            ...(never && kind !== 'ImageContentSourcePolicy'
              ? { mirrorSourcePolicy: 'NeverContactSource' }
              : {}),
          })),
        },
      }),
    ),
    ...(sources === null
      ? []
      : [
          {
            apiVersion: 'config.openshift.io/v1',
            kind: 'Image',
            metadata: { name: 'cluster' },
            spec: { registrySources: sources },
          },
        ]),
  ]);
}

const image = fc
  .tuple(
    fc.constantFrom('a.io/x/y/z', 'a.io/x/q', 'a.io/w', 'b.io/x/p', 'b.io:5000/x/p', 'c.a.io/x/v', 'd.io/x'),
    fc.constantFrom(':1', `@${DIGEST}`),
  )
  .map((parts) => parts.join(''));

interface Scene {
  readonly sets: readonly KubeObject[];
  readonly image: string;
}

interface Answer {
  readonly error: string;
  readonly asked?: readonly { readonly host: string; readonly path: string }[];
}

function asked(places: readonly string[]): readonly string[] {
  return places.map((text) => {
    const parsed = parseImageReference(text);
    assert.ok(parsed.ok, text);
    const { domain, path, tag, digest } = parsed.reference;
    return `${domain}/${path}/manifests/${digest ?? tag ?? ''}`;
  });
}

function ours({ candidates }: Resolution): readonly string[] {
  return asked(candidates.map(({ reference }) => reference));
}

interface Plan {
  readonly question: Question;
  readonly wanted: readonly string[];
}

/** Plan of `mirrors`, compared with the rendered file; undefined if the operator or the runtime rejects the sets. */
function planOf(scene: Scene): Plan | undefined {
  const rendering = renderNodeFiles(scene.sets);
  const cluster = { name: 'local', objects: scene.sets };
  const [answer] = planeResolver({ cluster })(scene.image, ['node']);
  assert.ok(answer !== undefined);
  if (rendering.refused || rendering.loadError !== undefined) {
    assert.equal(answer.nodes?.state, 'unknown');
    return undefined;
  }
  // policy.json, which this oracle is not given, rejects the name before a source is looked for.
  if (answer.resolution.skipped.some(({ reason }) => reason === 'PolicyRejected')) return undefined;
  const text = registriesText(rendering.rules);
  const read = resolveMirrors(compileMirrors(parseRegistriesConf(text)), scene.image);
  const wanted = ours(answer.resolution);
  assert.deepEqual(ours(read), wanted, JSON.stringify(scene));
  const files = [{ Name: 'registries.conf', Text: text }];
  return { question: { Ask: 'pull', Files: files, Asked: [scene.image], Auth: '{"auths":{}}' }, wanted };
}
test('three ways agree: order, policies, nested sources, blocked and insecure registries', () => {
  const scenes: Scene[] = fc.sample(fc.record({ sets: objects(), image }), { numRuns: cases, seed: SEED });
  const plans = scenes.flatMap((scene) => planOf(scene) ?? []);
  const answers = askContainersImage(plans.map(({ question }) => question)) as readonly Answer[];
  compareAll(plans, answers, ({ wanted }, { asked = [] }) =>
    assert.deepEqual(
      asked.map(({ host, path }) => `${host}/${path}`),
      wanted,
    ),
  );
  const refused = cases - plans.length;
  const mirrored = plans.filter(({ wanted }) => wanted.length > 1).length;
  assert.ok(refused > cases / 20 && mirrored > cases / 5, `${refused} refused, ${mirrored} with mirrors`);
});
