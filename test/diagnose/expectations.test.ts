import assert from 'node:assert/strict';
import { parseImageReference } from '../../runtime/core/image-reference.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { judgeExpectation, readExpectations } from '../../runtime/diagnose/commands/test.ts';
import { explainImage } from '../../runtime/diagnose/model/attempts.ts';
import { table, test } from '../support/suite.ts';

const auth = (user: string): string => Buffer.from(`${user}:pw`).toString('base64');
const source = (name: string, body: string) => ({ name, format: 'config.json', text: redact(body) }) as const;
const NODE = source(
  'Secret/kube-system/global-pull-secret',
  `{"auths":{"quay.io":{"auth":"${auth('node')}"},"m.io":{"auth":"${auth('mirror')}"}}}`,
);
const POISON = source('Secret/web/bad', '{"auths":{"x.io":{"auth":"?"}}}');
const MIRRORS = [
  {
    prefix: 'quay.io',
    location: 'quay.io',
    blocked: false,
    insecure: false,
    mirrors: [
      { location: 'm.io', pullFrom: 'all' as const },
      { location: 'bare.io', pullFrom: 'all' as const },
    ],
  },
];

function judge(
  image: string,
  expect: unknown,
  more: { at?: string; state?: 'found' | 'encrypted' } = {},
): string | undefined {
  const [expectation] =
    readExpectations({ tests: [{ image, expect, ...(more.at === undefined ? {} : { at: more.at }) }] }).value
      ?.tests ?? [];
  const parsed = parseImageReference(image);
  assert.ok(parsed.ok && expectation !== undefined);
  const { state } = more;
  const bad = { name: 'bad', listedBy: 'Pod/web/a', ...(state === 'found' && { source: POISON }) };
  const secrets = state === undefined ? [] : [{ ...bad, state }];
  const merge = {
    origins: new Map([['quay.io', 'Secret/kube-system/original-pull-secret']]),
    verdicts: [],
    additional: 'a',
  };
  return judgeExpectation(
    expectation,
    explainImage({ image: parsed.reference, secrets, node: NODE, merge, mirrors: MIRRORS }),
  );
}

table(
  test,
  [
    {
      name: 'the file',
      reason: 'by the end of its name',
      image: 'quay.io/a',
      expect: { secret: 'global-pull-secret' },
    },
    {
      name: 'the Secret behind it',
      reason: 'by its origin',
      image: 'quay.io/a',
      expect: { secret: 'kube-system/original-pull-secret', key: 'quay.io', username: 'node' },
    },
    {
      name: 'another Secret',
      reason: 'a part of a name is none',
      image: 'quay.io/a',
      expect: { secret: 'pull-secret' },
      fails: /expected Secret "pull-secret", found user "node" by "quay\.io"/,
    },
    {
      name: 'another user',
      reason: 'told the value',
      image: 'quay.io/a',
      expect: { username: 'x' },
      fails: /expected user "x"/,
    },
    {
      name: 'a mirror',
      reason: 'judged at its place',
      image: 'quay.io/a',
      at: 'm.io',
      expect: { username: 'mirror' },
    },
    {
      name: 'a mirror without credential',
      reason: 'anonymous',
      image: 'quay.io/a',
      at: 'bare.io',
      expect: 'anonymous',
    },
    {
      name: 'a place that is not asked',
      reason: 'a mistake in the test',
      image: 'quay.io/a',
      at: 'z.io',
      expect: 'anonymous',
      fails: /no pull source starts with "z\.io"/,
    },
    { name: 'no credential', reason: 'anonymous', image: 'r.io/a', expect: 'anonymous' },
    { name: 'no credential is denied too', reason: 'nothing is offered', image: 'r.io/a', expect: 'denied' },
    {
      name: 'denied, but there is one',
      reason: 'a leak',
      image: 'quay.io/a',
      expect: 'denied',
      fails: /expected no credential, found user "node"/,
    },
    {
      name: 'an encrypted Secret',
      reason: 'may have a credential',
      image: 'r.io/a',
      state: 'encrypted',
      expect: 'denied',
      fails: /expected "denied", the content of Secret "bad" is unknown/,
    },
    { name: 'a poisoned pod', reason: 'pulls nothing', image: 'quay.io/a', state: 'found', expect: 'denied' },
    {
      name: 'a poisoned pod is not anonymous',
      reason: 'it makes no attempt',
      image: 'r.io/a',
      state: 'found',
      expect: 'anonymous',
      fails: /cannot pull any image: Secret\/web\/bad/,
    },
  ] as const,
  (row) => {
    const failure = judge(row.image, row.expect, row);
    if ('fails' in row) assert.match(failure ?? '', row.fails);
    else assert.equal(failure, undefined);
  },
);

test('every mistake of a file is told, with its path', () => {
  const image = 'quay.io/a';
  const problems = (document: unknown): readonly string[] => readExpectations(document).problems;
  const tests = [{ image: 3, expect: {} }, 'x', { image, expect: 'yes', pods: 'a' }, { image }];
  assert.deepEqual(
    problems({ tets: 1, from: 7, tests }).map((problem) => problem.split(':')[0]),
    [
      'from',
      'tests[0].image',
      'tests[0].expect',
      'tests[1]',
      'tests[2].expect',
      'tests[2].pods',
      'tests[3].expect',
      'tets',
    ],
  );
  for (const document of [
    undefined,
    { tests: [] },
    { tests: 'x' },
    { tests: [{ image, expect: { secret: 1 } }] },
  ])
    assert.equal(problems(document).length, 1);
  assert.deepEqual(problems({ tests: [{ image, expect: 'denied' }] }), []);
});
