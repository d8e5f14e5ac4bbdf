/** A node of kubeadm to which Flux delivers a fleet from git, and what its tests look at. */

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../control-plane/eventually.ts';
import { Flux } from '../gitops/flux.ts';
import { Repository } from '../gitops/repository.ts';
import { grantObject } from '../pull-secret-injection/live.ts';
import { plantedPassword } from '../support/canary.ts';
import { docBlock } from '../support/doc-blocks.ts';
import { executable } from '../support/executable.ts';
import { NodeMachine, podOf } from './machine/node.ts';
import { grantImage, IMAGE, ok, pullSecretOf, pushProduct, shell } from './machine/product.ts';
import type { TestRegistry } from './machine/registries.ts';

const PAGE = 'docs/gitops.md';
/** A registry of a tenant of the nodes, and one of a team of namespaces. */
const TENANT = 'quay.example.com';
const TEAM = 'team.example.com';
/** Whose credential a pod pulls with. */
export type Owner = 'tenant' | 'team';
const NAMESPACE: Readonly<Record<Owner, string>> = { tenant: 'default', team: 'team-a' };

interface Row {
  readonly state: string;
  readonly object: string;
  readonly reason: string;
  readonly message: string;
}

export class GitOpsScene {
  readonly node: NodeMachine;
  readonly flux: Flux;
  readonly repository: Repository;
  readonly #images: Readonly<Record<Owner, string>>;

  private constructor(node: NodeMachine, flux: Flux, repository: Repository) {
    this.node = node;
    this.flux = flux;
    this.repository = repository;
    this.#images = { tenant: node.image(TENANT, 'acme/web', '1'), team: node.image(TEAM, 'team/web', '1') };
  }

  /** A node with our image in a registry that wants a password, Flux, and a repository without a commit. */
  static async start(): Promise<GitOpsScene> {
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
   * The page's fleet, with a password for our image, but for the cluster that is elsewhere and for what looks once an hour, whose
   * minute may be any of a journey.
   */
  fleet(): string {
    const [prod = ''] = docBlock(PAGE, 'Flux', 'yaml').split(/^ {2}- name: lab$/m);
    const here = prod.replace('      verify: {}\n', '');
    return here.replace(`image: ${IMAGE}\n`, (line) => `${line}imagePullSecrets: [pullwright-registry]\n`);
  }

  /** Runs a block of a page, for the one cluster that is here. */
  async run(heading: string, page: string = PAGE): Promise<string> {
    const block = docBlock(page, heading, 'sh').replaceAll(' pullwright-lab', '');
    const ran = await this.repository.shell(block);
    if (ran.code !== 0) assert.fail(`${block}\n${ran.stdout}\n${ran.stderr}\n${await this.said()}`);
    return ran.stdout;
  }

  /** Commits what the rendered tree is, and asks Flux to look, without waiting for what becomes of it. */
  async push(): Promise<void> {
    const [, ...lines] = docBlock(PAGE, 'Flux: change', 'sh').split('\n');
    const block = lines.join('\n').split('\nkubectl -n flux-system wait')[0] ?? '';
    const { code, stderr } = await this.repository.shell(block);
    assert.equal(code, 0, stderr);
  }

  registry(owner: Owner): TestRegistry {
    return this.node.registry(owner === 'tenant' ? TENANT : TEAM);
  }

  /** The owner's Secret, where each has it. */
  async secret(owner: Owner, password?: string): Promise<void> {
    const [namespace, name] =
      owner === 'tenant' ? ['kube-system', 'additional-pull-secret'] : ['platform', 'quay-robot'];
    const { plane } = this.node;
    await plane.apply(pullSecretOf(namespace, name, this.registry(owner).config(undefined, password)));
    if (owner !== 'tenant') await plane.apply(grantObject(namespace, [name]));
  }

  /** The registry takes another password from now on: which one. */
  async newPassword(owner: Owner): Promise<string> {
    const next = plantedPassword(`${owner}-rotated`);
    const registry = this.registry(owner);
    await registry.stop();
    registry.setPassword(next);
    await registry.start();
    return next;
  }

  async make(owner: Owner, name: string): Promise<void> {
    // The account of a new namespace may not be there at once.
    await this.within(() => this.node.plane.apply(podOf(name, this.#images[owner], NAMESPACE[owner])));
  }

  async pod(owner: Owner, name: string): Promise<string> {
    const found = await this.node.plane.get(podOf(name, this.#images[owner], NAMESPACE[owner]));
    return JSON.stringify(found?.['status'] ?? {});
  }

  waits(owner: Owner, name: string): Promise<void> {
    return this.within(async () =>
      assert.match(await this.pod(owner, name), /ErrImagePull|ImagePullBackOff/),
    );
  }

  runs(owner: Owner, name: string): Promise<void> {
    return this.within(async () => {
      const status = await this.pod(owner, name);
      if (!status.includes('"running"')) assert.fail(`${status}\n${await this.said()}`);
    });
  }

  /** A new pod gets its image the first time that it asks. */
  async pullsAtOnce(owner: Owner, name: string): Promise<void> {
    await this.make(owner, name);
    await this.runs(owner, name);
    const of = `-n ${NAMESPACE[owner]} --field-selector involvedObject.name=${name}`;
    const events = await ok(this.node, `kubectl get events ${of} -o custom-columns=R:.reason,M:.message`);
    assert.match(events, /^Pulled /m);
    assert.doesNotMatch(events, /^(Failed|BackOff) /m);
  }

  /** What `doctor` says of a pod: the first link that is broken and why, or that none is. */
  doctorSays(owner: Owner, name: string, wanted: RegExp | undefined): Promise<void> {
    return this.within(async () => {
      const asked = `pullwright doctor pod/${name} -n ${NAMESPACE[owner]}`;
      const { code, stdout } = await shell(this.node, asked);
      const [broken] = /^ {2}broken +.*$/m.exec(stdout) ?? [];
      assert.equal(code, wanted === undefined ? 0 : 1, stdout);
      if (wanted === undefined) assert.equal(broken, undefined, stdout);
      else assert.match(broken ?? '', wanted, stdout);
    });
  }

  /** Nothing wants attention, and every node has what was decided. */
  inOrder(): Promise<void> {
    return this.within(async () => {
      const { code, stdout } = await shell(this.node, 'pullwright status');
      if (code !== 0) assert.fail(`${stdout}\n${await this.said()}`);
    });
  }

  /** While `body` goes on, `status` never asks a person for attention. */
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

  /** Everything that a person may want when a step fails. */
  async said(): Promise<string> {
    const lines =
      'pullwright status || true; kubectl get pods -A -o wide; kubectl get events -A | grep -v Normal | tail -20';
    const { stdout } = await shell(this.node, lines);
    return `${stdout.slice(-6000)}\n${await this.flux.report()}`;
  }

  within<T>(check: () => Promise<T>): Promise<T> {
    return eventually(check, { withinMs: 120_000, everyMs: 250 });
  }

  async stop(): Promise<void> {
    await this.flux.stop();
    await this.node.stop();
  }

  async #attention(over: AbortSignal): Promise<readonly string[]> {
    const found = new Set<string>();
    let [looks, silent] = [0, 0];
    while (!over.aborted || looks === 0) {
      const { stdout, stderr } = await shell(this.node, 'pullwright status --output json || true');
      await delay(500);
      // An API server that does not answer for a moment says nothing of nodes.
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
