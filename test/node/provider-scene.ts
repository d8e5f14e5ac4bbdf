/** A node of kubeadm with a mirror, and accessors for tests of the credential provider. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import type { TestObject } from '../control-plane/resource-path.ts';
import { ContainersOf } from './machine/containers.ts';
import { Journey } from './machine/journey.ts';
import { NODE_NAME, podOf } from './machine/node.ts';

export const DROP_IN = '/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf';
export const PLUGIN = '/usr/libexec/kubelet-image-credential-provider-plugins/crio-credential-provider';
export const AUTH_DIR = '/etc/crio/auth';
export const SOURCE = 'quay.example.com';
export const MIRROR = 'mirror.example.com';

/** Options of a pod besides its name. */
export interface PodWish {
  readonly namespace?: string;
  readonly account?: string;
  readonly policy?: 'Always' | 'IfNotPresent' | 'Never';
  /** @default the pod's own name */
  readonly image?: string;
  readonly secret?: string;
}

export class ProviderScene extends Journey {
  readonly containers: ContainersOf = new ContainersOf(this.node);

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

  /** A running pod with an image of its own, so that files and records of other pods do not apply. */
  async started(name: string, wish: PodWish = {}): Promise<void> {
    this.node.image(MIRROR, `acme/${name}`, '1');
    await this.make(this.pod(name, wish));
  }

  authFiles(): readonly string[] {
    return readdirSync(AUTH_DIR).filter((name) => name !== 'in-use');
  }

  /** Ready condition of the installer's report: status, reason, message. */
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
    await this.within(async () => assert.deepEqual((await this.reported()).slice(0, 2), [status, reason]));
  }

  /** The command line of the kubelet's main process. */
  kubeletCommand(): string {
    return this.node.run(
      '/bin/sh',
      '-c',
      'tr "\\0" " " < /proc/$(systemctl show -P MainPID kubelet)/cmdline',
    );
  }
}
