/** Minimal inputs that the first fuzzing of these readers found, with the fixed answers. */
import assert from 'node:assert/strict';
import { readFleetYaml } from '../../charts/fleet-yaml.ts';
import { matchesGlob, matchesImage } from '../../runtime/core/docker-config/match-images.ts';
import { nearWord } from '../../runtime/core/text.ts';
import { parseRequest } from '../../runtime/credential-provider/plugin/request.ts';
import { parseManifests, shapeFault } from '../../runtime/engine/offline/manifests.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { loadedService } from '../../runtime/node/systemd.ts';
import { type Case, table, test } from '../support/suite.ts';

/** No text and no number can be made of it. */
const ODD = { toString: 1 };

interface Row extends Case {
  readonly run: () => unknown;
  readonly gives: unknown;
}

table(
  test,
  [
    {
      name: 'the number of a process that is a map',
      reason: 'the installer ended on an unexpected error',
      run: () =>
        loadedService(
          { LoadState: { value: 'loaded' }, FragmentPath: { value: '/a' } },
          { MainPID: { value: ODD } },
          [],
        )?.commandLine,
      gives: '',
    },
    {
      name: 'a process of the unit whose number is a map',
      run: () =>
        loadedService(
          { LoadState: { value: 'loaded' }, FragmentPath: { value: '/a' } },
          { MainPID: { value: 1 } },
          [
            ['/a', ODD, '/k --b'],
            ['/a', 1, '/k --a'],
          ],
        )?.commandLine,
      gives: '/k --a',
    },
    {
      name: 'an object whose kind is a map',
      reason: 'the kind is looked up as a text',
      run: () => shapeFault({ kind: ODD, spec: {} }),
      gives: undefined,
    },
    {
      name: 'a star before what stands far back',
      reason: 'places after the first are given up as soon as they do not fit',
      run: () => matchesGlob('*ab?d*', 'abababcd-x'),
      gives: true,
    },
    {
      name: 'a star in a label of 255 bytes',
      reason: 'the kubelet looks for it',
      run: () => matchesImage('a*.io', `${'a'.repeat(255)}.io/x`),
      gives: true,
    },
    {
      name: 'a star in a label of 256 bytes',
      reason: 'no host has one, and each place of it was tried',
      run: () => matchesImage('a*.io', `${'a'.repeat(256)}.io/x`),
      gives: false,
    },
    {
      name: 'a label of 256 bytes itself',
      reason: 'nothing has to be tried',
      run: () => matchesImage(`${'a'.repeat(256)}.io`, `${'a'.repeat(256)}.io/x`),
      gives: true,
    },
    {
      name: 'a long word with one letter changed',
      reason: 'it is no word, and the comparison is quadratic',
      run: () => nearWord(`${'a'.repeat(128)}b`, ['a'.repeat(129)]),
      gives: undefined,
    },
    {
      name: 'an image of 4,096 characters',
      reason: 'longer ones than there are',
      run: () => parseRequest(JSON.stringify({ image: 'a'.repeat(4096) })).image.length,
      gives: 4096,
    },
  ] satisfies Row[],
  ({ run, gives }) => assert.deepEqual(run(), gives),
);

test('an image of more than 4,096 characters is refused: each of its parts would be looked up', () => {
  assert.throws(
    () => parseRequest(JSON.stringify({ image: `r.io${'/a'.repeat(4000)}` })),
    /"image" has 8004 characters, expected at most 4096/,
  );
});

const DEEP: Readonly<Record<string, string>> = {
  lists: `a: ${'['.repeat(5000)}`,
  'closed lists': `a: ${'['.repeat(5000)}${']'.repeat(5000)}`,
  maps: `a: ${'{a: '.repeat(4000)}${'}'.repeat(4000)}`,
  blocks: Array.from({ length: 3000 }, (_, level) => `${' '.repeat(level)}a:`).join('\n'),
  items: `${'- '.repeat(9000)}a`,
};

for (const [what, text] of Object.entries(DEEP))
  test(`YAML of ${what} within each other is said to be nested too deeply, by every reader`, () => {
    const words = /Lists and maps are nested too deeply, expected at most a few hundred levels/;
    assert.throws(() => parseYaml(text), words);
    const [fleet] = readFleetYaml(text).problems;
    assert.match(fleet?.text ?? '', words);
    assert.ok(fleet?.line !== undefined);
    assert.match(parseManifests(text, 'a.yaml').problems[0]?.message ?? '', words);
  });
