/** A node of kubeadm to which Flux delivers a fleet from git, and accessors for its tests. */

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestObject } from '../control-plane/resource-path.ts';
import { Flux } from '../gitops/flux.ts';
import { Repository } from '../gitops/repository.ts';
import { grantObject } from '../pull-secret-injection/live.ts';
import { docBlock } from '../support/doc-blocks.ts';
import { executable } from '../support/executable.ts';
import { Journey } from './machine/journey.ts';
import { NodeMachine, podOf } from './machine/node.ts';
import { grantImage, IMAGE, ok, pullSecretOf, pushProduct } from './machine/product.ts';

const PAGE = 'docs/gitops.md';
/** A registry of a tenant of the nodes, and one of a team of namespaces. */
const TENANT = 'quay.example.com';
const TEAM = 'team.example.com';
/** Owner of the credential of a pod's pull. */
export type Owner = 'tenant' | 'team';
const HOSTS: Readonly<Record<Owner, string>> = { tenant: TENANT, team: TEAM };
const NAMESPACE: Readonly<Record<Owner, string>> = { tenant: 'default', team: 'team-a' };

interface Row {
  readonly state: string;
  readonly object: string;
  readonly reason: string;
  readonly message: string;
}

export class GitOpsScene extends Journey {
  readonly flux: Flux;
  readonly repository: Repository;
  readonly #images: Readonly<Record<Owner, string>>;

  private constructor(node: NodeMachine, flux: Flux, repository: Repository) {
    super(node);
    this.flux = flux;
    this.repository = repository;
    this.#images = { tenant: node.image(TENANT, 'acme/web', '1'), team: node.image(TEAM, 'team/web', '1') };
  }

  /** A node with our image in a registry with a password, Flux, and an empty repository. */
  static override async start(): Promise<GitOpsScene> {
    const node = await NodeMachine.start({ registries: { [TENANT]: 'tenant', [TEAM]: 'robot' } });
    await pushProduct(node);
    await grantImage(node);
    await ok(node, `kubectl create namespace platform; kubectl create namespace ${NAMESPACE.team}`);
    const folder = join(node.folder, 'user');
    mkdirSync(folder);
    const repository = await Repository.create(folder, node.plane.kubeconfig, await executable());
    return new GitOpsScene(node, await Flux.start(node.plane, repository.bare), repository);
  }

  /**
   * The page's fleet with a password for our image, without the other cluster, and without hourly checks, which may run at any
   * time of the test.
   */
  fleet(): string {
    const [prod = ''] = docBlock(PAGE, 'Flux', 'yaml').split(/^ {2}- name: lab$/m);
    const here = prod.replace('      verify: {}\n', '');
    return here.replace(`image: ${IMAGE}\n`, (line) => `${line}imagePullSecrets: [pullwright-registry]\n`);
  }

  /** Runs a block of a page for the only cluster. */
  async run(heading: string, page: string = PAGE): Promise<string> {
    const block = docBlock(page, heading, 'sh').replaceAll(' pullwright-lab', '');
    const ran = await this.repository.shell(block);
    if (ran.code !== 0)
      assert.fail(
        `${block}\n${ran.stdout}\n${ran.stderr}\n${await this.said()}\n${await this.flux.report()}`,
      );
    return ran.stdout;
  }

  /** Changes the password of the owner's registry; returns the docker config with it. */
  newPassword(owner: Owner): Promise<string> {
    return this.rotate(HOSTS[owner], `${owner}-rotated`);
  }

  /** The owner's Secret, in its namespace. */
  async secret(owner: Owner, config = this.node.registry(HOSTS[owner]).config()): Promise<void> {
    const [namespace, name] =
      owner === 'tenant' ? ['kube-system', 'additional-pull-secret'] : ['platform', 'quay-robot'];
    await this.plane.apply(pullSecretOf(namespace, name, config));
    if (owner !== 'tenant') await this.plane.apply(grantObject(namespace, [name]));
  }

  pod(owner: Owner, name: string): TestObject {
    return podOf(name, this.#images[owner], NAMESPACE[owner]);
  }

  /** Expects that a new pod pulls at its first attempt. */
  async pullsAtOnce(owner: Owner, name: string): Promise<void> {
    await this.make(this.pod(owner, name));
    const of = `-n ${NAMESPACE[owner]} --field-selector involvedObject.name=${name}`;
    const events = await this.ok(`kubectl get events ${of} -o custom-columns=R:.reason,M:.message`);
    assert.match(events, /^Pulled /m);
    assert.doesNotMatch(events, /^(Failed|BackOff) /m);
  }

  /** Expects that `status` reports nothing that needs attention while `body` runs. */
  async quietly(body: () => Promise<void>): Promise<void> {
    const over = new AbortController();
    const watch = this.#attention(over.signal);
    try {
      await body();
    } finally {
      over.abort();
    }
    assert.deepEqual(await watch, []);
  }

  async end(): Promise<void> {
    await this.flux.stop();
    await this.stop();
  }

  async #attention(over: AbortSignal): Promise<readonly string[]> {
    const found = new Set<string>();
    let [looks, silent] = [0, 0];
    while (!over.aborted || looks === 0) {
      const { stdout, stderr } = await this.shell('pullwright status --output json || true');
      await delay(500);
      // A short outage of the API server is not a problem of nodes.
      silent = stdout === '' ? silent + 1 : 0;
      if (silent === 10) return [...found, `status printed nothing ten times in a row: ${stderr}`];
      if (stdout === '') continue;
      looks += 1;
      for (const { state, object, reason, message } of JSON.parse(stdout) as readonly Row[])
        if (state === 'Attention') found.add(`${object} ${reason}: ${message}`);
    }
    return [...found];
  }
}
