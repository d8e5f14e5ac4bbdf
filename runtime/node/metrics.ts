/**
 * Counts what happens on a node, in the text format of Prometheus. Fixed names without a library: this runs on every node
 * of a fleet, and a metrics library would be most of what it loads.
 */
import { VERSION } from '../rules/version.ts';
import type { NodeEvent, NodeState } from './events.ts';

/** Counter names, after the prefix, and their help. */
const COUNTERS = {
  writes_total: 'Files written',
  write_failures_total: 'Files that could not be written',
  restarts_total: 'Restarts of the unit that were successful',
  restart_failures_total: 'Attempts to restart the unit that failed',
  rollbacks_total: 'Files put back because the unit did not come up',
} as const;

type Counter = keyof typeof COUNTERS;

const COUNTER_OF: Readonly<Partial<Record<NodeEvent['event'], Counter>>> = {
  written: 'writes_total',
  'write-failed': 'write_failures_total',
  restarted: 'restarts_total',
  'restart-failed': 'restart_failures_total',
  'recover-failed': 'restart_failures_total',
  'rolled-back': 'rollbacks_total',
};

/** A gauge beside the fixed ones. */
export interface Gauge {
  /** Name, with labels if it has some. */
  readonly sample: string;
  readonly help: string;
  readonly value: number;
}

export class NodeMetrics {
  readonly #counts = new Map<Counter, number>();
  readonly #started: number;
  readonly #prefix: string;
  #state: NodeState = { ready: false, reason: 'Starting', message: '' };
  #since: number;

  /** `now`: milliseconds since 1970. */
  constructor(now: number, prefix: `pullwright_${string}` = 'pullwright_agent') {
    this.#prefix = prefix;
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

  /** The page for a scrape. Samples of one name stand one after the other in `more`. */
  text(more: readonly Gauge[] = []): string {
    const { ready, reason } = this.#state;
    const prefix = this.#prefix;
    const lines = [
      ...gauge(
        `${prefix}_in_sync`,
        'Whether the file means what is wanted and no restart is pending',
        ready ? 1 : 0,
      ),
      ...gauge(`${prefix}_in_sync_since_seconds`, 'When in_sync last changed', this.#since / 1000),
      ...gauge(
        `${prefix}_breaker_open`,
        'Whether content is held back because the unit did not come up with it',
        reason === 'BreakerOpen' ? 1 : 0,
      ),
      ...gauge('process_start_time_seconds', 'When the agent started', this.#started / 1000),
      ...gauge(`pullwright_build_info{version="${VERSION}"}`, 'Version of the agent', 1),
    ];
    const told = new Set<string>();
    for (const { sample, help, value } of more) {
      const [head = '', type = '', line = ''] = gauge(sample, help, value);
      lines.push(...(told.has(head) ? [line] : [head, type, line]));
      told.add(head);
    }
    for (const [name, help] of Object.entries(COUNTERS))
      lines.push(
        `# HELP ${prefix}_${name} ${help}`,
        `# TYPE ${prefix}_${name} counter`,
        `${prefix}_${name} ${this.#counts.get(name as Counter) ?? 0}`,
      );
    return `${lines.join('\n')}\n`;
  }
}

function gauge(sample: string, help: string, value: number): readonly string[] {
  const name = sample.replace(/\{.*/, '');
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, `${sample} ${value}`];
}

/** How long the oldest auth file has waited for its pull; see `oldestAuthFileMs`. */
export function authFileAge(ms: number): Gauge {
  const help = 'Age of the oldest auth file that no pull has used; 0 when there is none';
  return { sample: 'pullwright_auth_file_oldest_seconds', help, value: ms / 1000 };
}
