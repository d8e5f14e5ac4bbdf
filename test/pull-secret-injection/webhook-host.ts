/** The webhook as a process of its own, with the rights that the charts render, and certificates that a test places. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { webhookObjects } from '../../charts/pull-secret-injection/webhook.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import type { User } from '../control-plane/users.ts';
import { Authority } from '../control-plane/x509.ts';

const root = new URL('../..', import.meta.url).pathname;
/** A pair in PEM, or half of one. */
export interface Pair {
  readonly certificate?: string;
  readonly key?: string;
}

export interface RunningWebhook {
  readonly process: ChildProcess;
  /** What it wrote. */
  log(): string;
  /** The port, once it listens. */
  port(): Promise<number>;
  stop(): Promise<void>;
}

export interface WebhookHost {
  /** Folder of `tls.crt` and `tls.key`. */
  readonly certificates: string;
  readonly user: User;
  /** @param until when it ends @default {in ten years} */
  certificate(name: string, until?: Date): Required<Pair>;
  place(pair: Pair): void;
  start(port?: number, healthPort?: number): RunningWebhook;
  /** Has the API server call the webhook at this port. */
  callAt(port: number): Promise<void>;
}

export async function webhookHost(plane: ControlPlane): Promise<WebhookHost> {
  const authority = new Authority('webhook');
  const certificates = join(plane.folder, 'tls');
  mkdirSync(certificates);
  const caBundle = Buffer.from(authority.certificate).toString('base64');
  // What the charts grant, and nothing else.
  const objects = webhookObjects(
    { certificates: { kind: 'manual', caBundle } },
    { namespace: 'pullwright-system', image: 'unused' },
  );
  const role = objects.find(({ kind }) => kind === 'ClusterRole')?.['rules'] as [];
  const user = await plane.user({ name: 'webhook', by: 'token', cluster: role });
  const configuration = objects.find(({ kind }) => kind === 'MutatingWebhookConfiguration') as TestObject;
  const host: WebhookHost = {
    certificates,
    user,
    certificate: (name, until) =>
      authority.issue({
        commonName: name,
        hosts: ['127.0.0.1', 'localhost'],
        ...(until === undefined ? {} : { notAfter: until }),
      }),
    place: ({ certificate, key }) => {
      if (certificate !== undefined) writeFileSync(join(certificates, 'tls.crt'), certificate);
      if (key !== undefined) writeFileSync(join(certificates, 'tls.key'), key);
    },
    start: (port = 0, healthPort) => startWebhook(host, port, healthPort),
    callAt: async (port) => {
      const webhooks = configuration['webhooks'].map((hook: object) => ({
        ...hook,
        timeoutSeconds: 1,
        clientConfig: { url: `https://127.0.0.1:${port}/inject`, caBundle },
      }));
      await plane.apply({ ...configuration, webhooks });
    },
  };
  host.place(host.certificate('first'));
  return host;
}

function startWebhook(
  { certificates, user }: WebhookHost,
  port: number,
  healthPort: number | undefined,
): RunningWebhook {
  const args = [
    join(root, 'main.ts'),
    'webhook',
    '--cert-dir',
    certificates,
    '--port',
    String(port),
    '--health-port',
    healthPort === undefined ? 'off' : String(healthPort),
    '--kubeconfig',
    user.kubeconfig,
  ];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return {
    process: child,
    log: () => text,
    port: () =>
      eventually(() => {
        const match = /"webhook listens","port":(\d+)/.exec(text)?.[1];
        assert.ok(match, text);
        return Number(match);
      }),
    stop: async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}
