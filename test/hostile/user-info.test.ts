/** A password in a registry key is never printed, and is a finding. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mergePullSecrets } from '../../runtime/core/docker-config/merge.ts';
import { pullStatus } from '../../runtime/core/kubernetes/pull-status.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { withoutUserInfo } from '../../runtime/core/text.ts';
import { findPlanted, plantedAuth, plantedPassword } from '../support/canary.ts';
import { runInProcess } from '../support/in-process.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { commandsOn } from './evil-commands.ts';
import { dump } from './evil-words.ts';

const PASSWORD = plantedPassword('key');
const KEYS = [
  `https://robot:${PASSWORD}@quay.io`,
  `https://robot:${PASSWORD}@quay.io/v2/team`,
  `robot:${PASSWORD}@team.example.com`,
  `https://robot:pass/${PASSWORD}@other.example.com`,
];

const folder = tempFolder();

test('is stripped, and what only looks like it stays', () => {
  for (const key of KEYS) assert.equal(findPlanted(withoutUserInfo(key)), undefined);
  assert.equal(withoutUserInfo(KEYS[0] ?? ''), 'https://quay.io');
  for (const text of [
    'registry.example.com:5000/a/b:1@sha256:abc',
    'alpine:3.20@sha256:abc',
    'https://iam.googleapis.com/v1/projects/-/serviceAccounts/job@p.iam.gserviceaccount.com:generateAccessToken',
    'https://registry.example.com:5000/v2/a?account=a@b',
    'binds serviceAccount:job@p.iam.gserviceaccount.com',
  ])
    assert.equal(withoutUserInfo(text), text);
});

async function output(args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await runInProcess(args, { cwd: folder });
  return stdout + stderr;
}

const from = join(folder, 'dump');
mkdirSync(from);
const auths = Object.fromEntries(KEYS.map((key) => [key, { auth: plantedAuth('value') }]));
const secret = Buffer.from(JSON.stringify({ auths })).toString('base64');
writeFileSync(
  join(folder, 'dump', 'all.json'),
  dump('x').replace(
    /"namespace":"web","name":"team"\},"type":"[^"]*","data":\{"\.dockerconfigjson":"[^"]*"/,
    (found) => found.replace(/:"[^"]*"$/, `:"${secret}"`),
  ),
);
assert.ok(readFileSync(join(folder, 'dump', 'all.json'), 'utf8').includes(secret), 'the dump has changed');

for (const args of [
  ...commandsOn(from, 'x').filter((one) => one.includes(from)),
  ['explain', 'quay.io/team/a', '--pod', 'web', '-n', 'web', '--from', from, '-o', 'json'],
  ['validate', from, '-o', 'json'],
])
  test(`${args.join(' ').replace(from, 'dump')} shows none`, async () => {
    const seen = await output(args);
    assert.doesNotMatch(seen, /^Cannot (read|use)/);
    assert.equal(findPlanted(seen), undefined);
  });

test('the page of a report shows none, and validate names it', async () => {
  const ran = await output(['report', '--from', from, '--html', join(folder, 'page.html')]);
  assert.ok(existsSync(join(folder, 'page.html')), ran);
  assert.equal(findPlanted(readFileSync(join(folder, 'page.html'), 'utf8')), undefined);
  assert.match(await output(['validate', from, '-o', 'json']), /KeyWithUserInfo/);
});

const IMAGES = [
  `robot:${PASSWORD}@quay.io/acme/web:1`,
  `https://robot:${PASSWORD}@quay.io/acme/web:1`,
  ` robot:pass/${PASSWORD}@quay.io/acme/web:1`,
];

/** Pods that have such an image, with what the kubelet says of it. */
const ofPods = join(folder, 'images');
mkdirSync(ofPods);
const metadata = { namespace: 'web', name: 'web' };
const items = IMAGES.flatMap((image, at) => {
  const [name, message] = [
    `web${at}`,
    `Failed to apply default image tag "${image}": invalid reference format`,
  ];
  const waiting = { reason: 'InvalidImageName', message };
  const named = { namespace: 'web', name };
  return [
    {
      ...meta('v1 Pod', named),
      spec: { containers: [{ name: 'a', image }] },
      status: { phase: 'Pending', containerStatuses: [{ name: 'a', image, state: { waiting } }] },
    },
    {
      ...meta('v1 Event', { namespace: 'web', name: `${name}.1` }),
      involvedObject: { kind: 'Pod', ...named },
      reason: 'Failed',
      type: 'Warning',
      message,
    },
  ];
});
writeFileSync(
  join(ofPods, 'all.json'),
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'List',
    items: [
      ...items,
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...metadata, name: 'default' } },
    ],
  }),
);
const outputs = (...formats: readonly string[]) => formats.map((format) => ['-o', format]);
for (const args of [
  ...IMAGES.flatMap((_, at) =>
    [[], ...outputs('wide', 'json', 'yaml')].map((as) => ['doctor', `web${at}`, '-n', 'web', ...as]),
  ),
  ...[[], ...outputs('json')].flatMap((as) => [
    ['doctor', '--all', '-A', ...as],
    ['explain', '--pod', 'web0', '-n', 'web', ...as],
    ['validate', ...as],
    ['mirrors', ...as],
    ['verify', '--all-in-use', ...as],
    ...IMAGES.flatMap((image) => [
      ['explain', image, ...as],
      ['mirrors', image, ...as],
      ['verify', image, ...as],
    ]),
  ]),
  ...[[], ['--markdown'], ...outputs('wide', 'json', 'yaml')].map((as) => ['report', ...as]),
])
  test(`${args.join(' ').replaceAll(PASSWORD, '...')} shows no password of an image`, async () => {
    const from = args[0] === 'validate' ? [ofPods] : ['--from', ofPods];
    const seen = await output([...args, ...from]);
    assert.ok(seen !== '' || args.includes('yaml'));
    assert.equal(findPlanted(seen), undefined);
    assert.doesNotMatch(seen, /^(Unknown|Usage)/);
    if (/^(?:doctor|report)\b(?!.* yaml$)/.test(args.join(' ')))
      assert.match(seen, /image name .* is invalid|An image name is invalid/);
  });

test('the page of a report shows no password of an image', async () => {
  const page = join(folder, 'images.html');
  await output(['report', '--from', ofPods, '--html', page]);
  const seen = readFileSync(page, 'utf8');
  assert.match(seen, /image name .* is invalid|An image name is invalid/);
  assert.equal(findPlanted(seen), undefined);
});

test('an image with user info is named as it can be written', async () => {
  for (const image of IMAGES.slice(0, 2))
    assert.match(await output(['mirrors', image, '--from', ofPods]), /write "quay\.io\/acme\/web:1"/);
});

test('a PullStatus shows none, and says to remove it', () => {
  const text = (config: object) => redact(JSON.stringify(config));
  const merged = mergePullSecrets({
    original: text({ auths: { [KEYS[0] ?? '']: { auth: plantedAuth('a') } } }),
    additional: text({ auths }),
  });
  assert.ok(merged.ok);
  const { status } = pullStatus({
    reporter: 'a',
    about: { apiVersion: 'v1', kind: 'Secret', namespace: 'a', name: 'b' },
    conditions: [{ type: 'Ready', status: 'True', reason: 'A', message: `of ${KEYS[0]} and "${KEYS[2]}"` }],
    verdicts: [...merged.verdicts, ...merged.originalVerdicts],
    present: undefined,
    now: new Date(0),
  });
  const seen = JSON.stringify(status);
  assert.match(seen, /KeyWithUserInfo/);
  assert.match(seen, /of https:\/\/quay\.io and \\"team\.example\.com\\"/);
  assert.equal(findPlanted(seen), undefined);
});
