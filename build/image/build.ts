/**
 * `npm run build:image`: the image for amd64 and arm64 as an OCI layout, `dist/image`, without a Docker daemon. Push it with
 * `skopeo copy --all oci:dist/image:<version> docker://...`.
 */
import { copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../../runtime/core/version.ts';
import { ARCHS, type Arch } from '../base.ts';
import { compile } from '../compile.ts';
import { archive, ROOT, workFolder } from '../run-tool.ts';
import { billOfMaterials } from '../sbom.ts';
import { DEBIAN_ARCH, layBase, NONROOT } from './base.ts';
import { type Descriptor, ImageLayout } from './layout.ts';

export const LABELS: Readonly<Record<string, string>> = {
  'org.opencontainers.image.title': 'pullwright',
  'org.opencontainers.image.description': 'Pull credentials as code for Kubernetes and OpenShift fleets',
  'org.opencontainers.image.licenses': 'Apache-2.0',
  'org.opencontainers.image.version': VERSION,
};

/** Builds the layout `to`, which it replaces. Returns the descriptor of the index. The same sources give the same digest. */
export function buildImage(to: string, executables: Readonly<Record<Arch, string>>): Descriptor {
  rmSync(to, { recursive: true, force: true });
  const layout = new ImageLayout(to);
  const images = ARCHS.map((arch) => platformImage(layout, arch, executables[arch]));
  const sbom = billOfMaterials(executables);
  writeFileSync(join(to, 'sbom.spdx.json'), sbom);
  return layout.finish(VERSION, images, LABELS, sbom);
}

function platformImage(layout: ImageLayout, arch: Arch, executable: string): Descriptor {
  using work = workFolder('image');
  const layers = [
    layerOf(join(work.path, 'base'), (rootfs) => layBase(rootfs, arch)),
    layerOf(join(work.path, 'program'), (rootfs) => layProgram(rootfs, executable)),
  ];
  return layout.image(DEBIAN_ARCH[arch], layers, {
    User: `${NONROOT}:${NONROOT}`,
    Entrypoint: ['/usr/bin/pullwright'],
    Env: ['PATH=/usr/bin', 'SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt'],
    WorkingDir: '/',
    Labels: LABELS,
  });
}

/** One file under all its names, so that agent, provider and reconciler share one layer. */
function layProgram(rootfs: string, executable: string): void {
  mkdirSync(join(rootfs, 'usr/bin'), { recursive: true });
  copyFileSync(executable, join(rootfs, 'usr/bin/pullwright'));
  for (const name of ['crio-credential-provider', 'kubectl-pullwright'])
    symlinkSync('pullwright', join(rootfs, 'usr/bin', name));
}

function layerOf(rootfs: string, lay: (rootfs: string) => void): Uint8Array {
  mkdirSync(rootfs);
  lay(rootfs);
  archive(rootfs, `${rootfs}.tar`);
  return readFileSync(`${rootfs}.tar`);
}

if (import.meta.main) {
  using work = workFolder('image');
  const executables = { x64: join(work.path, 'x64'), arm64: join(work.path, 'arm64') };
  for (const arch of ARCHS) compile(arch, executables[arch]);
  const index = buildImage(join(ROOT, 'dist/image'), executables);
  process.stdout.write(`dist/image:${VERSION} ${index.digest}\n`);
}
