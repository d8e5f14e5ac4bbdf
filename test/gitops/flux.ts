/** A running kustomize-controller with its definitions, and a stand-in for the sources. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { Daemon } from '../control-plane/daemon.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { freePort } from '../support/loopback.ts';
import { meta } from '../support/meta.ts';
import { fluxDefinition, fluxProgram } from './build.ts';
import { SourceStandIn, sourceDefinitions } from './source.ts';

const NAMESPACE = 'flux-system';

interface Condition {
  readonly type: string;
  readonly status: string;
}

export class Flux {
  readonly #plane: ControlPlane;
  readonly #sources: SourceStandIn;
  readonly #controller: Daemon;

  private constructor(plane: ControlPlane, sources: SourceStandIn, controller: Daemon) {
    this.#plane = plane;
    this.#sources = sources;
    this.#controller = controller;
  }

  /** @param bare the repository that every source is taken for */
  static async start(plane: ControlPlane, bare: string): Promise<Flux> {
    await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
    const definitions = [parse(readFileSync(fluxDefinition(), 'utf8')) as TestObject, ...sourceDefinitions()];
    for (const definition of definitions) await plane.apply(definition);
    await eventually(async () => {
      for (const { metadata, spec } of definitions) {
        const { status } = await plane.client.request('GET', `/apis/${spec.group}/v1/${spec.names.plural}`);
        if (status !== 200) throw new Error(`${metadata.name} is not served: ${status}`);
      }
    });
    const sources = new SourceStandIn(plane, bare);
    await sources.start();
    const health = await freePort();
    const controller = new Daemon({
      name: 'kustomize-controller',
      folder: plane.folder,
      command: [
        '/usr/bin/env',
        `KUBECONFIG=${plane.kubeconfig}`,
        `RUNTIME_NAMESPACE=${NAMESPACE}`,
        await fluxProgram(),
        '--metrics-addr=127.0.0.1:0',
        `--health-addr=127.0.0.1:${health}`,
        '--log-encoding=json',
        // Retry interval of an overlay whose base is not ready; the default of 30 s only delays the tests.
        '--requeue-dependency=2s',
      ],
      ready: async () =>
        (await fetch(`http://127.0.0.1:${health}/readyz`).catch(() => undefined))?.ok === true,
    });
    await controller.start();
    return new Flux(plane, sources, controller);
  }

  /** A Secret with the kubeconfig of another cluster, as Flux wants it. */
  async kubeconfigSecret(name: string, file: string): Promise<void> {
    const data = { value: readFileSync(file).toString('base64') };
    await this.#plane.apply({ ...meta('v1 Secret', { name, namespace: NAMESPACE }), data });
  }

  /** `True`, `False` or `Unknown`: the condition `Ready` of a Kustomization. */
  async ready(name: string): Promise<string | undefined> {
    const conditions: readonly Condition[] = (await this.#status(name))?.conditions ?? [];
    return conditions.find(({ type }) => type === 'Ready')?.status;
  }

  /** Revision of the repository that a Kustomization has applied and found healthy. */
  async revision(name: string): Promise<string | undefined> {
    return (await this.#status(name))?.lastAppliedRevision;
  }

  /** Status of every Kustomization, and the end of the controller's log, for a failed test. */
  async report(): Promise<string> {
    const { stdout } = await this.#plane.kubectl(
      '-n',
      NAMESPACE,
      'get',
      'kustomization,gitrepository',
      '-o',
      'wide',
    );
    return `${stdout}\n${this.#controller.logTail().slice(-6000)}`;
  }

  async #status(name: string): Promise<TestObject['status']> {
    const apiVersion = 'kustomize.toolkit.fluxcd.io/v1';
    const metadata = { name, namespace: NAMESPACE };
    return (await this.#plane.get({ apiVersion, kind: 'Kustomization', metadata }))?.['status'];
  }

  async stop(): Promise<void> {
    await this.#controller.terminate();
    await this.#sources.stop();
  }
}
