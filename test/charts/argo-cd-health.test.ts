/** Health checks of objects for Argo CD, in Lua. */
import assert from 'node:assert/strict';
import { DEFINITION_HEALTH_LUA, HEALTH_LUA, syncWave } from '../../charts/gitops/argo-cd.ts';
import { meta } from '../support/meta.ts';
import { runProcess } from '../support/process.ts';
import { cases, test } from '../support/suite.ts';

const condition = (type: string, status: string, more = ''): string =>
  `{ type = "${type}", status = "${status}", message = "said"${more} }`;
const conditions = (...all: readonly string[]): string => `status = { conditions = { ${all.join(', ')} } }`;

const OURS = [
  ['no status', 'nobody has looked', '', 'Progressing'],
  ['ready', 'Ready sums up', conditions(condition('Ready', 'True')), 'Healthy'],
  ['not ready', 'it goes on by itself', conditions(condition('Ready', 'False')), 'Progressing'],
  [
    'stalled',
    'a person has to act',
    conditions(condition('Ready', 'False'), condition('Stalled', 'True')),
    'Degraded',
  ],
  [
    'ready, of an older generation',
    'it says nothing of what is wanted now',
    conditions(condition('Ready', 'True', ', observedGeneration = 1')),
    'Progressing',
  ],
] as const;

const DEFINITIONS = [
  ['a definition without a status', 'it is new', '', 'Progressing'],
  [
    'a definition whose conditions are not there yet',
    'the API server writes the list of stored versions first',
    'status = { storedVersions = { "v1alpha1" } }',
    'Progressing',
  ],
  [
    'a definition whose names are accepted',
    'being established is the next thing, and no failure',
    conditions(condition('NamesAccepted', 'True')),
    'Progressing',
  ],
  [
    'a definition that is being installed',
    'the same, said by the second condition',
    conditions(
      condition('NamesAccepted', 'True'),
      condition('Established', 'False', ', reason = "Installing"'),
    ),
    'Progressing',
  ],
  [
    'a definition that is served',
    'what needs it may come',
    conditions(condition('NamesAccepted', 'True'), condition('Established', 'True')),
    'Healthy',
  ],
  [
    'a definition whose names another one has',
    'that does not pass by itself',
    conditions(condition('NamesAccepted', 'False'), condition('Established', 'False')),
    'Degraded',
  ],
  [
    'a definition with a schema that is none',
    'nor does that, whatever else is the case',
    conditions(condition('Established', 'True'), condition('NonStructuralSchema', 'True')),
    'Degraded',
  ],
] as const;

const lua = await runProcess(['lua5.3', '-v']).catch(() => undefined);
const add = lua?.code === 0 ? test : (name: string): void => test.skip(name, 'no lua5.3 on this machine');
for (const [script, rows] of [
  [HEALTH_LUA, OURS],
  [DEFINITION_HEALTH_LUA, DEFINITIONS],
] as const)
  cases<[status: string, wanted: string]>(add, rows, async (status, wanted) => {
    const program = `obj = { metadata = { generation = 2 }, ${status} }\nlocal function health()\n${script}\nend\nprint(health().status)`;
    const ran = await runProcess(['lua5.3', '-'], { stdin: program });
    assert.equal(ran.stdout.trim(), wanted, ran.stderr);
  });

test('a Certificate comes in the wave of the Deployment that waits for its Secret', () => {
  assert.equal(syncWave(meta('cert-manager.io/v1 Certificate', { name: 'webhook' })), 0);
  assert.equal(syncWave(meta('apps/v1 Deployment', { name: 'webhook' })), 0);
});
