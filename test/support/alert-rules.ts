/** Alerts against series, by Prometheus itself: `promtool test rules`. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Alert } from '../../charts/shared/monitoring.ts';
import type { Case } from './suite.ts';
import { tempFolder } from './temp-folder.ts';

/** Samples, and the alerts that fire at one time after the first sample. */
export interface AlertCase extends Case {
  /** Series to their samples in the notation of promtool, one a minute: `0x10 1x5`, `_` for none. */
  readonly series: Readonly<Record<string, string>>;
  /** Such as `20m`. */
  readonly at: string;
  /** Alerts with the labels that they have beside `severity`; every other alert is silent. */
  readonly firing: Readonly<Record<string, readonly Readonly<Record<string, string>>[]>>;
}

/** Undefined: promtool is there. */
export function missingPromtool(): string | undefined {
  return spawnSync('promtool', ['--version']).status === 0
    ? undefined
    : 'promtool is not installed (Debian: prometheus)';
}

/** Faults that promtool reports for a case; empty when it passes. */
export function alertFaults(alerts: readonly Alert[], { series, at, firing }: AlertCase): string {
  const folder = tempFolder();
  const rules = alerts.map((alert) => ({
    alert: alert.name,
    expr: alert.expression,
    for: alert.for,
    labels: { severity: alert.severity ?? 'warning' },
    annotations: { summary: alert.summary },
  }));
  const wanted = alerts.map((alert) => ({
    eval_time: at,
    alertname: alert.name,
    exp_alerts: (firing[alert.name] ?? []).map((labels) => ({
      exp_labels: { severity: alert.severity ?? 'warning', ...labels },
      exp_annotations: { summary: alert.summary },
    })),
  }));
  const files = {
    'rules.yaml': { groups: [{ name: 'alerts', rules }] },
    'test.yaml': {
      rule_files: ['rules.yaml'],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
          alert_rule_test: wanted,
        },
      ],
    },
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), stringify(content));
  const ran = spawnSync('promtool', ['test', 'rules', join(folder, 'test.yaml')], { encoding: 'utf8' });
  return ran.status === 0 ? '' : `${ran.stdout}${ran.stderr}`;
}
