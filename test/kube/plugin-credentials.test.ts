// deadline: 240 s
// needs: control plane
/** Kubeconfigs with an exec plugin, on a real API server. */
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PullwrightError } from '../../runtime/core/errors.ts';
import { HttpKubeClient } from '../../runtime/kube/http-client.ts';
import { loadConnection } from '../../runtime/kube/kubeconfig.ts';
import { controlPlane } from '../control-plane/live.ts';
import { kubeconfigText } from '../control-plane/users.ts';
import { plantedPassword } from '../support/canary.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MAPS = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default' };
const READ = { default: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }] };

/** Lists so often with one client; gives the failure, if there is one. */
async function listed(
  kubeconfig: string,
  times = 1,
  between: () => Promise<unknown> = async () => undefined,
): Promise<PullwrightError | undefined> {
  const connection = await loadConnection(kubeconfig, {});
  const client = new HttpKubeClient({ connection, userAgent: 'test', tries: 1 });
  let failure: PullwrightError | undefined;
  for (let at = 0; at < times; at += 1) {
    if (at > 0) await between();
    failure = await client.list(MAPS).then(
      () => undefined,
      (error: unknown) => {
        assert.ok(error instanceof PullwrightError, String(error));
        return error;
      },
    );
  }
  client.close();
  return failure;
}
const folder = tempFolder();
const plane = await controlPlane();
const robot = await plane.user({ name: 'robot', by: 'token', namespaces: READ });
await plane.user({ name: 'ann', namespaces: READ });

const save = (name: string, user: object): string => {
  const path = join(folder, `${name}.kubeconfig`);
  writeFileSync(path, kubeconfigText(plane.server, plane.ca, { ...user }), { mode: 0o600 });
  return path;
};
const runs = join(folder, 'runs');
const started = (): number => readFileSync(runs, 'utf8').split('\n').length - 1;
/** A kubeconfig whose plugin is a shell script beside it. */
const withPlugin = (name: string, script: string, more: object = {}): string => {
  writeFileSync(runs, '');
  const program = join(folder, `${name}.sh`);
  writeFileSync(program, `#!/bin/sh\necho run >>${runs}\n${script}\n`);
  chmodSync(program, 0o755);
  const apiVersion = 'client.authentication.k8s.io/v1';
  return save(name, { exec: { apiVersion, command: `./${name}.sh`, interactiveMode: 'Never', ...more } });
};
const printed = (status: string): string =>
  `printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{%s}}' "${status}"`;
const token = `\\"token\\":\\"$(cat ${robot.tokenFile})\\"`;

test('exec: a command beside the kubeconfig is run once for many requests', async () => {
  assert.equal(await listed(withPlugin('token', printed(token)), 5), undefined);
  assert.equal(started(), 1);
});

test('exec: a token that is refused is asked for again, though the plugin said that it lasts', async () => {
  await robot.renewToken(-300);
  const path = withPlugin('refused', printed(token));
  assert.equal((await listed(path))?.code, 'Unauthorized');
  // Longer than what a crowd of refused requests shares.
  const renewed = (): Promise<unknown> => Promise.all([robot.renewToken(3600), delay(1100)]);
  assert.equal(await listed(path, 2, renewed), undefined);
});

test('exec: one that has ended is asked for again before it is used', async () => {
  const past = '\\"expirationTimestamp\\":\\"2020-01-01T00:00:00Z\\",';
  assert.equal(await listed(withPlugin('ended', printed(past + token)), 2), undefined);
  assert.equal(started(), 2);
});

test('exec: the plugin is told what it may want to know', async () => {
  const told = join(folder, 'told');
  const script = `printf '%s' "$KUBERNETES_EXEC_INFO" >${told}\n${printed(token)}`;
  assert.equal(await listed(withPlugin('told', script, { provideClusterInfo: true })), undefined);
  const info = JSON.parse(readFileSync(told, 'utf8'));
  assert.equal(info.kind, 'ExecCredential');
  assert.equal(info.spec.cluster.server, plane.server);
});

test('exec: a client certificate', async () => {
  const { kubeconfig } = await plane.user({ name: 'carl', namespaces: READ });
  const text = readFileSync(kubeconfig, 'utf8');
  const field = (name: string): string =>
    Buffer.from(new RegExp(`${name}: (\\S+)`).exec(text)?.[1] ?? '', 'base64').toString();
  const answer = join(folder, 'certificate.json');
  const status = {
    clientCertificateData: field('client-certificate-data'),
    clientKeyData: field('client-key-data'),
  };
  const apiVersion = 'client.authentication.k8s.io/v1';
  writeFileSync(answer, JSON.stringify({ apiVersion, kind: 'ExecCredential', status }), { mode: 0o600 });
  assert.equal(await listed(withPlugin('certificate', `cat ${answer}`)), undefined);
});

for (const [name, script, more] of [
  ['fails', `echo ${plantedPassword('plugin')} >&2; exit 1`, {}],
  ['prints-no-json', `echo ${plantedPassword('plugin')}`, {}],
  ['gives-nothing', printed(''), {}],
  ['is-not-there', '', { command: './nothing.sh' }],
] as const)
  test(`exec: a plugin that ${name.replaceAll('-', ' ')} is named, and what it printed is not repeated`, async () => {
    const error = await listed(withPlugin(name, script, more));
    assert.equal(error?.code, 'CredentialPluginFailed');
    assert.match(error?.message ?? '', /the plugin ".*\.sh" of the kubeconfig returned none/);
    assert.ok(!JSON.stringify([error?.message, error?.stack]).includes(plantedPassword('plugin')));
  });
