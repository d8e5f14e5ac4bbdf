/**
 * Renders a cluster of a fleet as a Helm chart. Objects are rendered once with placeholders for values, and wrapped in
 * conditions on the systems that need them. The constructs stay the single source of the installed objects.
 */

import { PullwrightError } from '../runtime/core/errors.ts';
import type { KubeObject } from '../runtime/core/kubernetes/object.ts';
import { recordOf } from '../runtime/core/record.ts';
import { VERSION } from '../runtime/core/version.ts';
import { parseYaml, toYaml } from '../runtime/kube/yaml.ts';
import { renderCluster } from './app.ts';
import type { Fleet, FleetCluster } from './fleet.ts';
import { type ManifestTree, pathOf, yamlOf } from './output.ts';
import { RECONCILER } from './shared/reconciler.ts';

/** Placeholders in the rendered text, replaced by template expressions. */
const IMAGE = 'pullwright.invalid/zz-image:0.0.0';
const SECRET = 'zz-pull-secret';
const REPLICAS = 'zz-replicas';
const RESOURCES = 'zz-resources';
const CONFIG = 'zz-config';
const DIGEST = 'zz-digest';
const BEGIN = 'zz-begin ';
const END = 'zz-end';

/**
 * Renders the files of the chart.
 *
 * @param on systems that `values.yaml` enables. @default all of the fleet
 * @throws PullwrightError `ChartCannotSay` unless the fleet is one stand-alone or management cluster
 * @example
 * ```ts
 * import { readFleet } from './fleet.ts';
 * import { renderChart } from './helm.ts';
 * import assert from 'node:assert/strict';
 *
 * const clusters = [{ name: 'a', systems: { 'global-pull-secret': {} } }];
 * const chart = renderChart(readFleet({ image: 'registry.example.com/pullwright:0.1.0', clusters }));
 * assert.match(chart.get('values.yaml') ?? '', /global-pull-secret: true/);
 * ```
 */
export function renderChart(fleet: Fleet, on?: readonly string[]): ManifestTree {
  const cluster = clusterOf(fleet);
  const systems = cluster.sections.map(({ system }) => system.name);
  const render = (names: readonly string[]): ReadonlyMap<string, KubeObject> =>
    new Map(renderCluster(fleet, marked(cluster, names)).objects.map((object) => [pathOf(object), object]));
  const alone = systems.map((name) => ({ name, objects: render([name]) }));
  const files = new Map<string, string>();
  let marks: { readonly options: unknown; readonly resources: unknown } = { options: {}, resources: {} };
  for (const [path, object] of render(systems)) {
    if (object.kind === 'CustomResourceDefinition') files.set(path, yamlOf(object));
    else {
      const parts = alone.flatMap(({ name, objects }) => {
        const own = objects.get(path);
        return own === undefined ? [] : [{ name, text: JSON.stringify(own) }];
      });
      const { whole, ...found } = withMarks(object, parts);
      marks = { ...marks, ...found };
      files.set(`templates/${path}`, template(whole, parts));
    }
  }
  const values = {
    image: cluster.context.image,
    imagePullSecrets: cluster.context.imagePullSecrets ?? [],
    replicas: cluster.input.reconciler?.replicas ?? 2,
    resources: marks.resources,
    systems: Object.fromEntries(systems.map((name) => [name, on?.includes(name) ?? true])),
    config: {},
  };
  files.set('Chart.yaml', CHART);
  files.set('values.yaml', valuesText(values));
  files.set('templates/_helpers.tpl', helpers(marks.options));
  files.set('templates/NOTES.txt', notes(cluster.context.namespace));
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function clusterOf({ clusters }: Fleet): FleetCluster {
  const [cluster, ...more] = clusters;
  if (cluster !== undefined && more.length === 0 && cluster.context.kind !== 'hosted') return cluster;
  throw new PullwrightError(
    `Cannot render a chart: the fleet has ${clusters.length} clusters, expected one of kind standalone or management`,
    { code: 'ChartCannotSay', retryPolicy: 'terminal', hint: 'Render manifests: --format manifests' },
  );
}

/** Limits the cluster to the systems, and sets placeholders for values. */
function marked(cluster: FleetCluster, systems: readonly string[]): FleetCluster {
  return {
    ...cluster,
    context: { ...cluster.context, image: IMAGE, imagePullSecrets: [SECRET] },
    sections: cluster.sections.filter(({ system }) => systems.includes(system.name)),
  };
}

/** A system that renders the object, and the text it renders when enabled alone. */
interface Part {
  readonly name: string;
  readonly text: string;
}

function template(object: KubeObject, parts: readonly Part[]): string {
  // Helm creates the release namespace itself.
  const others = object.kind === 'Namespace' ? ` (ne $.Release.Namespace "${object.metadata.name}")` : '';
  return `{{- if and${others} (${condition(parts)}) }}\n${templated(yamlOf(object))}{{- end }}\n`;
}

function condition(parts: readonly Pick<Part, 'name'>[]): string {
  return `or false ${parts.map(({ name }) => `(index $.Values.systems "${name}")`).join(' ')}`;
}

/** The object with placeholders, and what they replace: the options of the reconciler by system, or its resources. */
function withMarks(object: KubeObject, parts: readonly Part[]) {
  const whole = structuredClone(object) as unknown as Editable;
  if (whole.kind === 'Namespace')
    whole.metadata.annotations = { ...whole.metadata.annotations, 'helm.sh/resource-policy': 'keep' };
  if (whole.kind === 'PrometheusRule')
    for (const group of whole.spec.groups) group.rules = group.rules.flatMap((rule) => ruleOf(rule, parts));
  if (whole.kind === 'ConfigMap' && whole.metadata.name === `${RECONCILER}-config`) {
    const options = recordOf(parseYaml(whole.data['config.yaml'] ?? ''))['systems'];
    whole.data['config.yaml'] = CONFIG;
    return { whole, options };
  }
  if (whole.kind === 'Deployment' && whole.metadata.name.startsWith(RECONCILER)) {
    const { template } = whole.spec;
    const [container] = template.spec.containers;
    const { resources } = container;
    whole.spec.replicas = REPLICAS;
    template.metadata.annotations['pullwright.dev/config'] = DIGEST;
    container.resources = RESOURCES;
    return { whole, resources };
  }
  return { whole };
}

/** The rule, wrapped in a condition unless every system needs it. */
function ruleOf(rule: unknown, parts: readonly Part[]): readonly unknown[] {
  const owners = parts.filter(({ text }) => text.includes(JSON.stringify(rule)));
  return owners.length === parts.length ? [rule] : [BEGIN + condition(owners), rule, END];
}

/** Fields that get placeholders. */
interface Editable {
  [field: string]: unknown;
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; annotations?: Record<string, string> };
  data: Record<string, string>;
  spec: {
    replicas: unknown;
    groups: { rules: readonly unknown[] }[];
    template: {
      metadata: { annotations: Record<string, string> };
      spec: { containers: [{ resources: unknown }] };
    };
  };
}

/** Replaces placeholders with template expressions, and escapes braces in other text. */
function templated(text: string): string {
  return text
    .replaceAll('{{', '{{ "{{" }}')
    .replaceAll(IMAGE, '{{ $.Values.image }}')
    .replaceAll(REPLICAS, '{{ $.Values.replicas }}')
    .replaceAll(RESOURCES, '{{ toJson $.Values.resources }}')
    .replaceAll(CONFIG, '{{ include "pullwright.config" $ | toJson }}')
    .replaceAll(DIGEST, '{{ include "pullwright.config" $ | sha256sum | trunc 16 | quote }}')
    .replace(/^ *- zz-begin (.*)\n/gm, '{{- if $1 }}\n')
    .replace(/^ *- zz-end\n/gm, '{{- end }}\n')
    .replace(
      /^( *imagePullSecrets:\n)( *- (?:name: )?)zz-pull-secret\n/gm,
      '{{- with $.Values.imagePullSecrets }}\n$1{{- range . }}\n$2{{ . }}\n{{- end }}\n{{- end }}\n',
    )
    .replace(
      /^( *- --image-pull-secret\n *- )zz-pull-secret\n/gm,
      '{{- range $.Values.imagePullSecrets }}\n$1{{ . }}\n{{- end }}\n',
    );
}

const CHART = yamlOf({
  apiVersion: 'v2',
  name: 'pullwright',
  description: 'Pull credentials as code for Kubernetes and OpenShift',
  type: 'application',
  version: VERSION,
  appVersion: VERSION,
});

const ABOUT: Readonly<Record<string, string>> = {
  image: 'Image of all pods',
  imagePullSecrets: 'imagePullSecrets of all pods',
  replicas: 'Replicas of the reconciler',
  resources: 'Resources of a reconciler replica',
  systems: 'false turns a system off',
  config:
    'Options of the reconciler by system, which override the fleet; validated when the reconciler starts',
};

function valuesText(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .map(([name, value]) => `# ${ABOUT[name]}\n${toYaml({ [name]: value })}`)
    .join('');
}

/** Template helper with the reconciler's configuration: the options of each enabled system. */
function helpers(options: unknown): string {
  return `{{- define "pullwright.config" -}}
{{- $systems := dict -}}
{{- range $name, $options := include "pullwright.options" . | fromYaml -}}
{{- if index $.Values.systems $name -}}
{{- $_ := set $systems $name (mergeOverwrite $options (index $.Values.config $name | default dict)) -}}
{{- end -}}
{{- end -}}
{{- dict "systems" $systems | toYaml -}}
{{- end -}}
{{- define "pullwright.options" }}
${templated(toYaml(options))}{{- end -}}
`;
}

function notes(namespace: string): string {
  return `Pullwright {{ .Chart.AppVersion }} runs in namespace ${namespace}.

  kubectl -n ${namespace} get deployment ${RECONCILER}
  kubectl get pullstatuses -A

Helm never changes the definitions in crds/. Before an upgrade:

  helm show crds CHART | kubectl apply --server-side -f -
`;
}
