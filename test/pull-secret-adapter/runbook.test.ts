/** The runbook lists every reason. Another test checks the alerts of all runbooks. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { OUTCOMES } from '../../runtime/pull-secret-adapter/outcome.ts';
import { test } from '../support/suite.ts';

const page = readFileSync(new URL('../../docs/runbooks/pull-secret-adapter.md', import.meta.url), 'utf8');

test('every reason is in the table', () => {
  const own = [
    'SecretAvailable',
    'SecretCreated',
    'JobInProgress',
    'PreconditionNotMet',
    'JobFailed',
    'Deleting',
  ];
  const final = ['CleanupInProgress', 'CleanupConfirmed', 'InUse', 'Healthy'];
  const table = page.split('\n### Reasons\n')[1] ?? '';
  for (const reason of [...Object.keys(OUTCOMES), ...own, ...final])
    assert.ok(table.includes(`\`${reason}\``), `${reason} is missing`);
});
