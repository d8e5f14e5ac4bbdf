/** A fleet as a Helm chart: templates that were learned from what the fleet's own program renders, so that nothing is written twice. */
import { VERSION } from '../../runtime/rules/version.ts';
import { commonGroups, systemGroups } from '../app.ts';
import { type Fleet, readFleet } from '../fleet.ts';
import { type ManifestTree, pathOf, yamlOf } from '../output.ts';
import { allSystems, type Explored, explore } from './explore.ts';
import type { Entry, Node } from './learn.ts';
import { MARK, YAML_TEXT } from './marks.ts';
import { TemplatePrinter, variableLines } from './print.ts';
import { type ChartValue, clusterOf, type Setting, settings } from './settings.ts';
import { valuesOf, valuesSchema, valuesText } from './values.ts';

/**
 * The files of a chart. With one cluster, `values.yaml` says what the cluster says; with several, each has a file of its own in
 * `values/`.
 *
 * @throws PullwrightError `ChartCannotSay` when a cluster says what the chart has no value for
 */
export function renderChart(fleet: Fleet): ManifestTree {
  const all = settings();
  const each = fleet.clusters.map((cluster) => ({
    name: cluster.context.name,
    values: valuesOf(fleet, cluster, all),
  }));
  const [first] = each;
  const { image = '', namespace = '' } = first?.values ?? {};
  const values = each.length === 1 && first !== undefined ? first.values : { image, namespace, systems: {} };
  const files = new Map<string, string>([
    ['Chart.yaml', chartFile()],
    ['values.yaml', valuesText(values, all)],
    ['values.schema.json', `${JSON.stringify(valuesSchema(all), null, 2).slice(2)}\n`],
    ['templates/NOTES.txt', NOTES],
    ...definitions(all),
    ...templates(all),
  ]);
  if (each.length > 1)
    for (const one of each) files.set(`values/${one.name}.yaml`, valuesText(one.values, all));
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function chartFile(): string {
  return yamlOf({
    apiVersion: 'v2',
    name: 'pullwright',
    description: 'Pull credentials as code for Kubernetes and OpenShift',
    type: 'application',
    version: VERSION,
    appVersion: VERSION,
  });
}

/** What every combination of values may need: Helm installs them once, and never changes or removes them. */
function definitions(all: readonly Setting[]): readonly (readonly [string, string])[] {
  const { image, ...cluster } = clusterOf(all, allSystems(all));
  const fleet = readFleet({ image, clusters: [{ name: 'chart', ...cluster }] });
  return fleet.clusters
    .flatMap((one) => [...systemGroups(fleet, one), ...commonGroups(fleet, one)])
    .flatMap(({ objects }) => objects)
    .filter(({ kind }) => kind === 'CustomResourceDefinition')
    .map((object) => [pathOf(object), yamlOf(object)] as const);
}

function templates(all: readonly Setting[]): readonly (readonly [string, string])[] {
  const printer = new TemplatePrinter(all);
  const learned = [...explore(all).values()];
  const entries = new Map<string, Entry[]>();
  for (const { objects } of learned)
    if (objects.kind === 'map')
      for (const entry of objects.entries) entries.set(entry.key, [...(entries.get(entry.key) ?? []), entry]);
  const files = [...entries.values()].map((same) => template(same, printer, all));
  return [
    ...files,
    [
      'templates/_helpers.tpl',
      helpers(
        learned.map(({ objects }) => objects),
        all,
      ),
    ],
    ['templates/problems.yaml', problems(learned, printer, all)],
  ];
}

/** Two systems may bring the very same object. */
function template(
  same: readonly Entry[],
  printer: TemplatePrinter,
  all: readonly Setting[],
): readonly [string, string] {
  const [entry] = same;
  const conditions = same.map(({ when }) => printer.condition(when));
  const condition =
    conditions.length === 1 ? conditions[0] : `or ${conditions.map((one) => `(${one})`).join(' ')}`;
  const node = entry?.node ?? { kind: 'value', tree: { is: '{}' } };
  const named = /^Namespace\/\/(.*)$/.exec(entry?.key ?? '')?.[1];
  // Who lets Helm make the namespace of the release has it already, and Helm would not take it over.
  const whole =
    named === undefined
      ? condition
      : `and (ne .Release.Namespace ${printer.expression(named)}) (${condition})`;
  const body = [`{{- if ${whole} }}`, ...printer.block(node), '{{- end }}'].join('\n');
  return [`templates/${fileOf(node, all)}`, `${[...variableLines(all, body), body].join('\n')}\n`];
}

function fileOf(node: Node, all: readonly Setting[]): string {
  const placeholder = (_: string, index: string): string =>
    all[Number(index)]?.path.slice(-2).join('-') ?? '';
  const text = (path: readonly string[]): string => constantAt(node, path).replace(MARK, placeholder);
  const namespace = text(['metadata', 'namespace']);
  return pathOf({
    apiVersion: text(['apiVersion']),
    kind: text(['kind']),
    metadata: { name: text(['metadata', 'name']), ...(namespace === '' ? {} : { namespace }) },
  });
}

function constantAt(node: Node, path: readonly string[]): string {
  const [first = '', ...rest] = path;
  if (node.kind === 'value') {
    const value = 'is' in node.tree ? (JSON.parse(node.tree.is) as ChartValue) : '';
    const found = path.reduce<unknown>(
      (inner, key) => (inner as Record<string, unknown> | undefined)?.[key],
      value,
    );
    return typeof found === 'string' ? found : '';
  }
  const next = node.entries.find(({ key }) => key === first)?.node;
  return next === undefined ? '' : constantAt(next, rest);
}

/** The values with `true` as an empty section and without `false`, and the text of the reconciler's configuration. */
function helpers(nodes: readonly Node[], all: readonly Setting[]): string {
  const text = nodes.map(textNode).find((node) => node !== undefined);
  const body = text === undefined ? '' : new TemplatePrinter(all, 'text').block(text).join('\n');
  const head = variableLines(all, body).map((line) => line.replace(/\}\}$/, '-}}'));
  return `${VALUES}{{- define "pullwright.config" -}}\n${[...head, body].join('\n')}\n{{ end -}}\n`;
}

function textNode(node: Node): Node | undefined {
  if (node.kind === 'value') return undefined;
  const own = node.entries.find(({ key }) => key === YAML_TEXT);
  return own?.node ?? node.entries.map((entry) => textNode(entry.node)).find((found) => found !== undefined);
}

function problems(learned: readonly Explored[], printer: TemplatePrinter, all: readonly Setting[]): string {
  const found = new Map(learned.flatMap((one) => [...one.problems]));
  const body = [...found]
    .map(
      ([text, when]) => `{{- if ${printer.condition(when)} }}{{- fail ${JSON.stringify(text)} }}{{- end }}`,
    )
    .join('\n');
  return `${[...variableLines(all, body), body].join('\n')}\n`;
}

const VALUES = `{{- define "pullwright.values" -}}
{{- $systems := dict -}}
{{- range $name, $section := .Values.systems -}}
{{- if kindIs "map" $section -}}
{{- $_ := set $systems $name $section -}}
{{- else if $section -}}
{{- $_ := set $systems $name (dict) -}}
{{- end -}}
{{- end -}}
{{- merge (dict "systems" $systems) (omit .Values "systems" "global") | toJson -}}
{{- end -}}
`;

const NOTES = `Pullwright {{ .Chart.AppVersion }} runs in namespace {{ .Values.namespace }}.

  kubectl -n {{ .Values.namespace }} get deployment pullwright-reconciler
  kubectl get pullstatuses -A

Helm never changes the definitions in crds/. Before an upgrade:

  helm show crds CHART | kubectl apply --server-side -f -
`;
