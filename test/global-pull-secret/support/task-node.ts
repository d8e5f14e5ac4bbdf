/** A node as the task of the agent sees it: two mounts, one file, a record of its entries, and a fixed clock. */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reveal } from '../../../runtime/core/redacted.ts';
import { type AgentTaskOptions, agentTask } from '../../../runtime/global-pull-secret/agent/task.ts';
import { readWhole } from '../../../runtime/node/atomic-file.ts';
import type { Observation, OwnedEntries } from '../../../runtime/node/task.ts';
import { plantedAuth } from '../../support/canary.ts';

export const configOf = (...names: readonly string[]): string =>
  JSON.stringify({ auths: Object.fromEntries(names.map((name) => [name, { auth: plantedAuth(name) }])) });

/** Both mounts are empty at first. */
export class TaskNode {
  readonly folder: string;
  readonly file: string;
  now = 0;
  readonly #options: AgentTaskOptions;
  #task;
  #owned: OwnedEntries = {};

  constructor(root: string, name: string, options: Partial<AgentTaskOptions> = {}) {
    this.folder = join(root, name);
    this.file = join(this.folder, 'config.json');
    for (const mount of ['global', 'original']) mkdirSync(join(this.folder, mount), { recursive: true });
    this.#options = {
      globalFile: join(this.folder, 'global', 'secret'),
      originalFile: join(this.folder, 'original', 'secret'),
      file: this.file,
      unit: 'kubelet.service',
      foreign: 'drop',
      monotonic: () => this.now,
      now: () => this.now,
      ...options,
    };
    this.#task = agentTask(this.#options);
  }

  set(mount: 'global' | 'original', text: string | undefined, mark?: string): void {
    const path = join(this.folder, mount, 'secret');
    if (text === undefined) rmSync(path, { force: true });
    else writeFileSync(path, text);
    const marked = join(this.folder, mount, 'pullwright-judged');
    if (mark === undefined) rmSync(marked, { force: true });
    else writeFileSync(marked, mark);
  }

  /** Another process takes over, with the same files. */
  restart(options: Partial<AgentTaskOptions> = {}): void {
    this.#task = agentTask({ ...this.#options, ...options });
  }

  look(): Observation {
    return this.#task.look(readWhole(this.file), this.#owned);
  }

  /** Applies the desired content. */
  settle(): void {
    const { wanted } = this.look();
    assert.ok(wanted !== undefined, 'something is wanted');
    writeFileSync(this.file, reveal(wanted.bytes));
    this.#owned = wanted.ownedAfter;
  }

  keys(): readonly string[] {
    const { wanted } = this.look();
    const text = wanted === undefined ? '{}' : Buffer.from(reveal(wanted.bytes)).toString();
    return Object.keys((JSON.parse(text) as { auths?: object }).auths ?? {});
  }
}
