/**
 * A stand-in for the kubelet: takes pods from the API server and runs their containers as processes. A container gets what the spec of
 * its pod asks for and nothing else: its environment, its mounts at their own paths, tokens by the API server's TokenRequest, an
 * unprivileged user, a root that cannot be written. The end is reported as a kubelet does, with exit code and termination message.
 */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { runProcess } from '../support/process.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { containerCommand, NODE, type Program, programOf } from './container.ts';
import { NotMounted, type Volume, VolumeWriter } from './pod-volumes.ts';

interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

interface Container {
  readonly name: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly securityContext?: { readonly readOnlyRootFilesystem?: boolean };
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
}

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: {
    readonly serviceAccountName: string;
    readonly containers: readonly Container[];
    readonly volumes?: readonly Volume[];
  };
  readonly status?: { readonly phase?: string };
}

/** One container that has ended. */
export interface ContainerRun {
  readonly pod: string;
  readonly container: string;
  readonly code: number;
  readonly env: Readonly<Record<string, string>>;
  /** Mount paths of the pod's ServiceAccount token. */
  readonly tokens: readonly string[];
}

interface Ended {
  readonly code: number;
  readonly message: string;
  readonly startedAt: string;
}

export class Kubelet {
  readonly #plane: ControlPlane;
  readonly #namespace: string;
  readonly #program: Program;
  readonly #taken = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  #stopped = false;
  readonly #loop: Promise<void>;
  /** Everything that containers printed. */
  output = '';
  readonly runs: ContainerRun[] = [];

  /** @param program runs `pullwright`, as the image does; default: the sources by Node */
  constructor(plane: ControlPlane, namespace: string, program: Program = programOf(NODE)) {
    this.#plane = plane;
    this.#program = program;
    this.#namespace = namespace;
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
    const folder = tempFolder();
    try {
      const volumes = await this.#mounted(pod, folder);
      if (volumes === undefined) return;
      const ended = await Promise.all(
        pod.spec.containers.map(
          async (container) => [container, await this.#start(pod, container, { folder, volumes })] as const,
        ),
      );
      await this.#report(pod, ended);
    } finally {
      // Here and not at the end of the process: it holds mounted secrets.
      rmSync(folder, { recursive: true, force: true });
    }
  }

  /** Tries until everything is there that the pod mounts; undefined: the pod has gone before. */
  async #mounted(pod: Pod, folder: string): Promise<VolumeWriter | undefined> {
    const volumes = new VolumeWriter(this.#plane, this.#namespace, pod);
    for (;;) {
      try {
        for (const volume of pod.spec.volumes ?? []) await volumes.write(volume, join(folder, volume.name));
        return volumes;
      } catch (error) {
        if (!(error instanceof NotMounted)) throw error;
        const path = `/api/v1/namespaces/${this.#namespace}/pods/${pod.metadata.name}`;
        const { status, body } = await this.#plane.client.request('GET', path);
        if (this.#stopped || status === 404 || body.metadata.uid !== pod.metadata.uid) return undefined;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async #start(
    pod: Pod,
    container: Container,
    { folder, volumes }: { readonly folder: string; readonly volumes: VolumeWriter },
  ): Promise<Ended> {
    const startedAt = seconds();
    const env: Record<string, string> = {};
    for (const variable of container.env ?? []) env[variable.name] = await this.#value(variable, volumes);
    const log = join(folder, `${container.name}.termination-log`);
    writeFileSync(log, '');
    // For whatever user the container has.
    chmodSync(log, 0o666);
    const root = join(folder, `${container.name}.root`);
    mkdirSync(root);
    const { volumeMounts = [], command, args = [] } = container;
    const ran = await runProcess(
      containerCommand({
        root,
        program: this.#program,
        command,
        args,
        log,
        readOnlyRoot: container.securityContext?.readOnlyRootFilesystem === true,
        mounts: volumeMounts.map((mount) => ({ ...mount, source: join(folder, mount.name) })),
      }),
      { env: { ...this.#always(pod), ...env } },
    );
    this.output += ran.stdout + ran.stderr;
    const tokens = volumeMounts.filter(({ name }) => volumes.tokens.has(name)).map((one) => one.mountPath);
    this.runs.push({ pod: pod.metadata.name, container: container.name, code: ran.code, env, tokens });
    return { code: ran.code, message: readFileSync(log, 'utf8').slice(0, 4096), startedAt };
  }

  /** Environment of every container, regardless of its spec. */
  #always(pod: Pod): Readonly<Record<string, string>> {
    const { hostname, port } = new URL(this.#plane.server);
    return {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/',
      HOSTNAME: pod.metadata.name,
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
    };
  }

  async #report(pod: Pod, ended: readonly (readonly [Container, Ended])[]): Promise<void> {
    const containerStatuses = ended.map(([{ name }, { code, message, startedAt }]) => ({
      name,
      ready: false,
      restartCount: 0,
      image: 'x',
      imageID: 'x',
      state: {
        terminated: {
          exitCode: code,
          reason: code === 0 ? 'Completed' : 'Error',
          message,
          startedAt,
          finishedAt: seconds(),
        },
      },
    }));
    const phase = ended.every(([, { code }]) => code === 0) ? 'Succeeded' : 'Failed';
    const path = `/api/v1/namespaces/${this.#namespace}/pods/${pod.metadata.name}/status`;
    const status = { phase, containerStatuses };
    await this.#plane.client.request('PATCH', path, { status }, 'application/strategic-merge-patch+json');
  }

  async #value({ value = '', valueFrom }: EnvVar, volumes: VolumeWriter): Promise<string> {
    const reference = valueFrom?.secretKeyRef;
    if (reference === undefined) return value;
    const found = (await volumes.secret(reference.name))[reference.key];
    return found === undefined ? '' : found.toString();
  }
}

function seconds(): string {
  return new Date().toISOString().replace(/\.\d+/, '');
}
