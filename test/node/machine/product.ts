/** Our image in a machine's registry, and our commands against its API server, as a user runs them. */
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildImage } from '../../../build/image/build.ts';
import { VERSION } from '../../../runtime/rules/version.ts';
import { executable } from '../../support/executable.ts';
import { type ProcessResult, runProcess } from '../../support/process.ts';
import type { NodeMachine } from './node.ts';

/** As docs/install.md has it. */
export const IMAGE: string = `registry.example.com/pullwright/pullwright:${VERSION}`;

/** What `npm run build:image` leaves, pushed to the registry of the platform. */
export async function pushProduct(node: NodeMachine): Promise<void> {
  const to = join(node.folder, 'product');
  buildImage({ to, executables: { x64: await executable('x64'), arm64: await executable('arm64') } });
  node.registry('registry.example.com').push(`${to}:${VERSION}`, `pullwright/pullwright:${VERSION}`);
}

/** Runs lines of a shell in a folder of the machine, with `pullwright` and `kubectl` as an administrator has them. */
export async function shell(node: NodeMachine, lines: string): Promise<ProcessResult> {
  const bin = join(node.folder, 'bin');
  const work = join(node.folder, 'work');
  if (!existsSync(bin)) {
    mkdirSync(bin);
    mkdirSync(work);
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
