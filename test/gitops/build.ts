/** The controllers of Flux and Argo CD, built once with Go from the `go.mod` files beside this one, and files of their modules. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { canBuild, type GoTools, goTools, type Progress } from '../support/go-tools.ts';

const FLUX: GoTools = {
  name: 'flux',
  module: join(import.meta.dirname, 'flux'),
  flags: ['-trimpath', '-ldflags=-s -w'],
  env: { CGO_ENABLED: '0' },
  programs: { 'kustomize-controller': 'kustomize-controller' },
};

const ARGO_CD: GoTools = {
  name: 'argo-cd',
  module: join(import.meta.dirname, 'argo-cd'),
  // Without its version, Argo CD says v99.99.99.
  flags: ['-trimpath', '-ldflags=-s -w -X github.com/argoproj/argo-cd/v3/common.version=3.2.1'],
  env: { CGO_ENABLED: '0' },
  packages: ['.', 'tool'],
  sources: ['main.go'],
  programs: { 'argo-cd': 'argo-cd', kustomize: 'kustomize' },
};

export const REDIS = '/usr/bin/redis-server';
/** Part of Debian's package git. */
export const HTTP_BACKEND = '/usr/lib/git-core/git-http-backend';

const toStderr: Progress = (line) => process.stderr.write(`${line}\n`);

/** Why Flux cannot run here, for `test.skip`; undefined when it can. Builds nothing. */
export function missingFlux(): string | undefined {
  if (!canBuild(FLUX)) return 'no Go tool chain to build kustomize-controller with';
  return missingGit();
}

/** Path of kustomize-controller; builds it if it is missing (about two minutes on two cores). */
export async function fluxProgram(progress: Progress = toStderr): Promise<string> {
  return join(await goTools(FLUX, progress), 'kustomize-controller');
}

/** The definition of Flux's Kustomization, as its module has it. */
export function fluxDefinition(): string {
  const folder = moduleFolder(FLUX, 'github.com/fluxcd/kustomize-controller');
  return join(folder, 'config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml');
}

export interface ArgoPrograms {
  /** Repo server and application controller: what it is called by decides. */
  readonly argo: string;
  readonly kustomize: string;
}

/** Why Argo CD cannot run here, for `test.skip`; undefined when it can. Builds nothing. */
export function missingArgo(): string | undefined {
  if (!canBuild(ARGO_CD)) return 'no Go tool chain to build Argo CD with';
  if (!existsSync(REDIS)) return `Argo CD takes ${REDIS} (package redis-server)`;
  if (!existsSync(HTTP_BACKEND)) return `a repository takes ${HTTP_BACKEND} (package git)`;
  return missingGit();
}

/** The programs; builds them if they are missing (about eight minutes on two cores). */
export async function argoPrograms(progress: Progress = toStderr): Promise<ArgoPrograms> {
  const folder = await goTools(ARGO_CD, progress);
  return { argo: join(folder, 'argo-cd'), kustomize: join(folder, 'kustomize') };
}

/** Definitions of Argo CD's Application and AppProject, as its module has them. */
export function argoDefinitions(): readonly string[] {
  const folder = moduleFolder(ARGO_CD, 'github.com/argoproj/argo-cd/v3');
  return ['application-crd.yaml', 'appproject-crd.yaml'].map((name) => join(folder, 'manifests/crds', name));
}

function missingGit(): string | undefined {
  return existsSync('/usr/bin/git') ? undefined : 'a repository takes /usr/bin/git (package git)';
}

/** Folder of a module that the tools are built from; downloads it when only the programs are cached. */
function moduleFolder(tools: GoTools, path: string): string {
  const version = execFileSync('go', ['list', '-m', '-f', '{{.Version}}', path], {
    cwd: tools.module,
    encoding: 'utf8',
  });
  const text = execFileSync('go', ['mod', 'download', '-json', `${path}@${version.trim()}`], {
    cwd: tools.module,
    encoding: 'utf8',
    timeout: 120_000,
  });
  return (JSON.parse(text) as { Dir: string }).Dir;
}
