/** What Argo CD is told about the health of objects, in its own language. */
import assert from 'node:assert/strict';
import { DEFINITION_HEALTH_LUA, HEALTH_LUA } from '../../charts/gitops/argo-cd.ts';
import { runProcess } from '../support/process.ts';
import { type Case, test } from '../support/suite.ts';

interface Health extends Case {
  readonly script: string;
  /** Of the object, beside its metadata. */
  readonly status: string;
  readonly wanted: string;
}

const condition = (type: string, status: string, more = ''): string =>
  `{ type = "${type}", status = "${status}", message = "said"${more} }`;
const conditions = (...all: readonly string[]): string => `status = { conditions = { ${all.join(', ')} } }`;

const OURS: readonly Omit<Health, 'script'>[] = [
  { name: 'no status', reason: 'nobody has looked', status: '', wanted: 'Progressing' },
  {
    name: 'ready',
    reason: 'Ready sums up',
    status: conditions(condition('Ready', 'True')),
    wanted: 'Healthy',
  },
  {
    name: 'not ready',
    reason: 'it goes on by itself',
    status: conditions(condition('Ready', 'False')),
    wanted: 'Progressing',
  },
  {
    name: 'stalled',
    reason: 'a person has to act',
    status: conditions(condition('Ready', 'False'), condition('Stalled', 'True')),
    wanted: 'Degraded',
  },
  {
    name: 'ready, of an older generation',
    reason: 'it says nothing of what is wanted now',
    status: conditions(condition('Ready', 'True', ', observedGeneration = 1')),
    wanted: 'Progressing',
  },
];

const DEFINITIONS: readonly Omit<Health, 'script'>[] = [
  { name: 'a definition without a status', reason: 'it is new', status: '', wanted: 'Progressing' },
  {
    name: 'a definition whose conditions are not there yet',
    reason: 'the API server writes the list of stored versions first',
    status: 'status = { storedVersions = { "v1alpha1" } }',
    wanted: 'Progressing',
  },
  {
    name: 'a definition whose names are accepted',
    reason: 'being established is the next thing, and no failure',
    status: conditions(condition('NamesAccepted', 'True')),
    wanted: 'Progressing',
  },
  {
    name: 'a definition that is being installed',
    reason: 'the same, said by the second condition',
    status: conditions(
      condition('NamesAccepted', 'True'),
      condition('Established', 'False', ', reason = "Installing"'),
    ),
    wanted: 'Progressing',
  },
  {
    name: 'a definition that is served',
    reason: 'what needs it may come',
    status: conditions(condition('NamesAccepted', 'True'), condition('Established', 'True')),
    wanted: 'Healthy',
  },
  {
    name: 'a definition whose names another one has',
    reason: 'that does not pass by itself',
    status: conditions(condition('NamesAccepted', 'False'), condition('Established', 'False')),
    wanted: 'Degraded',
  },
  {
    name: 'a definition with a schema that is none',
    reason: 'nor does that, whatever else is the case',
    status: conditions(condition('Established', 'True'), condition('NonStructuralSchema', 'True')),
    wanted: 'Degraded',
  },
];

const CASES: readonly Health[] = [
  ...OURS.map((one) => ({ ...one, script: HEALTH_LUA })),
  ...DEFINITIONS.map((one) => ({ ...one, script: DEFINITION_HEALTH_LUA })),
];

const lua = await runProcess(['lua5.3', '-v']).catch(() => undefined);
for (const { name, reason, script, status, wanted } of CASES) {
  if (lua?.code !== 0) {
    test.skip(name, 'no lua5.3 on this machine');
    continue;
  }
  test(name, async () => {
    const program = `obj = { metadata = { generation = 2 }, ${status} }\nlocal function health()\n${script}\nend\nprint(health().status)`;
    const ran = await runProcess(['lua5.3', '-'], { stdin: program });
    assert.equal(ran.stdout.trim(), wanted, `${reason}: ${ran.stderr}`);
  });
}
