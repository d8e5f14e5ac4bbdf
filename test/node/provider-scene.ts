/** A node of kubeadm with a mirror, and what its tests of the credential provider look at. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { ContainersOf } from './machine/containers.ts';
import { NODE_NAME, type NodeMachine, podOf } from './machine/node.ts';

export const DROP_IN = '/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf';
export const PLUGIN = '/usr/libexec/kubelet-image-credential-provider-plugins/crio-credential-provider';
export const AUTH_DIR = '/etc/crio/auth';
export const SOURCE = 'quay.example.com';
export const MIRROR = 'mirror.example.com';

/** Beside the name: whose pod, and how it pulls. */
export interface PodWish {
  readonly namespace?: string;
  readonly account?: string;
  readonly policy?: 'Always' | 'IfNotPresent' | 'Never';
  /** @default the pod's own name */
  readonly image?: string;
  readonly secret?: string;
}

export class ProviderScene {
  readonly node: NodeMachine;
  readonly containers: ContainersOf;

  constructor(node: NodeMachine) {
    this.node = node;
    this.containers = new ContainersOf(node);
  }

  /** Pods pull `quay.example.com/acme/<image>:1`, which only the mirror has. */
  pod(name: string, wish: PodWish = {}): TestObject {
    const { namespace = 'team-a', account = 'app', policy = 'IfNotPresent', secret } = wish;
    const image = `${SOURCE}/acme/${wish.image ?? name}:1`;
    return podOf(name, image, namespace, {
      serviceAccountName: account,
      containers: [{ name: 'main', image, imagePullPolicy: policy }],
      ...(secret === undefined ? {} : { imagePullSecrets: [{ name: secret }] }),
    });
  }

  /** Waits for what the API server says about a pod. */
  async becomes(pod: TestObject, state: RegExp): Promise<void> {
    await this.within(async () =>
      assert.match(
        JSON.stringify((await this.node.plane.get(pod))?.['status'] ?? {}),
        state,
        this.node.logs(),
      ),
    );
  }

  /** Makes it and waits; the account of a new namespace may not be there at once. */
  async make(pod: TestObject, state: RegExp = /"running"/): Promise<void> {
    await this.within(() => this.node.plane.apply(pod));
    await this.becomes(pod, state);
  }

  /** A running pod of an image that no other has, so that no other's file or record counts for it. */
  async started(name: string, wish: PodWish = {}): Promise<void> {
    this.node.image(MIRROR, `acme/${name}`, '1');
    await this.make(this.pod(name, wish));
  }

  authFiles(): readonly string[] {
    return readdirSync(AUTH_DIR).filter((name) => name !== 'in-use');
  }

  /** Ready of the report of the installer: status, reason, message. */
  async reported(): Promise<readonly (string | undefined)[]> {
    const found = await this.node.plane.get({
      apiVersion: 'pullwright.dev/v1alpha1',
      kind: 'PullStatus',
      metadata: { name: `credential-provider-node-${NODE_NAME}`, namespace: 'kube-system' },
    });
    const { conditions = [] } = (found?.['status'] ?? {}) as {
      readonly conditions?: readonly Readonly<Record<'type' | 'status' | 'reason' | 'message', string>>[];
    };
    const ready = conditions.find(({ type }) => type === 'Ready');
    return [ready?.status, ready?.reason, ready?.message];
  }

  async inState(status: 'True' | 'False', reason: string): Promise<void> {
    await this.within(async () =>
      assert.deepEqual((await this.reported()).slice(0, 2), [status, reason], this.node.logs()),
    );
  }

  /** The command line of the kubelet's main process. */
  kubeletCommand(): string {
    return this.node.run(
      '/bin/sh',
      '-c',
      'tr "\\0" " " < /proc/$(systemctl show -P MainPID kubelet)/cmdline',
    );
  }

  within<T>(check: () => Promise<T>): Promise<T> {
    return eventually(check, { withinMs: 180_000, everyMs: 250 });
  }
}
