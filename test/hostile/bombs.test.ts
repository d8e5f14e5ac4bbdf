/** Small inputs that expand: each reader stops at a limit, says so, and goes on with what follows. Each row calls what ships. */

import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { jsonLines } from '../../runtime/kube/http-client.ts';
import { ignitionText } from '../../runtime/kube/ignition.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { RegistryError } from '../../runtime/registry/transport.ts';
import { client, image } from '../registry/asker.ts';
import { startServer, stopServers } from '../registry/https-server.ts';
import { meta } from '../support/meta.ts';
import { table, test } from '../support/suite.ts';

const MIB = 1024 * 1024;
const HUGE = Buffer.alloc(64 * MIB);

function machineConfig(packed: Buffer): Parameters<typeof ignitionText>[0] {
  const contents = { compression: 'gzip', source: `data:;base64,${packed.toString('base64')}` };
  return {
    ...meta('machineconfiguration.openshift.io/v1 MachineConfig', { name: 'rendered' }),
    spec: { config: { storage: { files: [{ path: '/etc/a', contents }] } } },
  };
}

async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) yield Buffer.alloc(MIB, 97);
}

const laughs = Array.from(
  { length: 9 },
  (_, at) => `a${at + 1}: &a${at + 1} [${Array.from({ length: 9 }, () => `*a${at}`).join(',')}]`,
);

table(
  test,
  [
    {
      name: 'a line of a watch without an end',
      reason: 'an API server that lies costs its own cluster, and not the process',
      run: () => Array.fromAsync(jsonLines(endless())),
      says: /a line is longer than 16777216 bytes/,
    },
    {
      name: 'aliases of aliases in YAML',
      reason: 'ten lines that say four hundred million',
      run: () => parseYaml(['a0: &a0 [lol]', ...laughs].join('\n')),
      says: /alias/i,
    },
  ],
  async ({ run, says }) => {
    await assert.rejects(async () => run(), says);
  },
);

test('a packed file of a MachineConfig is read up to its bound, and unknown beyond', () => {
  assert.equal(ignitionText(machineConfig(gzipSync('one line')), '/etc/a'), 'one line');
  assert.equal(ignitionText(machineConfig(gzipSync(HUGE)), '/etc/a'), undefined);
});

// Oversized answers of a registry: every read stops at a limit, and the error stays short.

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Buffer | string;
}

table(
  test,
  [
    {
      name: 'a manifest of 100 MB',
      reason: 'four megabytes hold any',
      answer: { body: `{"a":"${'x'.repeat(100_000_000)}"}` },
      says: /the response is longer than 4194304 bytes/,
    },
    {
      name: 'a ring of redirects',
      reason: 'each is a request',
      answer: { status: 307, headers: { location: '/v2/ring' } },
      says: /redirects more than 5 times/,
    },
    {
      name: 'a header of a megabyte',
      reason: 'headers are held before anybody reads them',
      answer: { headers: { 'x-long': 'a'.repeat(1_000_000) } },
      says: /HPE_HEADER_OVERFLOW/,
    },
    {
      name: '10,000 challenges',
      reason: 'each would be looked at',
      answer: {
        status: 401,
        headers: { 'www-authenticate': Array<string>(10_000).fill('Bearer realm="a"') },
      },
      says: /HPE_HEADER_OVERFLOW/,
    },
    {
      name: 'challenges of a kind that we do not know',
      reason: 'as many as a header holds',
      answer: { status: 401, headers: { 'www-authenticate': 'Foo realm="a", '.repeat(900) } },
      says: /credential of unknown scheme/,
    },
  ] satisfies readonly { name: string; reason: string; answer: Answer; says: RegExp }[],
  async ({ answer, says }: { readonly answer: Answer; readonly says: RegExp }) => {
    const { status = 200, headers = {}, body = '' } = answer;
    const registry = await startServer((_request, response) => {
      response.writeHead(status, headers as Record<string, string>).end(body);
    });
    await assert.rejects(client([registry.host]).manifest(image(registry.host)), (error) => {
      assert.ok(error instanceof RegistryError, String(error));
      assert.match(error.message, says);
      assert.ok(error.message.length < 500, `${error.message.length} letters`);
      return true;
    });
  },
);

test.lastly('the servers are stopped', stopServers);
