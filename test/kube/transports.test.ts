// needs: control plane
/** Both transports on a real API server: the same program under Node and under Bun sees the same. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { controlPlane } from '../control-plane/live.ts';
import { Authority } from '../control-plane/x509.ts';
import { plantedPassword } from '../support/canary.ts';
import { startProxy } from '../support/connect-proxy.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';

const bun = new URL('../../node_modules/@oven/bun-linux-x64/bin/bun', import.meta.url).pathname;
const program = new URL('client-program.ts', import.meta.url).pathname;

const EXPECTED = {
  'get of nothing': 'nothing',
  apply: { a: 'ä' },
  conflict: 'Conflict',
  'create again': 'AlreadyExists',
  'unknown kind': 'KindNotServed',
  watch: 'MODIFIED',
  secret: true,
  'remove with another uid': 'Conflict',
  remove: 'nothing',
};

const plane = await controlPlane();
await plane.apply({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'planted', namespace: 'default' },
  data: { password: Buffer.from(plantedPassword('api')).toString('base64') },
});
const token = await plane.user({
  name: 'by-token',
  by: 'token',
  cluster: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }],
});
const other = join(plane.folder, 'other-ca.kubeconfig');
const otherCa = Buffer.from(new Authority('another').certificate).toString('base64');
writeFileSync(
  other,
  readFileSync(plane.kubeconfig, 'utf8').replace(
    /certificate-authority-data: .*/,
    `certificate-authority-data: ${otherCa}`,
  ),
);

for (const [name, runtime] of [
  ['node', process.execPath],
  ['bun', bun],
] as const) {
  const run = (kubeconfig: string, env: Record<string, string> = {}): Promise<ProcessResult> =>
    runProcess([runtime, program, kubeconfig, name], { env: { ...process.env, ...env } });

  for (const [by, kubeconfig] of [
    ['certificate', plane.kubeconfig],
    ['token file', token.kubeconfig],
  ] as const)
    test(`${name}: reads, writes and watches by ${by}`, async () => {
      const ran = await run(kubeconfig);
      assert.equal(ran.stderr, '');
      assert.deepEqual(JSON.parse(ran.stdout), EXPECTED);
    });

  test(`${name}: an unknown CA is refused, also when the environment says otherwise`, async () => {
    const ran = await run(other, { NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    assert.match(ran.stdout + ran.stderr, /CertificateNotTrusted|certificate is not trusted/);
  });

  test(`${name}: goes through a proxy when the kubeconfig says so`, async () => {
    const proxy = await startProxy((asked) => asked);
    const path = join(plane.folder, `proxied-${name}.kubeconfig`);
    const text = readFileSync(plane.kubeconfig, 'utf8');
    writeFileSync(path, text.replace(/( +)server: .*/, `$&\n$1proxy-url: http://${proxy.host}`));
    const ran = await run(path);
    proxy.stop();
    assert.deepEqual(JSON.parse(ran.stdout), EXPECTED);
    assert.equal(proxy.asked[0], new URL(plane.server).host);
  });
}
