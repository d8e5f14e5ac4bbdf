// deadline: 120 s
// needs: registry
/**
 * A pull through a mirror that wants a password, by skopeo, with exactly the file that the provider wrote and the same
 * registries.conf: what is written is what the runtime's own library finds.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { ociLayout, push, scratch, startRegistry, USER } from '../registry/docker-registry.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { type Case, table, test } from '../support/suite.ts';
import { startApi } from './support/api-double.ts';
import { authFiles, makeNode, pullSecret, requestFor, runOn, tokenFor } from './support/node-double.ts';

interface Pull extends Case {
  /** `%H` is the registry's host and port. */
  readonly conf: string;
  readonly key: string;
  readonly image: string;
  /** The node's own file has a wrong credential for this key. */
  readonly wrongNodeKey?: string;
}

const MIRROR = '[[registry.mirror]]\nlocation = "%H/hub"\ninsecure = true\n';
const pulls: readonly Pull[] = [
  {
    name: 'key of the host',
    reason: 'the usual case',
    conf: `[[registry]]\nlocation = "docker.io"\n${MIRROR}`,
    key: '%H',
    image: 'docker.io/library/nginx',
  },
  {
    name: 'key of the rewritten repository',
    reason: 'deeper than the mirror',
    conf: `[[registry]]\nlocation = "docker.io"\n${MIRROR}`,
    key: '%H/hub/library/nginx',
    image: 'docker.io/library/nginx',
  },
  {
    name: 'key with scheme and API path',
    reason: 'written by old tools',
    conf: `[[registry]]\nlocation = "docker.io"\n${MIRROR}`,
    key: 'http://%H/v2/',
    image: 'docker.io/library/nginx',
  },
  {
    name: 'wildcard prefix',
    reason: 'mirrors of every subdomain',
    conf: `[[registry]]\nprefix = "*.example.com"\n${MIRROR}`,
    key: '%H/hub',
    image: 'a.b.example.com/library/nginx',
  },
  {
    name: 'rewritten primary location',
    reason: 'no mirror at all',
    conf: '[[registry]]\nprefix = "example.com/apps"\nlocation = "%H/hub/library"\ninsecure = true\n',
    key: '%H',
    image: 'example.com/apps/nginx',
  },
  {
    name: 'the source is blocked',
    reason: 'only mirrors are asked',
    conf: `[[registry]]\nlocation = "docker.io"\nblocked = true\n${MIRROR}`,
    key: '%H',
    image: 'docker.io/library/nginx',
  },
  {
    name: 'the node has a wrong, more specific entry',
    reason: 'the namespace wins',
    conf: `[[registry]]\nlocation = "docker.io"\n${MIRROR}`,
    key: '%H',
    image: 'docker.io/library/nginx',
    wrongNodeKey: '%H/hub/library',
  },
];

const folder = scratch();
const registry = await startRegistry(folder, 'mirror');
push(ociLayout(join(folder, 'layout'), { hello: 'hello' }), registry, 'hub/library/nginx:1', folder);
const at = (text: string): string => text.replaceAll('%H', registry.host);

function pull(conf: string, file: string, image: string): Promise<ProcessResult> {
  const flags = ['--registries-conf', conf, 'inspect', '--raw', '--authfile', file];
  return runProcess(['skopeo', ...flags, `docker://${image}:1`]);
}

async function provided(
  row: Pull,
  password: string,
): Promise<{ conf: string; file: string; remove: () => void }> {
  const api = await startApi({
    secrets: [pullSecret('mirror', { [at(row.key)]: { username: USER, password } })],
  });
  const wrong = { auth: Buffer.from(`${USER}:wrong`).toString('base64') };
  const node = makeNode({
    registriesConf: at(row.conf),
    globalAuth: JSON.stringify({
      auths: row.wrongNodeKey === undefined ? {} : { [at(row.wrongNodeKey)]: wrong },
    }),
    apiServerEnv: `KUBERNETES_SERVICE_HOST=127.0.0.1\nKUBERNETES_SERVICE_PORT=${api.port}\n`,
    ca: api.ca,
  });
  const ran = await runOn(node, requestFor(row.image, tokenFor('team-a')));
  await api.close();
  assert.equal(ran.exitCode, 0, ran.log.join('\n'));
  const [name = '(none)'] = Object.keys(authFiles(node));
  return {
    conf: node.options.registriesConf,
    file: join(node.options.authDir, name),
    remove: () => node.remove(),
  };
}

table(test, pulls, async (row) => {
  const { conf, file, remove } = await provided(row, registry.password);
  const ran = await pull(conf, file, row.image);
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(JSON.parse(ran.stdout).schemaVersion, 2);
  remove();
});

test('with another password the mirror refuses: the file is what decides', async () => {
  const row = pulls.find(({ name }) => name === 'the source is blocked');
  assert.ok(row !== undefined);
  const { conf, file, remove } = await provided(row, 'other');
  const ran = await pull(conf, file, row.image);
  assert.notEqual(ran.code, 0);
  assert.match(ran.stderr, /unauthorized|authentication required/);
  remove();
});

test.lastly('the registry stops', () => {
  registry.stop();
  rmSync(folder, { recursive: true });
});
