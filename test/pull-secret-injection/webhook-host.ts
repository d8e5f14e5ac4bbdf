/** The webhook as a process of its own, with the rights that the charts render, and certificates that a test places. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { webhookObjects } from '../../charts/pull-secret-injection/webhook.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import type { User } from '../control-plane/users.ts';
import { Authority } from '../control-plane/x509.ts';
import { NODE } from '../reconcile/process.ts';
import { RunningProgram } from '../support/running-program.ts';

/** A pair in PEM, or half of one. */
export interface Pair {
  readonly certificate?: string;
  readonly key?: string;
}

export class RunningWebhook extends RunningProgram {
  /** The port, once it listens. */
  port(): Promise<number> {
    return eventually(() => {
      const match = /"webhook listens","port":(\d+)/.exec(this.log)?.[1];
      assert.ok(match, this.log);
      return Number(match);
    });
  }
}

export interface WebhookHost {
  /** Folder of `tls.crt` and `tls.key`. */
  readonly certificates: string;
  readonly user: User;
  /** @param until when it ends @default {in ten years} */
  certificate(name: string, until?: Date): Required<Pair>;
  place(pair: Pair): void;
  start(port?: number, healthPort?: number | 'off'): RunningWebhook;
  /** Has the API server call the webhook at this port. */
  callAt(port: number): Promise<void>;
}

export async function webhookHost(plane: ControlPlane): Promise<WebhookHost> {
  const authority = new Authority('webhook');
  const certificates = join(plane.folder, 'tls');
  mkdirSync(certificates);
  const caBundle = Buffer.from(authority.certificate).toString('base64');
  // Exactly the rights that the charts grant.
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
    start: (port = 0, healthPort = 'off') =>
      new RunningWebhook([
        ...NODE,
        'webhook',
        `--cert-dir=${certificates}`,
        `--port=${port}`,
        `--health-port=${healthPort}`,
        `--kubeconfig=${user.kubeconfig}`,
      ]),
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
