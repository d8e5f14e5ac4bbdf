/** Shared by the benches on a real node: time from a pod's apply until it runs, and the table of rounds. */
import { eventually } from '../test/control-plane/eventually.ts';
import type { TestObject } from '../test/control-plane/resource-path.ts';
import { missingNode } from '../test/node/machine/build.ts';
import { machineFolder, runInside } from '../test/node/machine/namespaces.ts';
import { type NodeMachine, podOf } from '../test/node/machine/node.ts';
import { ms, printTable, type Row, ratio, type Spread, spread } from './measure.ts';

/** Measured rounds; one more comes before them. */
export const ROUNDS = 5;

/** Times of variants by name, and the pods that they are taken with. */
export class Journey {
  readonly node: NodeMachine;
  readonly #times = new Map<string, number[]>();
  #count = 0;

  constructor(node: NodeMachine) {
    this.node = node;
  }

  /** Forgets what was measured so far, as the first round warms up. */
  begin(): void {
    this.#times.clear();
  }

  async timed(name: string, work: () => Promise<unknown>): Promise<void> {
    const start = performance.now();
    await work();
    this.#times.set(name, [...(this.#times.get(name) ?? []), performance.now() - start]);
  }

  /** Applies a new pod that pulls `image`, and waits until the API server says that it runs. */
  async pod(namespace: string, image: string, secret?: string): Promise<void> {
    const spec = secret === undefined ? {} : { imagePullSecrets: [{ name: secret }] };
    const pod = podOf(`pod-${(this.#count += 1)}`, image, namespace, spec);
    // The account of a new namespace is not there at once.
    await eventually(() => this.apply(pod), { withinMs: 60_000 });
    await eventually(
      async () => {
        const seen = JSON.stringify((await this.node.plane.get(pod))?.['status'] ?? {});
        if (!seen.includes('"running"'))
          throw new Error(`${pod.metadata.name}: ${seen}\n${this.node.logs()}`);
      },
      { withinMs: 180_000 },
    );
  }

  async apply(object: TestObject): Promise<TestObject> {
    return this.node.plane.apply(object);
  }

  /** A row of the table: a variant beside that of a pod that had its Secret from the start. */
  row(journey: string, name: string, given: string): Row {
    const of = (one: string): Spread => spread(this.#times.get(one) ?? []);
    return {
      journey,
      'median ms': ms(of(name).median),
      'max ms': ms(of(name).max),
      'beside it, median ms': ms(of(given).median),
      ratio: ratio(of(name).median, of(given).median),
    };
  }
}

/** Runs a bench inside of a machine's namespaces, and prints its rows; says why where there can be no node. */
export async function onNode(
  file: string,
  title: string,
  work: () => Promise<readonly Row[]>,
): Promise<void> {
  const missing = missingNode();
  if (missing !== undefined) process.stdout.write(`\nNot run: ${missing}\n`);
  else if (machineFolder() === undefined) process.exitCode = await runInside(file);
  else printTable(`${title}, ${ROUNDS} rounds`, await work());
}
