import assert from 'node:assert/strict';
import type { AuthSource } from '../../runtime/core/docker-config/pull-secret.ts';
import { parseImageReference } from '../../runtime/core/image-reference.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { explainImage } from '../../runtime/diagnose/model/attempts.ts';
import type { ExplainInput, ListedSecret } from '../../runtime/diagnose/model/types.ts';
import { explanationText } from '../../runtime/diagnose/views/text.ts';
import { plantedAuth } from '../support/canary.ts';
import { table, test } from '../support/suite.ts';

function source(name: string, users: Readonly<Record<string, string>>): AuthSource {
  const auths = Object.fromEntries(
    Object.entries(users).map(([key, user]) => [key, { auth: plantedAuth('explain', user) }]),
  );
  return { name, format: 'config.json', text: redact(JSON.stringify({ auths })) };
}

function listed(name: string, users?: Readonly<Record<string, string>>): ListedSecret {
  const listedBy = 'Pod/web/shop';
  if (users === undefined) return { name, listedBy, state: 'missing' };
  return { name, listedBy, state: 'found', source: source(`Secret/web/${name}`, users) };
}

function explain(image: string, input: Partial<ExplainInput>) {
  const parsed = parseImageReference(image);
  assert.ok(parsed.ok);
  return explainImage({ secrets: [], mirrors: [], ...input, image: parsed.reference });
}

const MIRRORS = [
  {
    prefix: 'quay.io',
    location: 'quay.io',
    blocked: false,
    insecure: false,
    mirrors: [
      { location: 'm.io/quay', pullFrom: 'all' as const },
      { location: 'bare.io', pullFrom: 'all' as const },
    ],
  },
];

test('the pod before the node, at the source; the file alone at the mirrors', () => {
  const node = source('node', { 'quay.io': 'node', 'm.io': 'mirror' });
  const explained = explain('quay.io/team/app:1', {
    secrets: [listed('pull', { 'quay.io/team': 'pod' })],
    node,
    mirrors: MIRRORS,
  });
  assert.deepEqual(
    explained.kubelet.tried.map((one) => `${one.username} ${one.source}`),
    ['pod Secret/web/pull', 'node node'],
  );
  assert.deepEqual(
    explained.places.map(({ reference, crio }) => [
      reference,
      crio.what === 'entry' ? crio.username : crio.what,
    ]),
    [
      ['m.io/quay/team/app:1', 'mirror'],
      ['bare.io/team/app:1', 'nothing'],
      ['quay.io/team/app:1', 'kubelet'],
    ],
  );
  assert.match(explained.verification, /Secret\/web\/pull in place/);
  assert.deepEqual(
    explained.findings.map(({ severity }) => severity),
    ['warning'],
  );
  assert.match(explained.findings[0]?.message ?? '', /never reaches a mirror/);
});

test('one unreadable secret fails everything, and the finding names entry and place without a value', () => {
  const broken: ListedSecret = {
    ...listed('bad', {}),
    state: 'found',
    source: {
      name: 'Secret/web/bad',
      format: 'config.json',
      text: redact('{\n"auths":{"x.io":{"auth":"hunter-2!"}}}'),
    },
  };
  const explained = explain('nginx', { secrets: [listed('pull', { 'docker.io': 'pod' }), broken] });
  assert.equal(explained.kubelet.blockedBy?.source, 'Secret/web/bad');
  assert.deepEqual([explained.kubelet.tried, explained.kubelet.anonymous], [[], false]);
  const [first] = explained.findings;
  assert.equal(first?.severity, 'error');
  assert.match(first?.message ?? '', /auths\["x\.io"\] .*not base64.*line 2/);
  assert.doesNotMatch(JSON.stringify(explained), /hunter-2!/);
});

test('an unreadable node file is skipped by the kubelet and fails CRI-O at the mirrors', () => {
  const node: AuthSource = {
    name: 'node',
    format: 'config.json',
    text: redact('{"auths":{"x":{"auth":1}}}'),
  };
  const explained = explain('quay.io/a/b', { node, mirrors: MIRRORS });
  assert.equal(explained.kubelet.anonymous, true);
  assert.deepEqual(
    explained.places.map(({ crio }) => crio.what),
    ['failure', 'failure', 'failure'],
  );
  assert.equal(explained.findings[0]?.severity, 'error');
});

table(
  test,
  [
    { name: 'Quay.io', reason: 'case', why: /as written/ },
    { name: 'quay.io:443', reason: 'port', why: /443, the image none/ },
    { name: 'quay.io/web', reason: 'path', why: /not under "\/web"/ },
    { name: 'HTTPS://quay.io', reason: 'scheme in capitals', why: /./ },
  ],
  ({ name, why }) => {
    const explained = explain('quay.io/team/app', { secrets: [listed('pull', { [name]: 'u' })] });
    const [unused] = explained.kubelet.unused;
    assert.equal(unused?.key, name);
    assert.match(unused?.why ?? '', why);
    assert.equal(unused?.near, true);
    assert.ok(explained.findings.some(({ advice }) => advice?.includes('"quay.io" or "quay.io/team"')));
  },
);

test('a missing secret is a finding, not a failure', () => {
  const explained = explain('nginx', { secrets: [listed('gone')] });
  assert.equal(explained.kubelet.anonymous, true);
  assert.ok(
    explained.findings.some(({ message }) =>
      message.includes('"gone", listed by Pod/web/shop, does not exist'),
    ),
  );
});

test('what the merge held back is said, and entries tell where they came from', () => {
  const merge = {
    origins: new Map([['quay.io', 'Secret/kube-system/original-pull-secret']]),
    verdicts: [
      {
        subject: 'https://quay.io',
        verdict: 'Shadowed' as const,
        reason: 'SpellingVariant',
        message: 'means "quay.io"',
      },
    ],
    additional: 'Secret/kube-system/additional-pull-secret',
  };
  const explained = explain('quay.io/a', { node: source('node', { 'quay.io': 'u' }), merge });
  assert.equal(explained.kubelet.tried[0]?.origin, 'Secret/kube-system/original-pull-secret');
  assert.ok(explained.findings.some(({ message }) => message.includes('is shadowed: it means "quay.io"')));
});

test('a blocked source leaves no place', () => {
  const explained = explain('quay.io/a', {
    mirrors: MIRRORS.map((rule) => ({ ...rule, blocked: true, mirrors: [] })),
  });
  assert.deepEqual(explained.places, []);
  assert.equal(explained.findings[0]?.severity, 'error');
});

test('the text shows no password', () => {
  const explained = explain('quay.io/team/app', {
    secrets: [listed('pull', { 'quay.io': 'a"b]' })],
    mirrors: MIRRORS,
  });
  const text = explanationText(explained, () => 'file.yaml:3');
  assert.match(text, /^quay\.io\/team\/app:latest\n├─ credentials from/);
  assert.match(text, /file\.yaml:3/);
  assert.match(text, /kubelet {2}one credential, no anonymous attempt\n/);
  assert.doesNotMatch(text, /cAnArY/);
});

test('a name without a registry is not the same to CRI-O, which may hand the credential to others', () => {
  const findings = (
    written: string,
    secrets: readonly ListedSecret[],
    more: Pick<ExplainInput, 'versions' | 'search'> = {},
  ): readonly string[] => {
    const parsed = parseImageReference(written);
    assert.ok(parsed.ok);
    return explainImage({ image: parsed.reference, written, secrets, mirrors: [], ...more }).findings.map(
      ({ severity, message, advice }) => `${severity} ${message} ${advice ?? ''}`,
    );
  };
  const hub = listed('pull', { 'docker.io': 'me' });
  assert.match(
    findings('nginx', [hub])[0] ?? '',
    /^warning .*each with the credential .*Write docker\.io\/library\/nginx$/,
  );
  assert.match(findings('nginx', []).join('\n'), /^info .*has no registry/m);
  assert.match(
    findings('nginx', [], { search: ['reg.io', 'quay.io'] }).join('\n'),
    /^info .*CRI-O tries reg\.io, then quay\.io, .*Write its registry too, such as reg\.io\/nginx$/m,
  );
  assert.doesNotMatch(findings('docker.io/nginx', [hub]).join('\n'), /has no registry/);
  assert.doesNotMatch(
    findings('nginx', [hub], { versions: { runtime: 'containerd' } }).join('\n'),
    /has no registry/,
  );
});

test('for registries of clouds it says that the kubelet may know more than what is looked at', () => {
  const says = (image: string): boolean =>
    explain(image, {}).findings.some(({ message }) => message.includes("cloud's credential provider"));
  for (const image of [
    '123456789012.dkr.ecr.eu-west-1.amazonaws.com/app',
    'acme.azurecr.io/app',
    'gcr.io/acme/app',
    'europe-docker.pkg.dev/acme/app/web',
  ])
    assert.equal(says(image), true, image);
  for (const image of ['quay.io/a/b', 'notgcr.io/a', 'gcr.io.example.com/a'])
    assert.equal(says(image), false, image);
});

/** Keys with stars that were meant for a host and do not match it. */
const STARS = [
  {
    name: 'a deeper host',
    reason: 'people take a star for any number of parts',
    key: '*.example.com',
    image: 'a.b.example.com/x',
    near: true,
    why: /^a star matches one label .*"\*\.example\.com" does not match "a\.b\.example\.com"$/,
  },
  {
    name: 'the domain itself',
    reason: 'likewise',
    key: '*.example.com',
    image: 'example.com/x',
    near: true,
    why: /^a star matches one label/,
  },
  {
    name: 'a port',
    reason: 'the host matches, the port does not',
    key: '*.example.com',
    image: 'a.example.com:5000/x',
    near: true,
    why: /^ports are compared/,
  },
  {
    name: 'a path',
    reason: 'the host matches, the path does not',
    key: '*.example.com/team',
    image: 'a.example.com/x',
    near: true,
    why: /not under "\/team"/,
  },
  {
    name: 'another domain',
    reason: 'nobody meant it',
    key: '*.example.com',
    image: 'quay.io/x',
    near: false,
    why: /another registry|a star/,
  },
  {
    name: 'a star alone',
    reason: 'it is meant for nothing that could be told',
    key: '*',
    image: 'quay.io/x',
    near: false,
    why: /a star/,
  },
] as const;

table(test, STARS, ({ key, image, near, why }) => {
  const [unused] = explain(image, { secrets: [listed('pull', { [key]: 'team' })] }).kubelet.unused;
  assert.equal(unused?.near, near);
  assert.match(unused?.why ?? '', why);
});
