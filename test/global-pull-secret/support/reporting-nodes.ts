/** A cluster in memory whose agents report, each with the files of a node. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../../runtime/core/kubernetes/object.ts';
import { reveal } from '../../../runtime/core/redacted.ts';
import { AGENT_WORDS } from '../../../runtime/global-pull-secret/agent/agent.ts';
import { nodeStatus } from '../../../runtime/node/report.ts';
import { type NodeState, stateOf } from '../../../runtime/node/task.ts';
import { meta } from '../../support/meta.ts';
import { Fleet, NOW, PLATFORM, platform } from '../fleet.ts';
import { TaskNode } from './task-node.ts';

const LABEL = 'hypershift.openshift.io/nodepool-globalps-enabled';
/** A node that takes part, and is up. */
export const eligible = (name: string, labels: Readonly<Record<string, string>> = {}): KubeObject => ({
  ...meta('v1 Node', { name, uid: name, labels: { [LABEL]: 'true', ...labels } }),
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
});

/** A cluster whose agents report, and the agents of its nodes, each with the files of a node. */
export class ReportingNodes extends Fleet {
  readonly #agents = new Map<string, TaskNode>();

  constructor(names: readonly string[], folder: string, options: Readonly<Record<string, unknown>> = {}) {
    super({ agent: { report: true }, ...options });
    this.management.set(platform(PLATFORM));
    for (const name of names) {
      this.hosted.set(eligible(name));
      this.#agents.set(name, new TaskNode(folder, name));
    }
  }

  agent(name: string): TaskNode {
    const found = this.#agents.get(name);
    assert.ok(found !== undefined);
    return found;
  }

  /** The mounts of a node catch up with the Secrets. */
  mount(name: string): void {
    for (const which of ['global', 'original'] as const) {
      const value = this.secret(`${which}-pull-secret`)?.data?.['.dockerconfigjson'];
      this.agent(name).set(which, value && Buffer.from(reveal(value), 'base64').toString());
    }
  }

  report(name: string, state: NodeState): void {
    const { object, status } = nodeStatus(AGENT_WORDS, { name, uid: name }, state, undefined, NOW);
    this.hosted.set({ ...object, status });
  }

  /** Report of an agent that has converged. */
  settled(name: string): void {
    this.report(name, stateOf({ do: 'rest', ready: true, reason: 'Settled' }, this.agent(name).look()));
  }

  /** The agent applies the content to its node, and reports it. */
  bring(name: string): void {
    this.mount(name);
    if (this.agent(name).look().wanted?.digest !== this.agent(name).look().present) this.agent(name).settle();
    this.settled(name);
  }

  message(about: 'additional' | 'original' = 'additional'): string {
    return this.status(about)?.conditions.find(({ type }) => type === 'Ready')?.message ?? '';
  }
}
