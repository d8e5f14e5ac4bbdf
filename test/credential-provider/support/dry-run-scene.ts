/** A control plane with a Node and its entries, hosts with a kubelet, and `install-provider --dry-run` confined on them. */
import assert from 'node:assert/strict';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { planInstall } from '../../../runtime/credential-provider/installer/plan.ts';
import { type ProcessResult, runProcess } from '../../support/process.ts';
import { InstallerCluster } from './installer-scene.ts';

const root = new URL('../../..', import.meta.url).pathname;

const UNIT =
  '[Service]\nExecStart=/usr/bin/kubelet --image-credential-provider-config=/etc/ecr.yaml --image-credential-provider-bin-dir=/opt/plugins $KUBELET_EXTRA_ARGS\n';
const PRESENT =
  'apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: ecr\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n  matchImages: ["*.dkr.ecr.*.amazonaws.com"]\n  defaultCacheDuration: 12h\n';
const VERSIONS = { kubeletVersion: 'v1.35.0', containerRuntimeVersion: 'cri-o://1.35.0' };

export interface DryRun {
  readonly folder: string;
  readonly flags?: readonly string[];
  readonly serviceAccount?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly program?: string;
}

/** Files of an installed host, by the plan. */
export function installed(matchImages: readonly string[]): Readonly<Record<string, string>> {
  const plan = planInstall({
    node: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' }, status: { nodeInfo: VERSIONS } },
    matchImages,
    unit: [{ path: '/etc/systemd/system/kubelet.service', text: UNIT }],
    pointers: { config: '/etc/ecr.yaml', binDir: '/opt/plugins' },
    present: PRESENT,
    configDir: '/etc/kubernetes/credential-providers',
  });
  assert.ok(plan.ok);
  return {
    'etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf': plan.dropIn,
    [plan.config?.path.slice(1) ?? '']: plan.config?.text ?? '',
    'opt/plugins/crio-credential-provider': 'the program',
  };
}

/** Every path below the folder, sorted. */
export function namesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true }).map(String).sort();
}

export class DryRunScene {
  /** Service account folders: without any right, and without any file. */
  readonly powerless: string;
  readonly empty: string;
  readonly #cluster: InstallerCluster;
  readonly #node: string;
  readonly #work: string;
  readonly #program: string;
  readonly #tokenFolders: readonly string[];
  #hosts = 0;

  private constructor(cluster: InstallerCluster, node: string, nobody: string) {
    this.#cluster = cluster;
    this.#node = node;
    this.#work = mkdtempSync(join(tmpdir(), 'pullwright-dry-run-'));
    this.powerless = join(this.#work, 'nobody');
    mkdirSync(this.powerless);
    writeFileSync(join(this.powerless, 'ca.crt'), cluster.plane.ca);
    symlinkSync(nobody, join(this.powerless, 'token'));
    this.empty = join(this.#work, 'empty');
    mkdirSync(this.empty);
    this.#program = join(this.#work, 'program');
    writeFileSync(this.#program, 'the program');
    this.#tokenFolders = [
      cluster.account,
      dirname(nobody),
      dirname(realpathSync(join(cluster.account, 'token'))),
    ];
  }

  /** The entries, and a Node with its versions. */
  static async start(): Promise<DryRunScene> {
    const cluster = await InstallerCluster.start();
    const nobody = await cluster.plane.user({ name: 'nobody', by: 'token' });
    await cluster.entries('docker.io', '123.dkr.ecr.eu-west-1.amazonaws.com');
    const node = await cluster.node(VERSIONS.kubeletVersion, VERSIONS.containerRuntimeVersion);
    return new DryRunScene(cluster, node, nobody.tokenFile);
  }

  /** A new host with a kubelet that has a provider of its cloud, and these files. */
  host(files: Readonly<Record<string, string>> = {}): string {
    const folder = join(this.#work, `host-${(this.#hosts += 1)}`);
    const all = { 'etc/systemd/system/kubelet.service': UNIT, 'etc/ecr.yaml': PRESENT, ...files };
    for (const [name, text] of Object.entries(all)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    return folder;
  }

  /** Under the permission model, with the command's declared reads and no writes. */
  dryRun(run: DryRun): Promise<ProcessResult> {
    const reads = ['main.ts', 'package.json', 'charts', 'runtime', 'node_modules'].map((name) =>
      join(root, name),
    );
    return runProcess(
      [
        process.execPath,
        '--permission',
        ...[...reads, this.#work, ...this.#tokenFolders].map((path) => `--allow-fs-read=${path}`),
        join(root, 'main.ts'),
        'install-provider',
        '--dry-run',
        `--root=${run.folder}`,
        `--node-name=${this.#node}`,
        `--executable=${run.program ?? this.#program}`,
        `--service-account-dir=${run.serviceAccount ?? this.#cluster.account}`,
        ...(run.flags ?? []),
      ],
      { env: { ...this.#cluster.env, ...run.env } },
    );
  }

  stop(): Promise<void> {
    rmSync(this.#work, { recursive: true });
    return this.#cluster.plane.stop();
  }
}
