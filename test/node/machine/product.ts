/** Our image in a machine's registry, and our commands against its API server, as a user runs them. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildImage } from '../../../build/image/build.ts';
import { VERSION } from '../../../runtime/core/version.ts';
import type { TestObject } from '../../control-plane/resource-path.ts';
import { docBlock, docBlocks } from '../../support/doc-blocks.ts';
import { executable } from '../../support/executable.ts';
import { type ProcessResult, runProcess } from '../../support/process.ts';
import type { NodeMachine } from './node.ts';

/** As in docs/install.md. */
export const IMAGE: string = `registry.example.com/pullwright/pullwright:${VERSION}`;
const PAGE = 'docs/install.md';

/** Verifies, unpacks and pushes a release by the page's commands to a registry with a password. */
export async function pushProduct(node: NodeMachine): Promise<void> {
  const layout = join(node.folder, 'product');
  buildImage(layout, { x64: await executable('x64'), arm64: await executable('arm64') });
  const work = workFolder(node);
  const name = `pullwright-${VERSION}-image.oci.tar`;
  execFileSync('tar', ['-C', layout, '-cf', join(work, name), '.']);
  const sum = createHash('sha256')
    .update(readFileSync(join(work, name)))
    .digest('hex');
  writeFileSync(join(work, 'SHA256SUMS'), `${sum}  ${name}\n`);
  const { host, user, password } = node.registry('registry.example.com');
  writeFileSync(join(work, 'password'), password);
  await ok(node, `skopeo login --username ${user} --password-stdin ${host} < password`);
  await ok(node, docBlock(PAGE, 'The image', 'sh'));
}

/** A stand-alone cluster with a tenant's credential on nodes and a team's in namespaces. */
export const TEAM_FLEET: string = `
image: ${IMAGE}
imagePullSecrets: [pullwright-registry]
clusters:
  - name: prod
    systems:
      global-pull-secret: { createConfigNamespace: true }
      pull-secret-injection: {}
`;

/** The team's Secret is copied to every namespace with its label. */
export const TEAM_PROFILE = `
apiVersion: pullwright.dev/v1alpha1
kind: PullSecretProfile
metadata: { name: team }
spec:
  namespaceSelector: { matchLabels: { registry: team } }
  selector: {}
  secrets: [{ name: team-robot, sources: [{ namespace: platform, name: robot }] }]
`;

/** Creates the imagePullSecret of our pods by the page's commands, also in further namespaces. */
export async function grantImage(node: NodeMachine, ...more: readonly string[]): Promise<void> {
  const [, lines] = docBlocks(PAGE).filter(
    ({ heading, language }) => heading === 'An image behind a password' && language === 'sh',
  );
  if (lines === undefined) throw new Error(`${PAGE} does not say how the Secret is made`);
  await ok(node, lines.text);
  for (const namespace of more)
    await ok(
      node,
      `kubectl create namespace ${namespace}
       kubectl -n pullwright-system get secret pullwright-registry -o json |
         jq '.metadata = {name: .metadata.name, namespace: "${namespace}"}' | kubectl create -f -`,
    );
}

/** A pull secret with a docker config. */
export function pullSecretOf(namespace: string, name: string, config: string): TestObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/dockerconfigjson',
    metadata: { name, namespace },
    data: { '.dockerconfigjson': btoa(config) },
  };
}

/** Working directory of `shell`. */
export function workFolder(node: NodeMachine): string {
  const work = join(node.folder, 'work');
  mkdirSync(work, { recursive: true });
  return work;
}

/** Runs lines that must succeed; returns their output. */
export async function ok(node: NodeMachine, lines: string): Promise<string> {
  const { code, stdout, stderr } = await shell(node, lines);
  if (code !== 0) throw new Error(`${lines}\n${stdout.slice(-3000)}\n${stderr.slice(-3000)}`);
  return stdout;
}

/** Runs lines of a shell in a folder of the machine, with `pullwright` and `kubectl` of an administrator. */
export async function shell(node: NodeMachine, lines: string): Promise<ProcessResult> {
  const bin = join(node.folder, 'bin');
  const work = workFolder(node);
  if (!existsSync(bin)) {
    mkdirSync(bin);
    symlinkSync(node.binaries.kubectl, join(bin, 'kubectl'));
    const program = `#!/bin/sh\nexec "${await executable()}" "$@"\n`;
    writeFileSync(join(bin, 'pullwright'), program);
    chmodSync(join(bin, 'pullwright'), 0o755);
  }
  return runProcess(['bash', '-euo', 'pipefail', '-c', lines], {
    cwd: work,
    deadlineMs: 180_000,
    env: { PATH: `${bin}:/usr/bin:/bin`, HOME: work, KUBECONFIG: node.plane.kubeconfig },
  });
}
