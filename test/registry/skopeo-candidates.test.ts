// deadline: 240 s
// needs: registry
/**
 * The places that we compute are the places that containers/image asks: skopeo pulls with the registries.conf that we render,
 * and a server on loopback writes down what it asks for.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import fc from 'fast-check';
import { compileMirrors, type MirrorRule, resolveMirrors } from '../../runtime/core/mirrors/resolve.ts';
import { formatRegistriesConf } from '../../runtime/registry-overrides/mirror-sets/fix.ts';
import { portOf } from '../support/loopback.ts';
import { test } from '../support/suite.ts';
import { scratch } from './docker-registry.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

/** Has nothing; knows what it was asked for. */
class Recorder {
  readonly asked: string[] = [];
  readonly #server: Server = createServer((request, response) => {
    const manifest = /^\/v2\/(.+)\/manifests\/([^/]+)$/.exec(request.url ?? '');
    if (manifest === null) {
      response.writeHead(request.url === '/v2/' ? 200 : 404).end('{}');
      return;
    }
    const [, path = '', name = ''] = manifest;
    this.asked.push(`${request.headers.host}/${path}${name.includes(':') ? '@' : ':'}${name}`);
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}');
  });
  port = 0;

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '0.0.0.0', resolve));
    this.port = portOf(this.#server);
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const recorder = new Recorder();
const folder = scratch();
let conf = 0;

async function skopeoAsks(rules: readonly MirrorRule[], image: string): Promise<readonly string[]> {
  const file = join(folder, `${(conf += 1)}.conf`);
  writeFileSync(file, formatRegistriesConf(rules));
  recorder.asked.length = 0;
  const args = [
    '--registries-conf',
    file,
    'inspect',
    '--raw',
    '--no-creds',
    '--tls-verify=false',
    `docker://${image}`,
  ];
  // It always fails, because nothing is there.
  await new Promise<void>((resolve) => execFile('skopeo', args, { timeout: 20_000 }, () => resolve()));
  return [...recorder.asked];
}

/** An image whose rewriting gives no reference makes the runtime give up before it asks anybody. */
function expected(rules: readonly MirrorRule[], image: string): readonly string[] {
  const { candidates, skipped } = resolveMirrors(compileMirrors(rules), image);
  if (skipped.some((one) => one.reason === 'InvalidReference')) return [];
  return candidates.map((candidate) => candidate.reference);
}

function scenario(port: number): fc.Arbitrary<{ rules: readonly MirrorRule[]; image: string }> {
  const bare = fc.constantFrom('127.0.0.1', '127.0.0.2', '127.0.0.3');
  const host = bare.chain((name) =>
    fc.constantFrom(`${name}:${port}`, `${name}:${port}`, `${name}:${port}`, name),
  );
  const path = fc.constantFrom('', '/a', '/a/b', '/ab', '/a-b/c');
  const place = fc.tuple(host, path).map((parts) => parts.join(''));
  const mirror = fc
    .tuple(
      bare,
      fc.constantFrom('/m', '/m/n', ''),
      fc.constantFrom('all' as const, 'digest-only' as const, 'tag-only' as const),
    )
    .map(([name, below, pullFrom]) => ({ location: `${name}:${port}${below}`, pullFrom }));
  const rule = fc
    .tuple(
      fc.oneof(
        { arbitrary: place, weight: 5 },
        { arbitrary: fc.constantFrom('*.0.0.1', '*.0.1'), weight: 1 },
      ),
      fc.boolean(),
      fc.array(mirror, { minLength: 1, maxLength: 3 }),
    )
    .map(
      ([prefix, blocked, mirrors]): MirrorRule => ({
        prefix,
        location: prefix.startsWith('*.') ? '' : prefix,
        blocked: blocked && prefix.includes('/'),
        insecure: false,
        mirrors,
      }),
    );
  return fc.record({
    rules: fc.uniqueArray(rule, { selector: (one) => one.prefix, minLength: 1, maxLength: 4 }),
    image: fc
      .tuple(bare, fc.constantFrom('/a', '/a/b', '/ab/c', '/a-b/c/d'), fc.constantFrom(':1', `@${DIGEST}`))
      .map(([name, below, end]) => `${name}:${port}${below}${end}`),
  });
}
test('skopeo asks the places that we compute, in that order', async () => {
  await recorder.start();
  let mirrored = 0;
  let skipped = 0;
  await fc.assert(
    fc.asyncProperty(scenario(recorder.port), async ({ rules, image }) => {
      const wanted = expected(rules, image);
      if (wanted.length > 1) mirrored += 1;
      if (resolveMirrors(compileMirrors(rules), image).skipped.length > 0) skipped += 1;
      assert.deepEqual(await skopeoAsks(rules, image), wanted, formatRegistriesConf(rules));
    }),
    { numRuns: 400, seed: 8 },
  );
  assert.ok(
    mirrored > 40 && skipped > 40,
    `too few of the cases say something: ${mirrored} with mirrors, ${skipped} with places left out`,
  );
});
test.lastly('the server is stopped', () => {
  recorder.stop();
  rmSync(folder, { recursive: true });
});
