/**
 * `npm run node`: a node for experiments with a shell in it; exiting the shell removes the node. `--build` only builds. Requires
 * root on Linux.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { missingNode, nodeBinaries } from './build.ts';
import { LAYOUTS, type LayoutName } from './layouts.ts';
import { machineFolder, runInside } from './namespaces.ts';
import { NodeMachine } from './node.ts';

const USAGE = 'npm run node -- [--layout kubeadm|openshift] [--build]\n';
const REGISTRIES = { 'quay.example.com': 'tenant', 'mirror.example.com': 'mirror' };

const { values } = parseArgs({
  options: { layout: { type: 'string', default: 'kubeadm' }, build: { type: 'boolean', default: false } },
});
process.exitCode = await main();

async function main(): Promise<number> {
  const layout = LAYOUTS.find((name) => name === values.layout);
  const missing = missingNode();
  if (layout === undefined)
    return refuse(2, `--layout is "${values.layout}": expected one of ${LAYOUTS.join(', ')}`);
  if (missing !== undefined) return refuse(1, `Cannot start a node: ${missing}`);
  try {
    if (values.build) {
      await nodeBinaries();
      return 0;
    }
    return machineFolder() === undefined ? await runInside(import.meta.filename) : await play(layout);
  } catch (error) {
    return refuse(1, error instanceof Error ? error.message : 'Cannot start a node');
  }
}

function refuse(code: number, problem: string): number {
  process.stderr.write(`${problem}\n${USAGE}`);
  return code;
}

async function play(layout: LayoutName): Promise<number> {
  const node = await NodeMachine.start({ layout, registries: REGISTRIES });
  const bin = join(node.folder, 'bin');
  mkdirSync(bin);
  symlinkSync(node.binaries.kubectl, join(bin, 'kubectl'));
  const lines = ['registry.example.com', ...Object.keys(REGISTRIES)].map((host) => {
    const registry = node.registry(host);
    const image = node.image(host, 'acme/web', '1');
    const config = join(node.folder, `${host}.json`);
    writeFileSync(config, registry.config());
    return `${image}  user ${registry.user}, docker config ${config}\n`;
  });
  process.stdout.write(
    `${lines.join('')}logs: /var/log/kubelet.log, /var/log/crio.log; the node ends with this shell\n`,
  );
  const shell = spawn('/bin/bash', ['--norc', '-i'], {
    stdio: 'inherit',
    env: {
      ...process.env,
      KUBECONFIG: node.plane.kubeconfig,
      PATH: `${bin}:${process.env['PATH'] ?? ''}`,
      PS1: 'node1 \\w # ',
    },
  });
  const code = await new Promise<number>((resolve) => shell.once('close', (exit) => resolve(exit ?? 0)));
  await node.stop();
  return code;
}
