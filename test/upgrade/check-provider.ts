/** The kubelet's plugin of one version with the configuration that the other renders, on a real request. */
import assert from 'node:assert/strict';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { startApi } from '../credential-provider/support/api-double.ts';
import { filesOf } from '../credential-provider/support/machine-config-files.ts';
import {
  authFiles,
  flagsOf,
  makeNode,
  pullSecret,
  requestFor,
  tokenFor,
} from '../credential-provider/support/node-double.ts';
import { CONF, IMAGE } from '../credential-provider/support/one-run.ts';
import { runProcess } from '../support/process.ts';
import { tempFolder } from '../support/temp-folder.ts';
import type { Judge, Pair } from './pair.ts';

const CLUSTER = `apiVersion: config.openshift.io/v1
kind: CRIOCredentialProviderConfig
metadata: { name: cluster }
spec: { matchImages: [docker.io] }
---
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: { name: worker, labels: { machineconfiguration.openshift.io/mco-built-in: "" } }
spec:
  machineConfigSelector: { matchLabels: { machineconfiguration.openshift.io/role: worker } }
  configuration: { name: rendered-worker-1 }
status: { configuration: { name: rendered-worker-1 } }
---
apiVersion: config.openshift.io/v1
kind: Infrastructure
metadata: { name: cluster }
status: { platform: AWS, platformStatus: { type: AWS } }
---
apiVersion: v1
kind: Node
metadata: { name: n1, labels: { node-role.kubernetes.io/worker: "" } }
status: { nodeInfo: { kubeletVersion: v1.34.1, containerRuntimeVersion: "cri-o://1.34.0" } }
`;

/** The provider's entry in the configuration that `program` renders for the kubelet. */
async function entryOf(
  program: string,
): Promise<{ readonly args?: readonly string[]; readonly name: string }> {
  const folder = tempFolder();
  writeFileSync(join(folder, 'cluster.yaml'), CLUSTER);
  const config = join(folder, 'config.yaml');
  writeFileSync(config, 'systems: { credential-provider: {} }\n');
  const to = join(folder, 'out');
  const ran = await runProcess([
    program,
    'reconcile',
    '--from',
    join(folder, 'cluster.yaml'),
    '--config',
    config,
    '--to',
    to,
  ]);
  assert.equal(ran.code, 0, ran.stderr);
  const found = await runProcess(['grep', '-rl', 'kind: MachineConfig$', to]);
  const [file = ''] = found.stdout.split('\n');
  const files = filesOf(parse(readFileSync(file, 'utf8')));
  const text = [...files.values()].find((one) => one.includes('CredentialProviderConfig')) ?? '';
  const { providers } = parse(text) as { providers: readonly { name: string; args?: readonly string[] }[] };
  const entry = providers.find(({ name }) => name === 'crio-credential-provider');
  assert.ok(entry !== undefined, 'it renders an entry');
  return entry;
}

/** Runs the provider as the kubelet does, with the arguments of the entry. */
async function answers(renders: string, runs: string): Promise<string> {
  const { args = [] } = await entryOf(renders);
  const api = await startApi({
    secrets: [
      pullSecret('mirror', {
        'mirror.example.com': { auth: Buffer.from('user:password').toString('base64') },
      }),
    ],
  });
  const node = makeNode({
    registriesConf: CONF,
    apiServerEnv: `KUBERNETES_SERVICE_HOST='127.0.0.1'\nKUBERNETES_SERVICE_PORT='${api.port}'\n`,
    ca: api.ca,
    authDirMode: 0o700,
  });
  try {
    const program = join(node.folder, 'crio-credential-provider');
    symlinkSync(runs, program);
    const ran = await runProcess([program, ...args, ...flagsOf(node)], {
      stdin: requestFor(IMAGE, tokenFor('team-a')),
    });
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal((JSON.parse(ran.stdout) as { kind: string }).kind, 'CredentialProviderResponse');
    const [file] = Object.values(authFiles(node));
    assert.match(file?.text ?? '', /mirror\.example\.com/);
    return `arguments: ${args.join(' ') || 'none'}; one auth file of mode ${(file?.mode ?? 0).toString(8)}`;
  } finally {
    node.remove();
    await api.close();
  }
}

/** Runs the checks of the provider. */
export async function providerChecks({ older, newer }: Pair, judge: Judge): Promise<void> {
  await judge({
    what: 'provider N-1 with the configuration that N renders',
    look: () => answers(newer, older),
  });
  await judge({
    what: 'provider N with the configuration that N-1 renders',
    look: () => answers(older, newer),
  });
}
