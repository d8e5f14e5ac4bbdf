/** User actions and observations on a machine: fleets, pods, output of commands. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import { eventually } from '../../control-plane/eventually.ts';
import type { TestObject } from '../../control-plane/resource-path.ts';
import { plantedPassword } from '../../support/canary.ts';
import type { ProcessResult } from '../../support/process.ts';
import { NodeMachine, type NodeOptions } from './node.ts';
import { ok, shell, workFolder } from './product.ts';
import { changes, clusterObjects, nodeFiles } from './snapshot.ts';

/** A pod that runs, and one whose image cannot be pulled. */
export const RUNS: RegExp = /"running"/;
export const WAITS: RegExp = /ErrImagePull|ImagePullBackOff/;

export interface Changed {
  readonly files: readonly string[];
  readonly objects: readonly string[];
}

export class Journey {
  readonly node: NodeMachine;
  readonly plane: ControlPlane;

  constructor(node: NodeMachine) {
    this.node = node;
    this.plane = node.plane;
  }

  static async start(options: NodeOptions = {}): Promise<Journey> {
    return new Journey(await NodeMachine.start(options));
  }

  /** Retries until it does not throw; a failure shows the state of the machine. */
  readonly within = async <T>(check: () => Promise<T> | T, withinMs = 180_000): Promise<T> => {
    try {
      return await eventually(check, { withinMs, everyMs: 250 });
    } catch (error) {
      if (error instanceof Error) error.message += `\n${await this.said()}\n${this.node.logs()}`;
      throw error;
    }
  };

  readonly ok = (lines: string): Promise<string> => ok(this.node, lines);
  readonly shell = (lines: string): Promise<ProcessResult> => shell(this.node, lines);

  /** A file in the folder in which commands run. */
  readonly write = (name: string, text: string): void =>
    writeFileSync(join(workFolder(this.node), name), text);

  /** Checks, renders and applies the fleet by the documented commands. */
  readonly deliver = async (fleet: string, cluster = 'prod'): Promise<void> => {
    this.write('fleet.yaml', fleet);
    await this.ok(
      `pullwright validate fleet.yaml
       rm -rf manifests
       pullwright synth --fleet fleet.yaml --to manifests
       kubectl apply --server-side -k manifests/${cluster}`,
    );
  };

  readonly state = async (object: TestObject): Promise<string> =>
    JSON.stringify((await this.plane.get(object))?.['status'] ?? {});

  readonly becomes = (object: TestObject, wanted: RegExp, withinMs?: number): Promise<void> =>
    this.within(async () => assert.match(await this.state(object), wanted), withinMs);

  /** Creates the pod and waits for the state. */
  readonly make = async (pod: TestObject, wanted: RegExp = RUNS, withinMs?: number): Promise<void> => {
    // The ServiceAccount of a new namespace may be missing at first.
    await this.within(() => this.plane.apply(pod));
    await this.becomes(pod, wanted, withinMs);
  };

  /** Expects that nothing needs attention, and that every node is in sync. */
  readonly inOrder = (): Promise<void> => this.within(async () => void (await this.ok('pullwright status')));

  readonly wantsAttention = (wanted: RegExp): Promise<void> =>
    this.within(async () => {
      const { code, stdout } = await this.shell('pullwright status');
      assert.equal(code, 1, stdout);
      assert.match(stdout, wanted);
    });

  /** Output of `doctor` for a pod once it reports exactly these broken links. */
  readonly doctor = ({ metadata }: TestObject, broken: RegExp | undefined): Promise<string> =>
    this.within(async () => {
      const asked = `pullwright doctor pod/${metadata.name} -n ${metadata.namespace}`;
      const { code, stdout } = await this.shell(asked);
      const found = (stdout.match(/^ {2}broken +.*$/gm) ?? []).join('\n');
      assert.equal(code, broken === undefined ? 0 : 1, stdout);
      assert.match(found, broken ?? /^$/, stdout);
      return stdout;
    });

  /** Changes the password of the registry; returns the docker config with it. */
  readonly rotate = async (host: string, mark: string): Promise<string> => {
    const registry = this.node.registry(host);
    const next = plantedPassword(mark);
    await registry.stop();
    registry.setPassword(next);
    await registry.start();
    return registry.config(undefined, next);
  };

  /** Takes a snapshot of node and cluster; returns a function that lists the changes since. */
  readonly snapshot = async (): Promise<() => Promise<Changed>> => {
    const [files, objects] = [nodeFiles(this.node), await clusterObjects(this.node)];
    return async () => ({
      files: changes(files, nodeFiles(this.node)),
      objects: changes(objects, await clusterObjects(this.node)),
    });
  };

  readonly said = async (): Promise<string> => {
    const { stdout } = await this.shell(
      `pullwright status || true
       kubectl get nodes,pods -A -o wide || true
       (kubectl get events -A | grep -v Normal | tail -20) || true
       tail -n 12 /var/log/pods/*/*/*.log || true`,
    );
    return stdout.slice(-6000);
  };

  readonly stop = (): Promise<void> => this.node.stop();
}

/** Waits for the policy: a pod created before the API server has loaded a profile's policy never gets the name. */
export async function injects({ within, ok }: Journey, profile: string): Promise<void> {
  const condition = `jsonpath={.status.conditions[?(@.type=="Injecting")].status}`;
  await within(async () =>
    assert.equal(await ok(`kubectl get pullsecretprofile ${profile} -o '${condition}'`), 'True'),
  );
}
