// deadline: 240 s
// needs: systemd, control plane
/**
 * The compiled installer, killed at random instants: while it copies the executable, writes, restarts, rolls back or uninstalls.
 * After each kill the files are complete and the drop-in names existing files; after the next run the kubelet runs with the
 * desired entries, or with the last good ones when it does not start with those.
 *
 * `PULLWRIGHT_CHAOS=100` sets the number of kills, `PULLWRIGHT_SEED` repeats a run.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'yaml';
import { isOwnDropIn, NEUTRAL } from '../../runtime/credential-provider/installer/plan.ts';
import { digestOf as fileDigest } from '../../runtime/credential-provider/installer/source.ts';
import { counted } from '../support/counted.ts';
import { runProcess } from '../support/process.ts';
import { randomFrom } from '../support/random.ts';
import { test } from '../support/suite.ts';
import { digestOf, entriesOf, until } from '../support/systemd.ts';
import {
  GOOD_VERSIONS,
  InstallerCluster,
  type InstallerNode,
  installerScene,
} from './support/installer-scene.ts';

const KILLS = Number(process.env['PULLWRIGHT_CHAOS'] ?? 8);
const SEED = Number(process.env['PULLWRIGHT_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const FLAGS = ['--settle=50ms', '--once'];

/** Entries in the file that the drop-in names; none when it has no effect. Fails on an incomplete file. */
function entriesOnDisk(node: InstallerNode, programDigest: string): readonly string[] {
  for (const name of node.configs) {
    const text = readFileSync(join(node.folder, name), 'utf8');
    assert.equal(name, `pullwright-${digestOf(text).slice(0, 16)}.yaml`, 'a file of ours is not whole');
  }
  if (!existsSync(node.dropIn)) return [];
  const dropIn = readFileSync(node.dropIn, 'utf8');
  assert.ok(isOwnDropIn(dropIn), `the drop-in is not whole: ${dropIn}`);
  if (dropIn === NEUTRAL) return [];
  const [, path = ''] = /--image-credential-provider-config=([^\s"]+)/.exec(dropIn) ?? [];
  assert.ok(dropIn.endsWith(`${path}"\n`), 'the drop-in is not whole');
  assert.equal(fileDigest(node.plugin), programDigest, 'the executable that the kubelet calls is not whole');
  assert.equal(statSync(node.plugin).mode & 0o777, 0o755);
  const { providers } = parse(readFileSync(path, 'utf8')) as { providers: { matchImages: string[] }[] };
  return providers[0]?.matchImages ?? [];
}

/** The entries that the running kubelet was started with. */
function entriesInUse(node: InstallerNode): string {
  const [, path] = /--image-credential-provider-config=(\S+)/.exec(node.starts().at(-1) ?? '') ?? [];
  if (path === undefined) return '';
  const { providers } = parse(readFileSync(path, 'utf8')) as { providers: { matchImages: string[] }[] };
  return (providers[0]?.matchImages ?? []).join();
}

/** One kill, and the run after it. */
class Kill {
  readonly #node: InstallerNode;
  readonly #program: string;
  readonly #flags: readonly string[];
  readonly #context: string;
  /** Desired entry of the killed run; empty: uninstall. */
  readonly wanted: string;
  readonly poison: boolean;

  constructor(
    node: InstallerNode,
    program: string,
    { at, kind }: { readonly at: number; readonly kind: number },
  ) {
    this.#node = node;
    this.#program = program;
    this.poison = kind < 0.15;
    const away = !this.poison && kind < 0.3;
    this.wanted = away ? '' : this.poison ? `poison-${at}.example.com` : `registry-${at}.example.com`;
    this.#flags = away ? [...FLAGS, '--uninstall'] : FLAGS;
    this.#context = `kill ${at} of seed ${SEED} (${away ? 'uninstall' : this.wanted})`;
  }

  /** Whether the killed run had written the drop-in. */
  async happen(
    { share, aimed }: { readonly share: number; readonly aimed: boolean },
    good: string,
  ): Promise<boolean> {
    const agent = this.#node.run(this.#flags);
    if (aimed) await until('the file is written', () => agent.events('written').length > 0);
    await delay(share * (this.poison ? 4500 : aimed ? 130 : 700));
    await agent.kill();
    // An executable that the test took away may be missing until the next run.
    if (existsSync(this.#node.plugin)) {
      const present = entriesOnDisk(this.#node, this.#program).join();
      assert.ok(
        [good, this.wanted].includes(present),
        `${this.#context}: "${present}" is neither old nor new`,
      );
    }
    return agent.events('written').length > 0;
  }

  async finish(good: string): Promise<void> {
    const node = this.#node;
    const { env } = node;
    const ran = await runProcess(node.command(this.#flags), { deadlineMs: 60_000, env });
    const context = `${this.#context}:\n${ran.stderr}`;
    assert.equal(ran.code, this.poison ? 1 : 0, context);
    assert.equal(entriesOnDisk(node, this.#program).join(), good, context);
    assert.equal(node.machine.activeState(), 'active', context);
    assert.equal(entriesInUse(node), good, context);
    const left = [...entriesOf(join(node.units, 'kubelet.service.d')), ...entriesOf(node.folder)];
    assert.ok(!left.some((name) => name.includes('.tmp-')), context + left.join());
    if (this.wanted === '') assert.deepEqual([existsSync(node.plugin), node.configs], [false, []], context);
  }
}

const cluster = await InstallerCluster.start();
const program = fileDigest(cluster.program);
installerScene({ test, cluster }, `${KILLS} kills, seed ${SEED}`, GOOD_VERSIONS, async (node) => {
  process.stdout.write(`kills: ${KILLS}, seed: ${SEED}\n`);
  const roll = randomFrom(SEED);
  let good = '';
  const count = { before: 0, after: 0, aimed: 0 };
  for (let at = 0; at < KILLS; at += 1) {
    // The first one installs.
    const kill = new Kill(node, program, { at, kind: at === 0 ? 1 : roll() });
    const aimed = at % 2 === 0 && !kill.poison && kill.wanted !== '';
    if (kill.wanted !== '') await cluster.entries(kill.wanted);
    // Otherwise the copy would be skipped, and no kill would interrupt it.
    if (roll() < 0.3) rmSync(node.plugin, { force: true });
    // The second kill precedes any write.
    const share = at === 1 ? 0 : roll();
    if (await kill.happen({ share, aimed }, good)) count.after += 1;
    else count.before += 1;
    count.aimed += Number(aimed);
    if (!kill.poison) good = kill.wanted;
    await kill.finish(good);
  }
  counted(
    { 'before the write': count.before, 'after it': count.after },
    { 'before the write': 1, 'after it': count.aimed },
  );
});
test.lastly('the control plane stops', () => cluster.plane.stop());
