/** The section `systems.registry-overrides` of a fleet, and constructs for other charts. */
import type { Construct } from 'constructs';
import { z } from 'zod';
import { customObject } from '../../runtime/core/kubernetes/custom-kinds.ts';
import { dnsName, type Frozen, optional } from '../../runtime/core/kubernetes/fields.ts';
import type { SectionProblem } from '../../runtime/core/kubernetes/kind.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { dataUrl, labels, machineConfigOf, may, READ } from '../../runtime/core/kubernetes/objects.ts';
import { lintMirrors } from '../../runtime/registry-overrides/lint.ts';
import { collectMirrors, type MirrorProblem } from '../../runtime/registry-overrides/mirror-sets/collect.ts';
import { formatRegistriesConf } from '../../runtime/registry-overrides/mirror-sets/fix.ts';
import { ObjectGroup } from '../shared/group.ts';
import type { Alert } from '../shared/monitoring.ts';
import { type ChartSystem, clusterOptions } from '../shared/system.ts';
import { overridesAccess } from './access.ts';

const entry = z.strictObject({
  source: z.string().min(1).max(512).describe('"host[:port][/path]" or "*.example.com"'),
  mirrors: z
    .array(z.string().min(1).max(512))
    .min(1)
    .max(1000)
    .describe('In the order in which they are tried'),
  mirrorSourcePolicy: z
    .enum(['AllowContactingSource', 'NeverContactSource'])
    .exactOptional()
    .describe('Whether the source is tried when every mirror fails; default AllowContactingSource'),
});

const mirrorSet = z
  .strictObject({
    name: dnsName.describe('Name of the object'),
    type: z
      .enum(['digest', 'tag', 'content-source-policy'])
      .exactOptional()
      .describe('Pulls for which the mirrors are used; the last one is deprecated; default digest'),
    entries: z.array(entry).min(1).max(1000).describe('Sources and their mirrors'),
  })
  .refine(
    (set) =>
      set.type !== 'content-source-policy' ||
      set.entries.every((one) => one.mirrorSourcePolicy === undefined),
    {
      path: ['entries'],
      error: 'ImageContentSourcePolicy does not support mirrorSourcePolicy: expected type "digest"',
    },
  );

export const schema = z.strictObject(
  optional({
    mirrorSets: z.array(mirrorSet).describe('Mirror sets to render into the cluster; default none'),
    machineConfigRoles: z
      .array(dnsName)
      .describe('Render MachineConfigs for nodes of these roles instead of mirror sets'),
    mode: z
      .enum(['auto', 'own', 'observe'])
      .describe("Whether to write Deployments that HyperShift's operators manage; default auto"),
    catalogs: z.boolean().describe('Whether the catalogs of hosted clusters are managed; default true'),
    tagMirrors: z
      .boolean()
      .describe('Whether mirrors for tags go into OPENSHIFT_IMG_OVERRIDES too; default true'),
    askRegistries: z
      .boolean()
      .describe(
        'Whether to look up catalogs in registries, with the pull secret of the hosted cluster; default false',
      ),
  }),
);

/** One source and its mirrors. */
export type MirrorSetEntry = Frozen<z.input<typeof entry>>;

/** A mirror set in the fleet file. */
export type MirrorSet = Frozen<z.input<typeof mirrorSet>>;

/** The section as input. Every field is optional. */
export type RegistryOverridesInput = Frozen<z.input<typeof schema>>;

/** Alerts over the gauges of the reconciler, one series per hosted cluster. */
const ALERTS: readonly Alert[] = [
  {
    name: 'RegistryOverridesContested',
    expression: 'pullwright_override_contested > 0',
    for: '30m',
    summary: 'Another writer repeatedly removes the mirrors of {{ $labels.scope }}',
    description:
      'OPENSHIFT_IMG_OVERRIDES is set, removed, and set again after ten minutes. The PullStatus of the HostedCluster names the Deployment: stop the other writer, or choose mode observe.',
  },
  {
    name: 'RegistryOverridesDrifted',
    expression: 'pullwright_override_drifted > 0',
    for: '1h',
    severity: 'info',
    summary: '{{ $value }} Deployments of {{ $labels.scope }} still have older mirrors',
    description:
      "HyperShift's operator writes them and has not applied the mirror sets. Restart that operator, or choose mode own.",
  },
  {
    name: 'RegistryOverridesInvalid',
    expression: 'pullwright_override_problems > 0',
    for: '1h',
    severity: 'info',
    summary: '{{ $value }} entries and annotations for {{ $labels.scope }} cannot be used',
    description:
      'The others are used. For each verdict, see PullStatus hostedcluster-NAME in the namespace of the HostedCluster.',
  },
  {
    name: 'RegistryCatalogsMissing',
    expression: 'pullwright_override_catalogs{result="failed"} > 0',
    for: '30m',
    summary: '{{ $value }} catalogs of {{ $labels.scope }} were not found in any registry',
    description:
      'The previous images stay in use; a catalog without one cannot install operators. The PullStatus names the image: run pullwright mirrors IMAGE --probe to probe each pull source.',
  },
  {
    name: 'RegistryCatalogsFellBack',
    expression: 'pullwright_override_catalogs{result="fallback"} > 0',
    for: '1h',
    severity: 'info',
    summary: '{{ $value }} catalogs of {{ $labels.scope }} come from the source: no mirror has them',
    description: 'They work while the source is reachable. Mirror the catalog again.',
  },
];

export const registryOverridesSystem: ChartSystem<RegistryOverridesInput, RegistryOverridesInput> = {
  name: 'registry-overrides',
  summary: 'Applies mirror sets to components that resolve images without a container runtime',
  config: schema,
  kinds: ['standalone', 'hosted', 'management'],
  check: (config, { kind }) =>
    kind === 'hosted' ? mirrorSetsOfHosted(config, true) : sectionProblems(config, 'error'),
  warnings: (config, { kind }) =>
    kind === 'hosted' ? mirrorSetsOfHosted(config, false) : sectionProblems(config, 'warning'),
  objects: (config, cluster) => (cluster.kind === 'hosted' ? [] : overridesObjects(config)),
  // For the catalogs of a hosted cluster with guest placement.
  hostedAccess: () => [
    { namespace: 'openshift-marketplace', rules: [may(READ, 'operators.coreos.com', ['catalogsources'])] },
  ],
  alerts: ALERTS,
  managementReconciler(management, hosted, own) {
    const places = hosted.map(({ cluster, config: { askRegistries } }) => ({ ...cluster, askRegistries }));
    const askRegistries = [own, ...places].some((one) => one?.askRegistries === true);
    return {
      options: {
        ...(management.discovery ? optionsOf(own ?? {}) : {}),
        ...clusterOptions(hosted, optionsOf),
      },
      access: overridesAccess(management.discovery ? [{ askRegistries }] : places),
    };
  },
};

/** The section without its rendered fields: the options of the reconciler. */
function optionsOf({
  mirrorSets: _sets,
  machineConfigRoles: _roles,
  ...options
}: RegistryOverridesInput): Readonly<Record<string, unknown>> {
  return options;
}

function overridesObjects(config: RegistryOverridesInput): readonly KubeObject[] {
  const sets = config.mirrorSets ?? [];
  const roles = config.machineConfigRoles ?? [];
  if (roles.length === 0 || sets.length === 0) return sets.map(mirrorSetObject);
  return roles.map((role) => mirrorMachineConfig(role, sets));
}

// Mirror sets as plain objects, and the MachineConfig for clusters without the mirror set kinds.
// Source of the rule: the CRDs of OpenShift; containers-registries.conf.d(5).

/** Builds the mirror set object. */
export function mirrorSetObject({ name, type, entries }: MirrorSet): KubeObject {
  const metadata = { name, labels: labels({ name, component: 'registry-overrides' }) };
  if (type === 'tag') return customObject('ImageTagMirrorSet', metadata, { imageTagMirrors: entries });
  return type === 'content-source-policy'
    ? customObject('ImageContentSourcePolicy', metadata, { repositoryDigestMirrors: entries })
    : customObject('ImageDigestMirrorSet', metadata, { imageDigestMirrors: entries });
}

/** Path of the drop-in on a node. Later names win, so that an administrator can override it. */
export const DROP_IN = '/etc/containers/registries.conf.d/50-pullwright-mirrors.conf';

/** Text of the drop-in for the sets. */
export function mirrorDropIn(sets: readonly MirrorSet[]): string {
  return formatRegistriesConf(collectMirrors(sets.map(mirrorSetObject)).rules);
}

/** A MachineConfig that writes the drop-in on the nodes of `role`. */
export function mirrorMachineConfig(role: string, sets: readonly MirrorSet[]): KubeObject {
  const name = `99-${role}-pullwright-mirrors`;
  const contents = { source: dataUrl(mirrorDropIn(sets)) };
  return machineConfigOf(
    role,
    { name, labels: labels({ name, component: 'registry-overrides' }) },
    {
      // The oldest version that supported operators read.
      ignition: { version: '3.2.0' },
      storage: { files: [{ path: DROP_IN, mode: 0o644, overwrite: true, contents }] },
    },
  );
}

/** Linter findings, each at its field of the section. */
function sectionProblems(
  config: RegistryOverridesInput,
  severity: MirrorProblem['severity'],
): readonly SectionProblem[] {
  return lintMirrorSets(config.mirrorSets ?? [])
    .filter((problem) => problem.severity === severity)
    .map((problem) => ({ path: sectionPath(config.mirrorSets ?? [], problem), text: problem.message }));
}

/** HyperShift owns the only mirror set of a hosted cluster and forbids others. */
function mirrorSetsOfHosted(
  { mirrorSets = [], machineConfigRoles = [] }: RegistryOverridesInput,
  ownOnly: boolean,
): readonly SectionProblem[] {
  const path = mirrorSets.length > 0 ? 'mirrorSets' : 'machineConfigRoles';
  if (mirrorSets.length + machineConfigRoles.length === 0) return [];
  const text =
    'is not rendered into a hosted cluster: its nodes use spec.imageContentSources of the HostedCluster; add the mirrors there';
  return [{ path: [path], text, ownOnly }];
}

/** Errors and warnings about `sets`. */
export function lintMirrorSets(sets: readonly MirrorSet[]): readonly MirrorProblem[] {
  return lintMirrors(sets.map(mirrorSetObject));
}

/** `spec.imageDigestMirrors[2].mirrors[0]` of a set is `entries[2].mirrors[0]` of the section. */
function sectionPath(sets: readonly MirrorSet[], { origin }: MirrorProblem): readonly (string | number)[] {
  const at = sets.findIndex((set) => set.name === origin.name && mirrorSetObject(set).kind === origin.kind);
  const place = /^spec\.\w+\[(\d+)\](?:\.mirrors(?:\[(\d+)\])?)?/.exec(origin.path);
  if (at === -1 || place === null) return ['mirrorSets'];
  const whole = ['mirrorSets', at, 'entries', Number(place[1])];
  if (!origin.path.includes('.mirrors')) return whole;
  return [...whole, 'mirrors', ...(place[2] === undefined ? [] : [Number(place[2])])];
}

/** Properties of {@link MirrorSets}. */
export interface MirrorSetsProps {
  readonly sets: readonly MirrorSet[];
  /** Render MachineConfigs for nodes of these roles instead. @default {[]} */
  readonly machineConfigRoles?: readonly string[];
}

/**
 * Mirror sets as constructs, linted on construction.
 *
 * @throws TypeError that lists all linter errors
 * @example
 * ```ts
 * import { MirrorSets } from './chart.ts';
 * import { Testing } from 'cdk8s';
 * import assert from 'node:assert/strict';
 *
 * const chart = Testing.chart(); new MirrorSets(chart, 'mirrors', { sets: [{ name: 'team', entries: [{ source: 'quay.io/team',
 * mirrors: ['mirror.example.com/team'] }] }] }); assert.equal(Testing.synth(chart)[0].kind, 'ImageDigestMirrorSet'); const wrong
 * = [{ name: 'team', entries: [{ source: 'quay.io/Team', mirrors: ['a,b'] }] }]; assert.throws(() => new
 * MirrorSets(Testing.chart(), 'mirrors', { sets: wrong }), /quay\.io\/Team/);
 * ```
 */
export class MirrorSets extends ObjectGroup {
  constructor(scope: Construct, id: string, { sets, machineConfigRoles = [] }: MirrorSetsProps) {
    const errors = lintMirrorSets(sets).filter((problem) => problem.severity === 'error');
    if (errors.length > 0)
      throw new TypeError(
        `Cannot render mirror sets: ${errors.map((problem) => problem.message).join('; ')}`,
      );
    super(scope, id, overridesObjects({ mirrorSets: sets, machineConfigRoles }));
  }
}
