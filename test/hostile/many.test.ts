// deadline: 300 s
/**
 * Four times as many keys, pods and entries take about four times the work: counted, not timed, with what the YAML library
 * does for it. What serves many pods is read once.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import { readFleetYaml } from '../../charts/fleet-yaml.ts';
import type { CommandIo } from '../../runtime/cli/command.ts';
import { matchesImage } from '../../runtime/core/docker-config/match-images.ts';
import { parseImageReference } from '../../runtime/core/image-reference.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { explainImage } from '../../runtime/diagnose/model/attempts.ts';
import { readImagesInUse } from '../../runtime/diagnose/model/registries.ts';
import { parseManifests } from '../../runtime/engine/offline/manifests.ts';
import { KUBERNETES_SCHEMA, parseYaml, yamlDocument } from '../../runtime/kube/yaml.ts';
import { fetchToken } from '../../runtime/registry/token.ts';
import type { RegistryTransport } from '../../runtime/registry/transport.ts';
import { MOST_WORK, WorkCounter } from '../fuzz/work.ts';
import { plantedAuth } from '../support/canary.ts';
import { runInProcess } from '../support/in-process.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const counter = new WorkCounter([
  new URL('../../runtime/', import.meta.url).href,
  new URL('../../charts/', import.meta.url).href,
  new URL('.', import.meta.resolve('yaml')).href,
]);
await counter.start();

const NAMESPACE = 'web';
const SHAPED = { name: 'b', namespace: NAMESPACE };

/** YAML block and flow style: the library has a reader for each. */
const block = (keys: number): string =>
  numbers(keys)
    .map((one) => `k${one}: 1\n`)
    .join('');
const flow = (keys: number): string =>
  `a: {${numbers(keys)
    .map((one) => `k${one}: 1`)
    .join(', ')}}\n`;

/** An anchor for each alias. */
const aliases = (many: number): string =>
  `a:\n${numbers(many)
    .map((one) => `  - &x${one} 1\n  - *x${one}\n`)
    .join('')}`;

function numbers(many: number): readonly number[] {
  return Array.from({ length: many }, (_, index) => index);
}

function auths(entries: number): string {
  const made = numbers(entries).map((one) => [`r${one}.io`, { auth: plantedAuth('many') }]);
  return JSON.stringify({ auths: Object.fromEntries(made) as unknown });
}

/** A folder of pods that all list one Secret, with an event about each of them. */
function dump(pods: number, entries: number): string {
  const items = numbers(pods).flatMap((one) => {
    const name = `web-${one}`;
    const image = `r${one}.io/team/app:1`;
    return [
      {
        ...meta('v1 Pod', { name, namespace: NAMESPACE }),
        spec: { containers: [{ name: 'a', image }], imagePullSecrets: [{ name: 'b' }] },
        status: {
          phase: 'Pending',
          containerStatuses: [{ name: 'a', image, state: { waiting: { reason: 'ImagePullBackOff' } } }],
        },
      },
      {
        ...meta('v1 Event', { name, namespace: NAMESPACE }),
        involvedObject: { kind: 'Pod', name, namespace: NAMESPACE },
        reason: 'BackOff',
        message: 'no such host',
      },
    ];
  });
  const secret = pullSecretObject(SHAPED, auths(entries));
  writeFileSync(
    join(folder, 'objects.json'),
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...items, secret] }),
  );
  return folder;
}

const IO = {
  stderr: { write: () => undefined },
  stdout: { write: () => undefined },
  env: {},
  cwd: folder,
  signal: new AbortController().signal,
} as unknown as CommandIo;

function usesOf(from: string): Promise<unknown> {
  const flags = { namespace: undefined, 'service-account': 'default', from: [from], cluster: undefined };
  return readImagesInUse(flags, [], IO);
}

/** URL of the request to a token service for `scope`. */
async function askedFor(scope: string): Promise<URL | undefined> {
  let asked: URL | undefined;
  const transport = {
    isPlain: () => false,
    send: ({ url }: { readonly url: URL }) => {
      asked = url;
      return Promise.reject(new Error('nobody is there'));
    },
  } as unknown as RegistryTransport;
  const request = {
    challenge: { scheme: 'bearer', realm: 'https://auth.example.com/token?a=b', service: 'r.io' },
    domain: 'r.io',
    scope,
    credential: undefined,
    chosenBy: 'tenant',
    signal: new AbortController().signal,
  } as const;
  await fetchToken(transport, request).catch(() => undefined);
  return asked;
}

interface Row extends Case {
  /** Four times as many come after it. */
  readonly many: number;
  readonly run: (many: number) => unknown;
}

const rows: readonly Row[] = [
  { name: 'parseYaml, block', reason: 'keys', many: 500, run: (many) => parseYaml(block(many)) },
  { name: 'parseYaml, flow', reason: 'keys', many: 500, run: (many) => parseYaml(flow(many)) },
  { name: 'parseManifests', reason: 'keys', many: 500, run: (many) => parseManifests(flow(many), 'a.yaml') },
  { name: 'readFleetYaml', reason: 'keys', many: 500, run: (many) => readFleetYaml(flow(many)) },
  {
    name: 'matchesImage',
    reason: 'a star is not tried at each place of what is longer than a host',
    many: 500,
    run: (many) => matchesImage(`*${'a'.repeat(many)}b.io`, `${'a'.repeat(2 * many)}.io/x`),
  },
  {
    name: 'parseYaml, aliases',
    reason: 'beyond a thousand they are not looked up',
    many: 1000,
    run: (many) => assert.throws(() => parseYaml(aliases(many + 1)), { code: 'RESOURCE_EXHAUSTION' }),
  },
  {
    name: 'readFleetYaml, aliases',
    reason: 'the same',
    many: 1000,
    run: (many) => assert.equal(readFleetYaml(aliases(many + 1)).value, undefined),
  },
  {
    name: 'parseManifests, aliases',
    reason: 'the same',
    many: 1000,
    run: (many) => parseManifests(aliases(many + 1), 'a.yaml'),
  },
  {
    name: 'verify --all-in-use',
    reason: 'the Secret is read once, not for each pod',
    many: 40,
    run: (many) => usesOf(dump(many, many)),
  },
  {
    name: 'report',
    reason: 'the same, and the events are gone through once',
    many: 40,
    run: (many) => runInProcess(['report', '--from', dump(many, many), '-o', 'json']),
  },
];

table(test, rows, async ({ many, run }) => {
  const ratio = await counter.growth(run, many);
  assert.ok(ratio > 2, `${ratio.toFixed(1)} times: nothing was done`);
  assert.ok(ratio <= MOST_WORK, `four times as many take ${ratio.toFixed(1)} times the work`);
});

test.lastly('counting ends', () => counter.stop());

test('keys that stand twice are those that the library finds', () => {
  const texts = [
    'a: 1\na: 2\na: 3\n',
    'a: {b: 1, c: {d: 1, d: 2}, b: 2}\n',
    '- {a: 1, "a": 2}\n- a: 1\n- [a: 1, a: 2]\n',
    '1: a\n0x1: b\n"1": c\nyes: d\ntrue: e\n',
    'x: &x {a: 1}\ny: {<<: *x, <<: *x, a: 2}\n',
    '? [a]\n: 1\n? [a]\n: 2\n? {b: 1, b: 2}\n: 3\n',
    '&a k: 1\n*a : 2\n*a : 3\n!!str k: 4\n',
    'a: 1\n? a\nb:\n  c: 1\n  c: 2\n',
    'a: 1\nb: [\na: 2\n',
  ];
  for (const text of texts) {
    const said = (document: ReturnType<typeof yamlDocument>): unknown =>
      document.errors.map(({ code, pos }) => [code, pos[0]]).sort(([, a], [, b]) => Number(a) - Number(b));
    const library = parseDocument(text, { ...KUBERNETES_SCHEMA, logLevel: 'silent', prettyErrors: false });
    assert.deepEqual(said(yamlDocument(text, new LineCounter())), said(library), text);
  }
});

test('the parameters of a URL are written as often for a thousand scopes as for one', async () => {
  const getter = Object.getOwnPropertyDescriptor(URL.prototype, 'searchParams');
  assert.ok(getter?.get !== undefined);
  const looksFor = async (scopes: number): Promise<number> => {
    let looks = 0;
    const counting = function (this: URL): unknown {
      looks += 1;
      return getter.get?.call(this);
    };
    Object.defineProperty(URL.prototype, 'searchParams', { ...getter, get: counting });
    try {
      const scope = numbers(scopes).map((one) => `s${one}`);
      await askedFor(scope.join(' '));
    } finally {
      Object.defineProperty(URL.prototype, 'searchParams', getter);
    }
    return looks;
  };
  assert.equal(await looksFor(1000), await looksFor(1));
});

test('a scope that is named twice, and blanks around them, are asked for once', async () => {
  const asked = await askedFor('repository:a:pull  repository:b:pull repository:a:pull ');
  assert.deepEqual(asked?.searchParams.getAll('scope'), ['repository:a:pull', 'repository:b:pull']);
  assert.equal(asked?.searchParams.get('a'), 'b');
  assert.equal(asked?.searchParams.get('service'), 'r.io');
});

test('a short look-up gets the nearest entries, and the number of the others', () => {
  const keys = [
    'r.io/other',
    '*.r.io',
    'quay.io',
    'quay.io/web',
    'https://r.io/v1/',
    'docker.io',
    'a b',
    '.io',
  ];
  const text = JSON.stringify({
    auths: Object.fromEntries(keys.map((key) => [key, { auth: plantedAuth('brief') }])) as unknown,
  });
  const node = { name: 'node', format: 'config.json', text: redact(text) } as const;
  for (const name of ['r.io/team/app', 'a.b.r.io/c', 'nginx', 'quay.io/web/a', 'other.example/a']) {
    const image = parseImageReference(name);
    assert.ok(image.ok);
    const input = { image: image.reference, secrets: [], node, mirrors: [] };
    const [whole, brief] = [explainImage(input), explainImage({ ...input, brief: true })];
    const { unused, others = 0, ...kubelet } = brief.kubelet;
    const near = whole.kubelet.unused.filter((one) => one.near);
    assert.deepEqual(unused, near, name);
    assert.equal(others, whole.kubelet.unused.length - near.length, name);
    assert.deepEqual({ ...brief, kubelet: { ...kubelet, unused: whole.kubelet.unused } }, whole, name);
  }
});
