// deadline: 120 s
/** Existing auth files: which ones the provider keeps and removes, and its response when Secrets are not readable. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sweepAuthFiles } from '../../runtime/credential-provider/plugin/run.ts';
import { defaultOptions } from '../../runtime/credential-provider/provider-flags.ts';
import { type Cases, cases, test } from '../support/suite.ts';
import { authFiles, PATIENT_MS, requestFor, tokenFor } from './support/node-double.ts';
import { IMAGE, LEFT, run, type Setup } from './support/one-run.ts';

type Left = [setup: Setup, by: string | undefined, isKept: boolean];

const OWN = 'team-a/app';
const lefts: Cases<Left> = [
  [
    'nothing for the mirror any more',
    'what this account wrote would replace the node file',
    { api: { secrets: [] } },
    OWN,
    false,
  ],
  [
    'nothing for the mirror, and the file is of another account',
    'its pull may be about to come',
    { api: { secrets: [] } },
    'team-a/other',
    true,
  ],
  [
    'nothing for the mirror, and nobody has signed the file',
    'another program wrote it',
    { api: { secrets: [] } },
    undefined,
    true,
  ],
  [
    'forbidden',
    'a refusal to one pod says nothing about the file of another',
    { api: { mode: 403 } },
    'team-a/other',
    true,
  ],
  [
    'forbidden, and the file is its own',
    'a denial takes nothing away: the file ends with its time',
    { api: { mode: 403 } },
    OWN,
    true,
  ],
  ['token refused', 'nothing is known about the namespace', { api: { mode: 401 } }, OWN, true],
  ['no CA any more', 'nothing was asked, so nothing is known', { files: { ca: '' } }, OWN, true],
  ['API server away', 'another pull may be about to use the file', { api: { mode: 'reset' } }, OWN, true],
];
cases<Left>(test, lefts, (setup, by, isKept) => {
  const record = by === undefined ? {} : { 'pullwright.dev/record': { by } };
  const existing = { [LEFT]: JSON.stringify({ auths: {}, ...record }) };
  return run({ ...setup, files: { ...setup.files, authDirMode: 0o700, existing } }, ({ names, stdout }) => {
    assert.deepEqual(names, isKept ? [LEFT] : []);
    // CRI-O uses the remaining file: without the entry, the kubelet would record a pull without credentials.
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

type Unread = [setup: Setup];

test('the budget that the kubelet waits for ends within two seconds', () => {
  assert.ok(defaultOptions(undefined).budgetMs < 2000);
});

const unread: Cases<Unread> = [
  ['away', 'connection reset', { api: { mode: 'reset' } }],
  ['hangs', 'no answer at all', { api: { mode: 'hang' } }],
  ['in trouble', 'a server error', { api: { mode: 500 } }],
  [
    'in trouble when a Secret is read by name',
    'an error is not an absent Secret',
    {
      api: { mode: 500 },
      stdin: requestFor(IMAGE, tokenFor('team-a'), { 'pullwright.dev/image-pull-secrets': 'mirror' }),
      options: { options: { secrets: 'named' } },
    },
  ],
  [
    'in trouble at the older types',
    'an error is not an empty list',
    { api: { mode: 'fail-older', secrets: [] } },
  ],
  ['does not know the token', 'it may have expired', { api: { mode: 401 } }],
  ['cannot be verified', 'no CA on the node', { files: { ca: '' } }],
];
cases<Unread>(test, unread, async (setup) => {
  const budgetMs = setup.api?.mode === 'hang' ? 600 : PATIENT_MS;
  const own = { ...setup.options?.options, budgetMs };
  await run({ ...setup, options: { options: own } }, ({ exitCode, stdout, names, log }) => {
    assert.equal(exitCode, 0);
    assert.deepEqual(JSON.parse(stdout).auth, { [IMAGE]: { username: '', password: '' } });
    assert.deepEqual(names, []);
    assert.match(log.join('\n'), /Going on with the node's own auth file: /);
  });
  const options = { ...own, keepImagesPrivate: false };
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
