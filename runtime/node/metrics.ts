/**
 * Counts what happens on a node, in the text format of Prometheus. Ten fixed names without a library: this runs on every node
 * of a fleet, and a metrics library would be most of what it loads.
 */
import { VERSION } from '../rules/version.ts';
import type { NodeEvent, NodeState } from './events.ts';

/** Counter names and their help. */
const COUNTERS = {
  pullwright_agent_writes_total: 'Files written',
  pullwright_agent_write_failures_total: 'Files that could not be written',
  pullwright_agent_restarts_total: 'Restarts of the unit that were successful',
  pullwright_agent_restart_failures_total: 'Attempts to restart the unit that failed',
  pullwright_agent_rollbacks_total: 'Files put back because the unit did not come up',
} as const;

type Counter = keyof typeof COUNTERS;

const COUNTER_OF: Readonly<Partial<Record<NodeEvent['event'], Counter>>> = {
  written: 'pullwright_agent_writes_total',
  'write-failed': 'pullwright_agent_write_failures_total',
  restarted: 'pullwright_agent_restarts_total',
  'restart-failed': 'pullwright_agent_restart_failures_total',
  'recover-failed': 'pullwright_agent_restart_failures_total',
  'rolled-back': 'pullwright_agent_rollbacks_total',
};

export class NodeMetrics {
  readonly #counts = new Map<Counter, number>();
  readonly #started: number;
  #state: NodeState = { ready: false, reason: 'Starting', message: '' };
  #since: number;

  /** `now`: milliseconds since 1970. */
  constructor(now: number) {
    this.#started = now;
    this.#since = now;
  }

  event(event: NodeEvent): void {
    const counter = COUNTER_OF[event.event];
    if (counter !== undefined) this.#counts.set(counter, (this.#counts.get(counter) ?? 0) + 1);
  }

  state(state: NodeState, now: number): void {
    if (state.ready !== this.#state.ready) this.#since = now;
    this.#state = state;
  }

  /** The page for a scrape. */
  text(): string {
    const { ready, reason } = this.#state;
    const lines = [
      ...gauge(
        'pullwright_agent_in_sync',
        'Whether the file means what is wanted and no restart is pending',
        ready ? 1 : 0,
      ),
      ...gauge('pullwright_agent_in_sync_since_seconds', 'When in_sync last changed', this.#since / 1000),
      ...gauge(
        'pullwright_agent_breaker_open',
        'Whether content is held back because the unit did not come up with it',
        reason === 'BreakerOpen' ? 1 : 0,
      ),
      ...gauge('process_start_time_seconds', 'When the agent started', this.#started / 1000),
      ...gauge(`pullwright_build_info{version="${VERSION}"}`, 'Version of the agent', 1),
    ];
    for (const [name, help] of Object.entries(COUNTERS))
      lines.push(
        `# HELP ${name} ${help}`,
        `# TYPE ${name} counter`,
        `${name} ${this.#counts.get(name as Counter) ?? 0}`,
      );
    return `${lines.join('\n')}\n`;
  }
}

function gauge(sample: string, help: string, value: number): readonly string[] {
  const name = sample.replace(/\{.*/, '');
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, `${sample} ${value}`];
}
