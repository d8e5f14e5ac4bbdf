/** Argo CD as it is installed: its definitions and settings, Redis, repo server and application controller. */
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { Daemon } from '../control-plane/daemon.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { freePort } from '../support/loopback.ts';
import { meta } from '../support/meta.ts';
import { argoDefinitions, argoPrograms, REDIS } from './build.ts';
import type { GitServer } from './git-server.ts';

const NAMESPACE = 'argocd';

export class ArgoCd {
  readonly #plane: ControlPlane;
  readonly #daemons: readonly Daemon[];

  private constructor(plane: ControlPlane, daemons: readonly Daemon[]) {
    this.#plane = plane;
    this.#daemons = daemons;
  }

  static async start(plane: ControlPlane, git: GitServer): Promise<ArgoCd> {
    await install(plane);
    const home = join(plane.folder, 'argo');
    mkdirSync(join(home, 'bin'), { recursive: true });
    mkdirSync(join(home, 'tmp'));
    const programs = await argoPrograms();
    for (const name of ['argocd-application-controller', 'argocd-repo-server'])
      symlinkSync(programs.argo, join(home, 'bin', name));
    symlinkSync(programs.kustomize, join(home, 'bin/kustomize'));
    const [redis = 0, repo = 0, repoMetrics = 0, metrics = 0] = await Promise.all(
      Array.from({ length: 4 }, freePort),
    );
    const daemon = (name: string, port: number, command: readonly string[]): Daemon =>
      new Daemon({
        name,
        folder: plane.folder,
        command: [
          '/usr/bin/env',
          '--ignore-environment',
          `PATH=${home}/bin:/usr/bin:/bin`,
          `HOME=${home}`,
          `TMPDIR=${home}/tmp`,
          `KUBECONFIG=${plane.kubeconfig}`,
          'ARGOCD_GPG_ENABLED=false',
          // Its own cluster is the one of the kubeconfig, as it runs in no pod.
          'ARGOCD_FAKE_IN_CLUSTER=true',
          // Elsewhere the ordinal of its pod says which clusters it looks after.
          'ARGOCD_CONTROLLER_SHARD=0',
          `ARGOCD_TLS_DATA_PATH=${git.certificates}`,
          ...command,
        ],
        ready: () => answers(port),
      });
    const daemons = [
      daemon('redis-server', redis, [REDIS, '--bind', '127.0.0.1', '--port', String(redis), '--save', '']),
      daemon('argocd-repo-server', repo, [
        'argocd-repo-server',
        '--address=127.0.0.1',
        `--port=${repo}`,
        '--metrics-address=127.0.0.1',
        `--metrics-port=${repoMetrics}`,
        `--redis=127.0.0.1:${redis}`,
        '--disable-tls',
      ]),
      daemon('argocd-application-controller', metrics, [
        'argocd-application-controller',
        `--namespace=${NAMESPACE}`,
        `--metrics-port=${metrics}`,
        `--repo-server=127.0.0.1:${repo}`,
        '--repo-server-plaintext',
        `--redis=127.0.0.1:${redis}`,
      ]),
    ];
    for (const one of daemons) await one.start();
    return new ArgoCd(plane, daemons);
  }

  /** A cluster that Argo CD delivers to, as `argocd cluster add` writes it. */
  async addClusterOf(name: string, { server, kubeconfig }: ControlPlane): Promise<void> {
    const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig;
    const config = {
      tlsClientConfig: {
        caData: clusters[0]?.cluster['certificate-authority-data'],
        certData: users[0]?.user['client-certificate-data'],
        keyData: users[0]?.user['client-key-data'],
      },
    };
    await this.#plane.apply({
      ...meta('v1 Secret', {
        name: `cluster-${name}`,
        namespace: NAMESPACE,
        labels: { 'argocd.argoproj.io/secret-type': 'cluster' },
      }),
      stringData: { name, server, config: JSON.stringify(config) },
    });
  }

  /** Makes it look at the repository and the cluster, and waits until it has. */
  async refresh(name: string): Promise<void> {
    const annotation = 'argocd.argoproj.io/refresh';
    await this.#plane.kubectl(
      '-n',
      NAMESPACE,
      'annotate',
      'application',
      name,
      `${annotation}=hard`,
      '--overwrite',
    );
    await eventually(
      async () => {
        if ((await this.#application(name))?.metadata['annotations']?.[annotation] !== undefined)
          throw new Error(`${name} was not looked at`);
      },
      { withinMs: 180_000 },
    );
  }

  async status(name: string): Promise<ApplicationStatus> {
    return ((await this.#application(name))?.['status'] ?? {}) as ApplicationStatus;
  }

  /** Status of each Application, and the end of the logs, for a failed test. */
  async report(): Promise<string> {
    const { stdout } = await this.#plane.kubectl(
      '-n',
      NAMESPACE,
      'get',
      'applications',
      '-o',
      'jsonpath={range .items[*]}{.metadata.name}{" "}{.status.sync}{" "}{.status.health}{" "}{.status.conditions}{" "}{.status.operationState.message}{"\\n"}{end}',
    );
    const logs = this.#daemons.map((daemon) => daemon.logTail().slice(-3000));
    return [stdout.slice(0, 4000), ...logs].join('\n');
  }

  #application(name: string): Promise<TestObject | undefined> {
    const apiVersion = 'argoproj.io/v1alpha1';
    return this.#plane.get({ apiVersion, kind: 'Application', metadata: { name, namespace: NAMESPACE } });
  }

  async stop(): Promise<void> {
    for (const daemon of this.#daemons.toReversed()) await daemon.terminate();
  }
}

export interface ApplicationStatus {
  readonly sync?: { readonly status?: string };
  readonly health?: { readonly status?: string };
  readonly history?: readonly unknown[];
  readonly operationState?: { readonly phase?: string; readonly retryCount?: number };
  readonly resources?: readonly { readonly kind: string; readonly status?: string }[];
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[];
  readonly users: readonly { readonly user: Readonly<Record<string, string>> }[];
}

async function install(plane: ControlPlane): Promise<void> {
  await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  const labels = { 'app.kubernetes.io/part-of': 'argocd' };
  const metadata = (name: string): TestObject['metadata'] => ({ name, namespace: NAMESPACE, labels });
  for (const file of argoDefinitions())
    await plane.apply(parse(readFileSync(file, 'utf8')) as TestObject, 'argocd');
  // Our part must keep existing settings of others.
  const theirs = { 'timeout.reconciliation': '180s' };
  await plane.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata('argocd-cm'), data: theirs });
  await plane.apply({
    ...meta('v1 Secret', metadata('argocd-secret')),
    stringData: { 'server.secretkey': 'of a test' },
  });
  await eventually(() =>
    plane.apply({
      ...meta('argoproj.io/v1alpha1 AppProject', { name: 'default', namespace: NAMESPACE }),
      spec: {
        sourceRepos: ['*'],
        destinations: [{ namespace: '*', server: '*' }],
        clusterResourceWhitelist: [{ group: '*', kind: '*' }],
      },
    }),
  );
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
