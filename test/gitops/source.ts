/**
 * Stands for Flux's source-controller, which cannot be had as a Go module: serves the tree of a GitRepository as a tarball, and says
 * so in its status. As the real one, it looks at the repository when the object changes or somebody asks for it by annotation (the
 * interval never ends within a test), and takes no reference but the one that is there.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { TestObject } from '../control-plane/resource-path.ts';

const GROUP = 'source.toolkit.fluxcd.io';
const REQUESTED = 'reconcile.fluxcd.io/requestedAt';
const DURATION = { type: 'string', pattern: '^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$' };
const ANYTHING = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** Validation of our GitRepository's `spec`: the rules of the controller's Go types. */
const GIT_REPOSITORY = {
  type: 'object',
  required: ['interval', 'url'],
  properties: {
    interval: DURATION,
    url: { type: 'string', pattern: '^(http|https|ssh)://.*$' },
    ref: {
      type: 'object',
      properties: Object.fromEntries(
        ['branch', 'tag', 'semver', 'name', 'commit'].map((name) => [name, { type: 'string' }]),
      ),
    },
  },
};

/** Definitions of the kinds that kustomize-controller takes sources from. */
export function sourceDefinitions(): readonly TestObject[] {
  return [
    definition('GitRepository', 'gitrepositories', GIT_REPOSITORY),
    definition('OCIRepository', 'ocirepositories', ANYTHING),
    definition('Bucket', 'buckets', ANYTHING),
  ];
}

function definition(kind: string, plural: string, spec: unknown): TestObject {
  const schema = { type: 'object', properties: { spec, status: ANYTHING } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schema },
          subresources: { status: {} },
        },
      ],
    },
  };
}

interface GitRepository extends TestObject {
  readonly spec: {
    readonly ref: { readonly branch?: string; readonly name?: string; readonly commit?: string };
  };
  readonly status?: { readonly observedGeneration?: number; readonly lastHandledReconcileAt?: string };
}

export class SourceStandIn {
  readonly #plane: ControlPlane;
  readonly #bare: string;
  readonly #server: Server;
  readonly #tarballs = new Map<string, Buffer>();
  readonly #over = new AbortController();
  #work: Promise<void> = Promise.resolve();

  /** @param bare the repository that every GitRepository is taken for */
  constructor(plane: ControlPlane, bare: string) {
    this.#plane = plane;
    this.#bare = bare;
    this.#server = createServer((request, response) => {
      const tarball = this.#tarballs.get(request.url ?? '');
      response.writeHead(tarball === undefined ? 404 : 200).end(tarball);
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.#work = this.#run(this.#over.signal);
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#work;
    this.#server.close();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { body } = await this.#plane.client.request('GET', `/apis/${GROUP}/v1/gitrepositories`);
      for (const object of (body.items ?? []) as readonly GitRepository[])
        if (isToBeLookedAt(object)) await this.#publish(object);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  async #publish({ metadata, spec }: GitRepository): Promise<void> {
    const { branch, name, commit } = spec.ref;
    const reference = commit ?? name ?? `refs/heads/${branch}`;
    const sha = this.#git('rev-parse', `${reference}^{commit}`).toString().trim();
    const tarball = this.#git('archive', '--format=tar.gz', sha);
    const path = `/gitrepository/${metadata.namespace}/${metadata.name}/${sha}.tar.gz`;
    this.#tarballs.set(path, tarball);
    const now = new Date().toISOString();
    const { port } = this.#server.address() as AddressInfo;
    const { generation } = metadata as { generation?: number };
    const status = {
      observedGeneration: generation,
      lastHandledReconcileAt: metadata.annotations?.[REQUESTED],
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'Succeeded',
          message: 'stored artifact',
          lastTransitionTime: now,
          observedGeneration: generation,
        },
      ],
      artifact: {
        path,
        url: `http://127.0.0.1:${port}${path}`,
        revision: commit === undefined ? `${name ?? branch}@sha1:${sha}` : `sha1:${sha}`,
        digest: `sha256:${createHash('sha256').update(tarball).digest('hex')}`,
        lastUpdateTime: now,
        size: tarball.length,
      },
    };
    const at = `/apis/${GROUP}/v1/namespaces/${metadata.namespace}/gitrepositories/${metadata.name}/status`;
    await this.#plane.client.request('PATCH', at, { status }, 'application/merge-patch+json');
  }

  #git(...args: readonly string[]): Buffer {
    return execFileSync('/usr/bin/git', ['-C', this.#bare, ...args], { maxBuffer: 64 << 20 });
  }
}

function isToBeLookedAt({ metadata, status }: GitRepository): boolean {
  const { generation } = metadata as { generation?: number };
  return (
    status?.observedGeneration !== generation ||
    status?.lastHandledReconcileAt !== metadata.annotations?.[REQUESTED]
  );
}
