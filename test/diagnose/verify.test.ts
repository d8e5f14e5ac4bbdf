// deadline: 240 s
// needs: registry
/** `pullwright verify` against real registries with htpasswd, and against servers that misbehave. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Explanation } from '../../runtime/diagnose/model/types.ts';
import { ociLayout, push, startRegistry, USER } from '../registry/docker-registry.ts';
import { certificates, startServer } from '../registry/https-server.ts';
import { plantedAuth } from '../support/canary.ts';
import { makeCertificates } from '../support/certificates.ts';
import { runInProcess } from '../support/in-process.ts';
import { listen } from '../support/loopback.ts';
import { test } from '../support/suite.ts';
import {
  allow,
  asked,
  deployment,
  dump,
  folder,
  LABEL,
  others,
  secret,
  tidy,
  verify,
  yaml,
} from './verify-scene.ts';

const wants = (response: ServerResponse, challenge: string): void =>
  void response.writeHead(401, { 'www-authenticate': challenge, 'content-length': '0' }).end();
test('a right, a wrong and an absent credential at a real registry and its mirror', async () => {
  const files = { certificate: join(folder, 'tls.crt'), key: join(folder, 'tls.key') };
  writeFileSync(files.certificate, certificates.cert);
  writeFileSync(files.key, certificates.key, { mode: 0o600 });
  const source = await startRegistry(folder, 'source', files);
  const mirror = await startRegistry(folder, 'mirror', files);
  others.push(source, mirror);
  push(ociLayout(join(folder, 'layout'), { 'a.txt': 'a' }), source, 'shop/web:1', folder);
  const from = dump(
    'real',
    secret('shop', 'right', {
      [source.host]: plantedAuth('source', USER),
      [mirror.host]: plantedAuth('mirror', USER),
    }),
    secret('shop', 'wrong', { [`${source.host}/shop`]: plantedAuth('other', USER) }),
    secret('kube-system', 'global-pull-secret', { [mirror.host]: plantedAuth('mirror', USER) }),
    deployment('shop', 'web', [`${source.host}/shop/web:1`], ['right', 'wrong']),
    deployment('shop', 'web-again', [`${source.host}/shop/web:1`], ['right', 'wrong']),
    deployment('shop', 'alone', [`${source.host}/shop/web:2`], []),
    yaml({
      apiVersion: 'config.openshift.io/v1',
      kind: 'ImageTagMirrorSet',
      metadata: { name: 'm' },
      spec: { imageTagMirrors: [{ source: `${source.host}/shop`, mirrors: [`${mirror.host}/shop`] }] },
    }),
  );
  const { code, report } = await asked('--all-in-use', '--from', from, ...allow(source.host, mirror.host));
  assert.equal(code, 1);
  const [web, alone] = ['1', '2'].map((tag) => report.images.find(({ image }) => image.endsWith(`:${tag}`)));
  assert.equal(report.images.length, 2, 'two that pull alike are one');
  assert.deepEqual(
    web?.attempts.map(({ reference, verdict, credential }) => [
      reference.split('/')[0],
      verdict,
      credential?.source,
    ]),
    [
      [mirror.host, 'NotFound', 'Secret/kube-system/global-pull-secret'],
      [source.host, 'Invalid', 'Secret/shop/wrong'],
      [source.host, 'Valid', 'Secret/shop/right'],
    ],
  );
  assert.equal(web?.pullable, 'yes');
  assert.equal(alone?.pullable, 'no');
  assert.deepEqual(
    report.credentials.map(({ source: from_, verdict }) => `${from_} ${verdict}`),
    [
      'Secret/shop/wrong Invalid',
      'Secret/kube-system/global-pull-secret NotFound',
      'Secret/shop/right Valid',
    ],
  );
  const text = (await verify('--all-in-use', '--from', from, ...allow(source.host, mirror.host))).stdout;
  assert.match(text, /Invalid .* rejects the credential/);
  assert.match(text, /Broken .*shop\/web:2 .*used by Deployment\/shop\/alone/);
  assert.match(text, /2 images: 1 can be pulled, 1 cannot; credentials: 1 Invalid, 1 NotFound, 1 Valid/);
});

test('a redirect gets no credential, and a certificate of others none either', async () => {
  const target = await startServer((_, response) => response.writeHead(404).end());
  const source = await startServer((_, response) =>
    response.writeHead(307, { location: `https://${target.host}/v2/team/app/manifests/1` }).end(),
  );
  const stranger = await startServer((_, response) => response.end(), makeCertificates());
  const hosts = [source.host, stranger.host];
  const from = dump(
    'redirect',
    secret('web', 'pull', Object.fromEntries(hosts.map((host) => [host, plantedAuth(LABEL)]))),
    deployment(
      'web',
      'all',
      hosts.map((host) => `${host}/team/app:1`),
      ['pull'],
    ),
  );
  const { report } = await asked('--all-in-use', '--from', from, ...allow(target.host, ...hosts));
  assert.deepEqual(
    target.seen.map((one) => one.authorization),
    [undefined],
  );
  assert.deepEqual(stranger.seen, []);
  const untrusted = report.images.find(({ image }) => image.startsWith(stranger.host))?.attempts[0];
  assert.match(
    `${untrusted?.verdict}: ${untrusted?.message}`,
    /Unreachable: the certificate of .* failed verification/,
  );
});

test('loopback is not asked unless it is allowed, and plain HTTP neither', async () => {
  const seen: string[] = [];
  const plainServer = createServer((request, response) => {
    seen.push(request.url ?? '');
    response.end();
  });
  const port = await listen(plainServer);
  others.push({ stop: () => void plainServer.close() });
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::ffff:127.0.0.1]:${port}`];
  const from = dump(
    'loopback',
    deployment(
      'web',
      'all',
      hosts.slice(0, 2).map((host) => `${host}/a:1`),
      [],
    ),
  );
  const { report } = await asked('--all-in-use', '--from', from);
  for (const { attempts } of report.images)
    assert.match(attempts[0]?.message ?? '', /loopback, link-local or a metadata/);
  const { report: allowed } = await asked('--all-in-use', '--from', from, ...allow(...hosts));
  for (const { attempts } of allowed.images) assert.equal(attempts[0]?.verdict, 'Unreachable');
  assert.deepEqual(seen, []);
});

test('a token is asked for once per repository, and the realm on another host gets the credential over TLS', async () => {
  const tokens = await startServer((_, response) =>
    response.end(JSON.stringify({ token: 'a-token', expires_in: 300 })),
  );
  const registry = await startServer((request, response) => {
    if (request.authorization !== 'Bearer a-token')
      wants(response, `Bearer realm="https://${tokens.host}/token",service="r"`);
    else
      response
        .writeHead(200, {
          'docker-content-digest': `sha256:${'a'.repeat(64)}`,
          'content-type': 'application/json',
        })
        .end();
  });
  const images = ['one:1', 'one:2', 'two:1'].map((image) => `${registry.host}/team/${image}`);
  const from = dump(
    'tokens',
    secret('web', 'pull', { [registry.host]: plantedAuth(LABEL) }),
    deployment('web', 'a', images, ['pull']),
  );
  const { code, report } = await asked(
    '--all-in-use',
    '--concurrency',
    '1',
    '--from',
    from,
    ...allow(registry.host, tokens.host),
  );
  assert.equal(code, 0);
  assert.deepEqual(
    report.images.map(({ pullable }) => pullable),
    ['yes', 'yes', 'yes'],
  );
  assert.deepEqual(
    tokens.seen.map(({ authorization }) => authorization),
    [`Basic ${plantedAuth(LABEL)}`, `Basic ${plantedAuth(LABEL)}`],
  );
});

test('an unreadable Secret blocks the pod, and is said', async () => {
  const from = dump(
    'blocked',
    secret('web', 'pull', { 'r.example.com': '!!' }),
    deployment('web', 'a', ['r.example.com/a:1'], ['pull']),
  );
  const { code, report } = await asked('--all-in-use', '--from', from);
  assert.equal(code, 1);
  assert.equal(report.images[0]?.pullable, 'no');
  assert.equal(report.images[0]?.attempts[0]?.verdict, 'NotAsked');
  const { stdout } = await runInProcess(['explain', 'deploy/a', '-n', 'web', '--from', from, '-o', 'json']);
  const [{ findings }] = JSON.parse(stdout) as [Explanation];
  assert.deepEqual(
    report.images[0]?.findings.map(({ check, message }) => [check, message]),
    [[findings[0]?.check, findings[0]?.message]],
    'in the words of explain',
  );
});

test('an entry whose key has user info is asked', async () => {
  const registry = await startServer((_, answer) => {
    answer.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
  });
  const from = dump(
    'user-info',
    secret('web', 'pull', { [`https://robot:x@${registry.host}`]: plantedAuth(LABEL) }),
    deployment('web', 'a', [`${registry.host}/a:1`], ['pull']),
  );
  const { code, report } = await asked('--all-in-use', '--from', from, ...allow(registry.host));
  assert.equal(code, 1, JSON.stringify(report));
  assert.equal(report.images[0]?.attempts[0]?.verdict, 'Invalid', JSON.stringify(report.images));
});

const wrongUse: readonly (readonly [args: readonly string[], says: RegExp])[] = [
  [[], /either images or --all-in-use/],
  [['quay.io/a', '--all-in-use'], /either images or --all-in-use/],
  [['QUAY.io/A'], /Cannot read image "QUAY\.io\/A"/],
  [['quay.io/a', '--concurrency', '0'], /invalid value "0" for --concurrency/],
  [['quay.io/a', '--output', 'xml'], /invalid value "xml" for --output/],
  [['quay.io/a', '--report', 'x'], /Cannot read --report "x"/],
];

test('wrong use is said', async () => {
  for (const [args, says] of wrongUse) {
    const ran = await verify(...args);
    assert.equal(ran.code, 2, ran.stderr);
    assert.match(ran.stderr, says);
  }
});

test.lastly('servers stop', tidy);
