/** Warnings of a fleet about surprising mirror sets, and about those that are not rendered. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseFleet } from '../../charts/fleet.ts';
import { runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const SETS = `
      registry-overrides:
        mirrorSets:
          - name: team
            entries:
              - source: quay.io/team
                mirrors: [mirror.example.com]`;

const HOSTED = `
image: registry.example.com/pullwright:1
clusters:
  - name: mgmt
    kind: management
  - name: prod
    kind: hosted
    management: mgmt
    hostedCluster: {namespace: clusters, name: prod}`;

test('the section of a hosted cluster with mirror sets is a mistake with its line', () => {
  assert.throws(
    () => parseFleet(`${HOSTED}\n    systems:${SETS}\n`),
    /fleet\.yaml:12:\d+ clusters\[1\]\.systems\.registry-overrides\.mirrorSets: is not rendered into a hosted cluster: .*spec\.imageContentSources/,
  );
});

test('defaults speak to the clusters that they can, and are a warning for the others, once', () => {
  const more =
    '\n  - name: stage\n    kind: hosted\n    management: mgmt\n    hostedCluster: {namespace: clusters, name: stage}';
  const defaults = `\ndefaults:\n    systems:${SETS}\n`;
  const { warnings } = parseFleet(`${HOSTED}${more}${defaults}`);
  const about = warnings.filter(({ text }) => text.startsWith('is not rendered into a hosted cluster'));
  assert.deepEqual(
    about.map(({ path }) => path),
    [['defaults', 'systems', 'registry-overrides', 'mirrorSets']],
  );
});

test('synth and validate print what the linter finds, with the line of the entry', async () => {
  const folder = tempFolder();
  const file = join(folder, 'fleet.yaml');
  const standalone = `image: registry.example.com/pullwright:1\nclusters:\n  - name: one\n    systems:${SETS}\n`;
  writeFileSync(file, standalone);
  const [rendered, judged] = await Promise.all([
    runMain(['synth', '--fleet', file, '--to', join(folder, 'out')]),
    runMain(['validate', file]),
  ]);
  assert.equal(rendered.code, 0, rendered.stderr);
  assert.match(
    rendered.stderr,
    /^warning: .*fleet\.yaml:10:\d+ clusters\[0\]\.systems\.registry-overrides\.mirrorSets\[0\]\.entries\[0\].mirrors\[0\]: .*maps the path of "quay\.io\/team" to the bare host/,
  );
  assert.equal(judged.code, 0, judged.stdout);
  assert.match(
    judged.stdout,
    /fleet\.yaml:10:\d+: warning: .*\[FleetSurprising\]\n1 checked, 0 errors, 1 warning/,
  );
});
