/**
 * A management cluster and any number of hosted clusters in one small HTTPS server, each hosted one below a path of its own. It
 * keeps what is applied and holds watches open: enough to see what many clusters cost the client.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kubeconfigText } from '../test/control-plane/users.ts';
import { Authority } from '../test/control-plane/x509.ts';

type Json = Readonly<Record<string, unknown>>;

const PULL_SECRET = {
  type: 'kubernetes.io/dockerconfigjson',
  data: { '.dockerconfigjson': Buffer.from('{"auths":{"quay.io":{"auth":"dTpw"}}}').toString('base64') },
};
/** Group and version to the kinds that are served. */
const SERVED: Readonly<
  Record<string, readonly (readonly [kind: string, plural: string, namespaced: boolean])[]>
> = {
  '/apis/hypershift.openshift.io/v1beta1': [
    ['HostedControlPlane', 'hostedcontrolplanes', true],
    ['NodePool', 'nodepools', true],
    ['HostedCluster', 'hostedclusters', true],
  ],
  '/apis/apiextensions.k8s.io/v1': [['CustomResourceDefinition', 'customresourcedefinitions', false]],
  '/apis/cluster.x-k8s.io/v1beta1': [['Machine', 'machines', true]],
  '/apis/pullwright.dev/v1alpha1': [['PullStatus', 'pullstatuses', true]],
  '/apis/rbac.authorization.k8s.io/v1': [
    ['ClusterRole', 'clusterroles', false],
    ['ClusterRoleBinding', 'clusterrolebindings', false],
    ['Role', 'roles', true],
    ['RoleBinding', 'rolebindings', true],
  ],
  '/apis/admissionregistration.k8s.io/v1': [
    ['ValidatingAdmissionPolicy', 'validatingadmissionpolicies', false],
    ['ValidatingAdmissionPolicyBinding', 'validatingadmissionpolicybindings', false],
  ],
};

export class HostedStub {
  /** How many hosted clusters the management cluster shows. */
  clusters = 1;
  requests = 0;
  readonly kubeconfig: string;
  readonly config: string;
  readonly #folder: string;
  readonly #authority: Authority;
  readonly #server: Server;
  readonly #applied = new Map<string, Json>();
  #version = 1000;

  constructor(authority: Authority, server: Server) {
    this.#authority = authority;
    this.#server = server;
    this.#folder = mkdtempSync(join(tmpdir(), 'pullwright-bench-'));
    this.kubeconfig = join(this.#folder, 'kubeconfig');
    this.config = join(this.#folder, 'config.yaml');
    writeFileSync(
      this.config,
      'systems: { global-pull-secret: {}, pull-secret-injection: false, registry-overrides: false, credential-provider: false }\n',
    );
  }

  static async start(): Promise<HostedStub> {
    const authority = new Authority('stub-ca');
    const { certificate, key } = authority.issue({ commonName: 'stub', hosts: ['127.0.0.1'] });
    const server = createServer({ cert: certificate, key });
    const stub = new HostedStub(authority, server);
    server.on('request', (request, response) => void stub.#answer(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    writeFileSync(stub.kubeconfig, stub.#kubeconfigFor(''));
    return stub;
  }

  /** Hosted clusters that have their merged secret. */
  get merged(): number {
    return [...this.#applied.keys()].filter((path) => path.endsWith('/secrets/original-pull-secret')).length;
  }

  forget(): void {
    this.#applied.clear();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    rmSync(this.#folder, { recursive: true });
  }

  #kubeconfigFor(path: string): string {
    const { port } = this.#server.address() as AddressInfo;
    return kubeconfigText(`https://127.0.0.1:${port}${path}`, this.#authority.certificate, { token: 'stub' });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    const url = new URL(request.url ?? '/', 'https://stub');
    const path = url.pathname;
    if (request.method === 'PATCH') return this.#apply(path, await bodyOf(request), response);
    if (url.searchParams.has('watch')) {
      response.writeHead(200).flushHeaders();
      return;
    }
    this.#read(path, url.searchParams.has('limit'), response);
  }

  #read(path: string, isCollection: boolean, response: ServerResponse): void {
    const [, cluster = '', rest = ''] = /^(\/hosted-\d+)?(\/.*)$/.exec(path) ?? [];
    if (SERVED[rest] !== undefined)
      return send(response, 200, {
        resources: SERVED[rest].map(([kind, name, namespaced]) => ({ kind, name, namespaced })),
      });
    const last = rest.split('/').at(-1) ?? '';
    const found = this.#applied.get(path) ?? this.#given(cluster, rest);
    if (found !== undefined) return send(response, 200, found);
    if (!isCollection) return send(response, 404, { kind: 'Status', reason: 'NotFound' });
    send(response, 200, {
      metadata: { resourceVersion: '1' },
      items: cluster === '' ? this.#listed(rest, last) : [],
    });
  }

  /** What is read one by one. */
  #given(cluster: string, path: string): Json | undefined {
    if (path === '/api/v1/namespaces/kube-system')
      return { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid: `of${cluster}` } };
    const namespace = /^\/api\/v1\/namespaces\/clusters-(hosted-\d+)\/secrets\/admin-kubeconfig$/.exec(
      path,
    )?.[1];
    if (cluster !== '' || namespace === undefined) return undefined;
    const data = { kubeconfig: Buffer.from(this.#kubeconfigFor(`/${namespace}`)).toString('base64') };
    return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'admin-kubeconfig' }, data };
  }

  #listed(path: string, plural: string): readonly Json[] {
    if (plural === 'hostedcontrolplanes')
      return Array.from({ length: this.clusters }, (_, index) => ({
        metadata: {
          name: `hosted-${index}`,
          namespace: `clusters-hosted-${index}`,
          resourceVersion: '1',
          uid: `u${index}`,
          annotations: { 'hypershift.openshift.io/cluster': `clusters/hosted-${index}` },
        },
      }));
    if (plural !== 'secrets') return [];
    // One namespace, or all of them at once.
    const only = /^\/api\/v1\/namespaces\/([^/]+)\/secrets$/.exec(path)?.[1];
    return Array.from({ length: this.clusters }, (_, index) => `clusters-hosted-${index}`)
      .filter((namespace) => only === undefined || namespace === only)
      .map((namespace) => ({
        ...PULL_SECRET,
        metadata: { name: 'pull-secret', namespace, resourceVersion: '1', uid: namespace },
      }));
  }

  #apply(path: string, body: Json, response: ServerResponse): void {
    this.#version += 1;
    const main = path.replace(/\/status$/, '');
    const before = this.#applied.get(main);
    const metadata = {
      uid: main,
      ...(before?.['metadata'] as object),
      ...(body['metadata'] as object),
      resourceVersion: String(this.#version),
    };
    const stored = { ...before, ...body, metadata };
    this.#applied.set(main, stored);
    send(response, before === undefined ? 201 : 200, stored);
  }
}

async function bodyOf(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as Json;
}

function send(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
