/** The reference page of alerts, from a fleet that renders every alert. */
import { parse } from 'yaml';
import { readFleet, renderFleet, SYSTEMS } from '../../charts/mod.ts';
import { RUNBOOKS } from '../../charts/shared/monitoring.ts';
import { codeSpan, grouped, prose, table } from './markdown.ts';

/** An alert as rendered. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Sections of systems that enable every alert. */
const SECTIONS: Readonly<Record<string, unknown>> = {
  'credential-provider': { alerts: true, installer: {}, matchImages: ['a.example.com'] },
  'pull-secret-adapter': {
    api: 'https://hyperfleet.example.com',
    jobGoogleServiceAccount: 'pull-secrets@example-project.iam.gserviceaccount.com',
    sentinel: true,
  },
};

/** Returns every alert that can be rendered, in the order of their files. @param runbooks base URL of a fleet's runbooks */
export function allAlerts(runbooks?: string): readonly AlertRule[] {
  const sections = (kind: 'standalone' | 'hosted'): Readonly<Record<string, unknown>> =>
    Object.fromEntries(
      SYSTEMS.filter(({ kinds }) => kinds.includes(kind)).map(({ name }) => [name, SECTIONS[name] ?? {}]),
    );
  const fleet = readFleet({
    image: 'registry.example.com/pullwright:1',
    ...(runbooks === undefined ? {} : { runbooks }),
    clusters: [
      { name: 'alone', monitoring: true, systems: sections('standalone') },
      { name: 'management', kind: 'management', monitoring: true },
      {
        name: 'hosted',
        kind: 'hosted',
        management: 'management',
        // Only stand-alone clusters have the installer.
        systems: { ...sections('hosted'), 'credential-provider': { alerts: true } },
      },
    ],
  });
  return [...renderFleet(fleet).tree].flatMap(([path, text]) => {
    if (!path.includes('prometheusrule-')) return [];
    const { spec } = parse(text) as { spec: { groups: readonly { rules: readonly AlertRule[] }[] } };
    return spec.groups.flatMap(({ rules }) => rules);
  });
}

/** `docs/reference/alerts.md` */
export function alertsPage(alerts: readonly AlertRule[]): string {
  const rows = grouped(alerts, ({ alert }) => alert).flatMap(([, same]) => same.slice(0, 1));
  return [
    '# Alerts',
    '',
    'Alerts that `monitoring: true` of a cluster renders as a PrometheusRule. Each leads to its [runbook](../runbooks/README.md).',
    '',
    ...table(
      ['alert', 'severity', 'what is the case', 'expression', 'for'],
      rows.map((rule) => [
        `[${rule.alert}](../runbooks/${rule.annotations['runbook_url']?.slice(RUNBOOKS.length + 1) ?? ''})`,
        rule.labels['severity'] ?? '',
        prose(rule.annotations['summary'] ?? ''),
        codeSpan(rule.expr.replace(/\s+/g, ' ')),
        codeSpan(rule.for),
      ]),
    ),
  ].join('\n');
}
