// deadline: 120 s
/** Notes of failed runs, and the installer's reports of them. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  failureEvent,
  failureNews,
  failureVerdict,
  readFailures,
  withFailures,
} from '../../runtime/credential-provider/installer/report.ts';
import { MOST_NOTES } from '../../runtime/credential-provider/plugin/journal.ts';
import { sweepAuthFiles } from '../../runtime/credential-provider/plugin/run.ts';
import { test } from '../support/suite.ts';
import { CONF, call, IMAGE, leave, place } from './support/compiled-run.ts';
import { type NodeDouble, requestFor, tokenFor } from './support/node-double.ts';

const STATE = { ready: true, reason: 'InSync', message: 'The file matches the desired content' };

/** Files of notes, by name. */
function notesOf({ options }: NodeDouble): readonly string[] {
  return readdirSync(join(options.authDir, 'failed'));
}

test('a refusal is noted for root alone, without the token, and read back with who pulled what', async () => {
  const here = await place({ mode: 'forbid-secrets' });
  const ran = await call(here.node, 'team-a');
  assert.equal(ran.code, 1, ran.stderr);
  const folder = join(here.node.options.authDir, 'failed');
  const [name = ''] = notesOf(here.node);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600);
  assert.ok(!readFileSync(join(folder, name), 'utf8').includes(tokenFor('team-a')));
  const [note] = readFailures(here.node.options.authDir);
  assert.ok(note !== undefined);
  const { message, ...about } = note;
  assert.deepEqual(about, { namespace: 'team-a', serviceAccount: 'app', pod: 'web-0', image: IMAGE });
  assert.match(message, /^Failed to run credential provider: .*forbidden.*kubectl apply/);
  await leave(here);
});

test('the next run that does well takes back the note of its account alone', async () => {
  const here = await place({ mode: 'forbid-secrets' });
  for (const account of ['app', 'other'])
    await call(here.node, 'team-a', { stdin: requestFor(IMAGE, tokenFor('team-a', 'web-0', account)) });
  assert.equal(notesOf(here.node).length, 2);
  await leave({ ...here, node: { ...here.node, remove: () => undefined } });
  const well = await place();
  const ran = await call({ ...here.node, folder: well.node.folder }, 'team-a', {
    flags: [`--auth-dir=${here.node.options.authDir}`],
  });
  assert.equal(ran.code, 0, ran.stderr);
  const left = readFailures(here.node.options.authDir);
  assert.deepEqual(
    left.map(({ serviceAccount }) => serviceAccount),
    ['other'],
  );
  here.node.remove();
  await leave(well);
});

test('what fails before the pod is known is the node’s, until any run does well', async () => {
  const here = await place();
  const conf = join(here.node.folder, 'registries.conf');
  writeFileSync(conf, '[[registry]\n');
  assert.equal((await call(here.node, 'team-a')).code, 1);
  const [note] = readFailures(here.node.options.authDir);
  assert.equal(note?.namespace, undefined);
  assert.match(note?.message ?? '', /loading registries configuration/);
  writeFileSync(conf, CONF);
  assert.equal((await call(here.node, 'team-b')).code, 0);
  assert.deepEqual(readFailures(here.node.options.authDir), []);
  await leave(here);
});

test('tenants fill no disk: a full folder takes no new note, and old ones are swept', async () => {
  const here = await place({ mode: 'forbid-secrets' });
  const folder = join(here.node.options.authDir, 'failed');
  mkdirSync(folder, { mode: 0o700 });
  for (let at = 0; at < MOST_NOTES; at += 1)
    writeFileSync(join(folder, `t${at}-${'0'.repeat(64)}.json`), '{"message":"m"}');
  await call(here.node, 'team-a');
  assert.equal(notesOf(here.node).length, MOST_NOTES);
  const { now } = Date;
  Date.now = () => now() + 3_600_000;
  try {
    sweepAuthFiles(here.node.options.authDir);
  } finally {
    Date.now = now;
  }
  assert.deepEqual(notesOf(here.node), []);
  await leave(here);
});

test('what is no note is skipped, and so is a folder that cannot be read', async () => {
  const here = await place();
  const folder = join(here.node.options.authDir, 'failed');
  mkdirSync(folder);
  symlinkSync('/etc/hostname', join(folder, 'a.json'));
  writeFileSync(join(folder, 'b.json'), '{"message":');
  writeFileSync(join(folder, 'c.json'), '{"message":7}');
  writeFileSync(join(folder, 'd.json'), JSON.stringify({ message: 'x'.repeat(20_000) }));
  writeFileSync(join(folder, 'e.json'), '{"message":"m","namespace":{},"more":1}');
  assert.deepEqual(readFailures(here.node.options.authDir), [{ message: 'm' }]);
  rmSync(folder, { recursive: true });
  symlinkSync(folder, folder);
  assert.deepEqual(readFailures(here.node.options.authDir), []);
  await leave(here);
});

test('the report names the accounts, and stays Ready: the node is as it should be', () => {
  const notes = ['a', 'b', 'c', 'd'].map((namespace) => ({ namespace, serviceAccount: 'app', message: 'm' }));
  assert.deepEqual(withFailures(STATE, []), STATE);
  const { ready, message } = withFailures(STATE, notes);
  assert.equal(ready, true);
  assert.match(message, /; the last run of the provider failed for a\/app, b\/app, c\/app and 1 more$/);
  const verdict = failureVerdict({ ...notes[0], message: 'm', image: IMAGE });
  assert.deepEqual(verdict, {
    subject: 'a/app',
    verdict: 'Warning',
    reason: 'CredentialProviderFailed',
    message: `image "${IMAGE}": m`,
  });
});

test('a verdict is short, because there may be a hundred', () => {
  const { message } = failureVerdict({ namespace: 'a', serviceAccount: 'app', message: 'x'.repeat(2000) });
  assert.equal(message.length, 500);
  assert.match(message, /x\.\.\.$/);
});

test('the pod gets one Event for each cause', () => {
  const note = { namespace: 'a', serviceAccount: 'app', pod: 'web-0', podUid: 'u1', message: 'm' };
  const { regarding, ...said } = failureEvent(note);
  assert.deepEqual(regarding, { apiVersion: 'v1', kind: 'Pod', namespace: 'a', name: 'web-0', uid: 'u1' });
  assert.deepEqual(said, { type: 'Warning', reason: 'CredentialProviderFailed', action: 'Pull', note: 'm' });
  assert.equal(failureEvent({ message: 'm' }).regarding, undefined);
  const news = failureNews();
  assert.deepEqual(news([note]), [note]);
  assert.deepEqual(news([note]), []);
  const other = { ...note, message: 'another' };
  assert.deepEqual(news([other]), [other]);
  assert.deepEqual(news([]), []);
  assert.deepEqual(news([other]), [other]);
});
