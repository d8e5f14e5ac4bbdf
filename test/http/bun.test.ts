// deadline: 240 s
/** The HTTP and registry clients under Bun, which runs the compiled executable: the same cases. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kubeconfigOf } from '../control-plane/users.ts';
import { startProxy } from '../support/connect-proxy.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const arch = process.arch === 'arm64' ? 'aarch64' : 'x64';
const folder = tempFolder();
const bun = new URL(`../../node_modules/@oven/bun-linux-${arch}/bin/bun`, import.meta.url).pathname;
const underBun = existsSync(bun)
  ? test
  : (name: string) => test.skip(name, 'Bun is not installed for this machine');

for (const file of ['http/client', 'registry/client', 'registry/client-faults', 'registry/proxy'])
  underBun(`every case of ${file}.test.ts`, async () => {
    const path = new URL(`../${file}.test.ts`, import.meta.url).pathname;
    const ran = await runProcess([bun, path], { deadlineMs: 55_000 });
    assert.equal(ran.code, 0, ran.stdout.slice(-3000) + ran.stderr.slice(-1000));
    const passed = /Passed:\s+(\d+)/.exec(ran.stdout)?.[1];
    assert.ok(Number(passed) > 5, `${passed} cases ran`);
    if (file === 'http/client') assert.match(ran.stdout, /engines: node:https, fetch/);
  });

underBun('the adapter reaches the cluster of its kubeconfig by the proxy of the environment', async () => {
  const asked = Promise.withResolvers<string>();
  const proxy = await startProxy((target) => {
    if (target.startsWith('kube.invalid')) asked.resolve(target);
    return undefined;
  }, '502 Bad Gateway');
  const [config, broker] = [join(folder, 'config'), join(folder, 'broker')];
  writeFileSync(config, kubeconfigOf({ server: 'https://kube.invalid:6443' }, { token: 'abc' }));
  writeFileSync(broker, 'amqp://127.0.0.1:1');
  const main = new URL('../../main.ts', import.meta.url).pathname;
  const args = ['--api', 'https://api.invalid', '--broker-url-file', broker, '--kubeconfig', config];
  const ports = ['--health-port', '0', '--metrics-port', '0'];
  const env = { PATH: process.env['PATH'], HTTPS_PROXY: `http://${proxy.host}` };
  const adapter = spawn(bun, [main, 'adapter', ...args, ...ports], {
    env,
    stdio: 'ignore',
    timeout: 50_000,
  });
  const ended = once(adapter, 'exit').then(() => 'the adapter has ended');
  try {
    assert.equal(await Promise.race([asked.promise, ended]), 'kube.invalid:6443');
  } finally {
    adapter.kill('SIGKILL');
    await ended;
    proxy.stop();
  }
});
