// deadline: 120 s
/** Auth files that lie there: which the provider keeps, removes and sweeps, and what it answers where it cannot read. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sweepAuthFiles } from '../../runtime/credential-provider/plugin/run.ts';
import { defaultOptions } from '../../runtime/credential-provider/provider-flags.ts';
import { type Case, table, test } from '../support/suite.ts';
import { authFiles, PATIENT_MS } from './support/node-double.ts';
import { IMAGE, LEFT, run, type Setup } from './support/one-run.ts';

interface Left extends Case {
  readonly setup: Setup;
  /** Who wrote the file that is there. */
  readonly by: string | undefined;
  readonly isKept: boolean;
}

const OWN = 'team-a/app';
const lefts: readonly Left[] = [
  {
    name: 'nothing for the mirror any more',
    reason: 'what this account wrote would replace the node file',
    setup: { api: { secrets: [] } },
    by: OWN,
    isKept: false,
  },
  {
    name: 'nothing for the mirror, and the file is of another account',
    reason: 'its pull may be about to come',
    setup: { api: { secrets: [] } },
    by: 'team-a/other',
    isKept: true,
  },
  {
    name: 'nothing for the mirror, and nobody has signed the file',
    reason: 'another program wrote it',
    setup: { api: { secrets: [] } },
    by: undefined,
    isKept: true,
  },
  {
    name: 'forbidden',
    reason: 'a refusal to one pod says nothing about the file of another',
    setup: { api: { mode: 403 } },
    by: 'team-a/other',
    isKept: true,
  },
  {
    name: 'forbidden, and the file is its own',
    reason: 'a denial takes nothing away: the file ends with its time',
    setup: { api: { mode: 403 } },
    by: OWN,
    isKept: true,
  },
  {
    name: 'token refused',
    reason: 'nothing is known about the namespace',
    setup: { api: { mode: 401 } },
    by: OWN,
    isKept: true,
  },
  {
    name: 'no CA any more',
    reason: 'nothing was asked, so nothing is known',
    setup: { files: { ca: '' } },
    by: OWN,
    isKept: true,
  },
  {
    name: 'API server away',
    reason: 'another pull may be about to use the file',
    setup: { api: { mode: 'reset' } },
    by: OWN,
    isKept: true,
  },
];
table(test, lefts, ({ setup, by, isKept }) => {
  const record = by === undefined ? {} : { 'pullwright.dev/record': { by } };
  const existing = { [LEFT]: JSON.stringify({ auths: {}, ...record }) };
  return run({ ...setup, files: { ...setup.files, authDirMode: 0o700, existing } }, ({ names, stdout }) => {
    assert.deepEqual(names, isKept ? [LEFT] : []);
    // CRI-O takes a file that is left: without the entry, the kubelet would record a pull that anybody may have made.
    assert.deepEqual(
      JSON.parse(stdout).auth,
      isKept ? { [IMAGE]: { username: '', password: '' } } : undefined,
    );
  });
});

test.asRoot('a write that fails leaves the file that is there', () =>
  run(
    {
      files: { authDirMode: 0o700, existing: { [LEFT]: '{"auths":{"good.example.com":{}}}' } },
      // A file system without room for another file.
      prepare: ({ options }) => {
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'nr_inodes=2,mode=700', 'tmpfs', options.authDir]);
        writeFileSync(join(options.authDir, LEFT), '{"auths":{"good.example.com":{}}}', { mode: 0o600 });
      },
    },
    ({ exitCode, log, auths, node }) => {
      execFileSync('umount', [node.options.authDir]);
      assert.equal(exitCode, 1, log.join('\n'));
      assert.match(log.join('\n'), /unable to create auth file/);
      assert.deepEqual(auths, { 'good.example.com': {} });
    },
  ),
);

interface Unread extends Case {
  readonly setup: Setup;
}

test('the budget that the kubelet waits for ends within two seconds', () => {
  assert.ok(defaultOptions(undefined).budgetMs < 2000);
});

const unread: readonly Unread[] = [
  { name: 'away', reason: 'connection reset', setup: { api: { mode: 'reset' } } },
  { name: 'hangs', reason: 'no answer at all', setup: { api: { mode: 'hang' } } },
  { name: 'in trouble', reason: 'a server error', setup: { api: { mode: 500 } } },
  { name: 'does not know the token', reason: 'it may have expired', setup: { api: { mode: 401 } } },
  { name: 'cannot be verified', reason: 'no CA on the node', setup: { files: { ca: '' } } },
];
table(test, unread, async ({ setup }) => {
  const budgetMs = setup.api?.mode === 'hang' ? 600 : PATIENT_MS;
  await run({ ...setup, options: { options: { budgetMs } } }, ({ exitCode, stdout, names, log }) => {
    assert.equal(exitCode, 0);
    assert.deepEqual(JSON.parse(stdout).auth, { [IMAGE]: { username: '', password: '' } });
    assert.deepEqual(names, []);
    assert.match(log.join('\n'), /Going on with the node's own auth file: /);
  });
  const options = { budgetMs, keepImagesPrivate: false };
  await run({ ...setup, options: { options } }, ({ exitCode, stdout }) => {
    assert.equal(exitCode, 1);
    assert.equal(stdout, '');
  });
});

test('what no pull took is swept by the next run, of whichever pod it is', () => {
  const old = `team-b-${'0'.repeat(64)}.json`;
  const young = `team-c-${'0'.repeat(64)}.json`;
  return run(
    {
      files: { authDirMode: 0o700, existing: { [old]: '{}', [young]: '{}', 'other.json': '{}' } },
      prepare: ({ options }) => {
        const then = Date.now() / 1000 - 1801;
        for (const name of [old, 'other.json']) utimesSync(join(options.authDir, name), then, then);
      },
    },
    ({ node }) => {
      sweepAuthFiles(node.options.authDir);
      assert.deepEqual(Object.keys(authFiles(node)).sort(), ['other.json', LEFT, young].sort());
    },
  );
});
