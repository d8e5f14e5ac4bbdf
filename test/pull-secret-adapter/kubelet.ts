/**
 * A stand-in for the kubelet: takes pods from the API server and runs their container as a process, with the environment and the
 * mounts that the Pod spec names; reports the end as a kubelet does, with exit code and termination message.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { runProcess } from '../support/process.ts';

interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: {
    readonly serviceAccountName: string;
    readonly containers: readonly {
      readonly name: string;
      readonly args: readonly string[];
      readonly env: readonly EnvVar[];
      readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
    }[];
    readonly volumes: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[];
  };
  readonly status?: { readonly phase?: string };
}

const NODE: readonly string[] = [process.execPath, new URL('../../main.ts', import.meta.url).pathname];

export class Kubelet {
  readonly #plane: ControlPlane;
  readonly #namespace: string;
  readonly #extra: Readonly<Record<string, string>>;
  readonly #program: readonly string[];
  readonly #taken = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  #stopped = false;
  readonly #loop: Promise<void>;
  /** Everything that containers printed. */
  output = '';
  /** Environment variables that held a secret's value, and arguments: must stay empty with `passAs: file`. */
  readonly runs: {
    readonly pod: string;
    readonly code: number;
    readonly env: Readonly<Record<string, string>>;
  }[] = [];

  /** @param program runs `pullwright`; default: the sources by Node */
  constructor(
    plane: ControlPlane,
    namespace: string,
    extra: Readonly<Record<string, string>>,
    program: readonly string[] = NODE,
  ) {
    this.#plane = plane;
    this.#program = program;
    this.#namespace = namespace;
    this.#extra = extra;
    this.#loop = this.#work();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
    await Promise.allSettled(this.#running);
  }

  async #work(): Promise<void> {
    while (!this.#stopped) {
      const { body } = await this.#plane.client.request('GET', `/api/v1/namespaces/${this.#namespace}/pods`);
      for (const pod of (body as { items?: Pod[] }).items ?? []) {
        if (this.#taken.has(pod.metadata.uid) || pod.metadata.deletionTimestamp !== undefined) continue;
        this.#taken.add(pod.metadata.uid);
        const run = this.#run(pod).finally(() => this.#running.delete(run));
        this.#running.add(run);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async #run(pod: Pod): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'pullwright-pod-'));
    const container = pod.spec.containers[0];
    if (container === undefined) return;
    const startedAt = new Date().toISOString().replace(/\.\d+/, '');
    const mounts = new Map<string, string>();
    for (const mount of container.volumeMounts) {
      const at = join(folder, mount.name);
      mkdirSync(at, { recursive: true });
      mounts.set(mount.mountPath, at);
      const secret = pod.spec.volumes.find((volume) => volume.name === mount.name)?.secret;
      if (secret !== undefined)
        for (const [key, value] of Object.entries(await this.#secret(secret.secretName)))
          writeFileSync(join(at, key), value);
    }
    const env: Record<string, string> = {};
    for (const variable of container.env) env[variable.name] = await this.#value(variable, mounts);
    const log = join(folder, 'termination-log');
    const kubeconfig = await this.#plane.account(this.#namespace, pod.spec.serviceAccountName);
    const ran = await runProcess([...this.#program, ...container.args], {
      env: {
        PATH: process.env['PATH'],
        HOME: folder,
        KUBECONFIG: kubeconfig,
        TERMINATION_LOG: log,
        ...this.#extra,
        ...env,
      },
    });
    this.output += ran.stdout + ran.stderr;
    this.runs.push({ pod: pod.metadata.name, code: ran.code, env });
    const message = existsSync(log) ? readFileSync(log, 'utf8') : '';
    const terminated = {
      exitCode: ran.code,
      reason: ran.code === 0 ? 'Completed' : 'Error',
      message,
      startedAt,
      finishedAt: new Date().toISOString().replace(/\.\d+/, ''),
    };
    const status = {
      phase: ran.code === 0 ? 'Succeeded' : 'Failed',
      containerStatuses: [
        {
          name: container.name,
          ready: false,
          restartCount: 0,
          image: 'x',
          imageID: 'x',
          state: { terminated },
        },
      ],
    };
    const path = `/api/v1/namespaces/${this.#namespace}/pods/${pod.metadata.name}/status`;
    await this.#plane.client.request('PATCH', path, { status }, 'application/strategic-merge-patch+json');
    rmSync(folder, { recursive: true, force: true });
  }

  async #value(variable: EnvVar, mounts: ReadonlyMap<string, string>): Promise<string> {
    const reference = variable.valueFrom?.secretKeyRef;
    if (reference !== undefined) return (await this.#secret(reference.name))[reference.key] ?? '';
    const value = variable.value ?? '';
    // The process has no mount namespace of its own: paths below a mount are where the volume really is.
    for (const [path, at] of mounts) if (value.startsWith(`${path}/`)) return value.replace(path, at);
    return value;
  }

  async #secret(name: string): Promise<Record<string, string>> {
    const { body } = await this.#plane.client.request(
      'GET',
      `/api/v1/namespaces/${this.#namespace}/secrets/${name}`,
    );
    const data = (body as { data?: Record<string, string> }).data ?? {};
    return Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
    );
  }
}
