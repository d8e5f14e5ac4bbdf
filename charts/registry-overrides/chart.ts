/** The section `systems.registry-overrides` of a fleet, and constructs for charts of one's own. */
import type { Construct } from 'constructs';
import { z } from 'zod';
import { dnsName } from '../../runtime/core/kubernetes/fields.ts';
import type { SectionProblem } from '../../runtime/core/kubernetes/kind.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { lintMirrors } from '../../runtime/registry-overrides/lint.ts';
import type { MirrorProblem } from '../../runtime/registry-overrides/mirror-sets/collect.ts';
import { ObjectGroup } from '../shared/group.ts';
import { type ChartSystem, clusterOptions, may, READ } from '../shared/system.ts';
import { overridesAccess } from './access.ts';
import { REGISTRY_OVERRIDES_ALERTS } from './alerts.ts';
import { type MirrorSet, mirrorMachineConfig, mirrorSetObject } from './mirror-objects.ts';

/** The section, as it is written. Every field is optional. */
export interface RegistryOverridesInput {
  /** Mirror sets to render into the cluster. @default none: they are kept elsewhere */
  readonly mirrorSets?: readonly MirrorSet[];
  /** Render MachineConfigs for nodes of these roles instead, for clusters without the kinds. @default {[]} */
  readonly machineConfigRoles?: readonly string[];
  /** Whether Deployments that HyperShift's own operators manage are written. @default {'auto'} */
  readonly mode?: 'auto' | 'own' | 'observe';
  /** Whether the catalogs of hosted clusters are managed. @default {true} */
  readonly catalogs?: boolean;
  /** Whether mirrors for tags go into `OPENSHIFT_IMG_OVERRIDES` too. @default {true} */
  readonly tagMirrors?: boolean;
  /** Whether catalogs are looked up in registries, with the hosted cluster's own pull secret. @default {false} */
  readonly askRegistries?: boolean;
}

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
    .describe('Whether the source is tried when every mirror fails'),
});

const mirrorSet = z
  .strictObject({
    name: dnsName().describe('Name of the object'),
    type: z
      .enum(['digest', 'tag', 'content-source-policy'])
      .exactOptional()
      .describe('For which pulls the mirrors serve; the last one is deprecated'),
    entries: z.array(entry).min(1).max(1000).describe('Sources and their mirrors'),
  })
  .refine(
    (set) =>
      set.type !== 'content-source-policy' ||
      set.entries.every((one) => one.mirrorSourcePolicy === undefined),
    { path: ['entries'], error: 'a content source policy has no mirrorSourcePolicy: expected type "digest"' },
  );

export const schema: z.ZodType<RegistryOverridesInput, RegistryOverridesInput> = z.strictObject({
  mirrorSets: z.array(mirrorSet).exactOptional().describe('Mirror sets to render into the cluster'),
  machineConfigRoles: z
    .array(dnsName())
    .exactOptional()
    .describe('Render MachineConfigs for nodes of these roles instead of mirror sets'),
  mode: z.enum(['auto', 'own', 'observe']).exactOptional().describe("Beside HyperShift's own operators"),
  catalogs: z.boolean().exactOptional().describe('Whether the catalogs of hosted clusters are managed'),
  tagMirrors: z
    .boolean()
    .exactOptional()
    .describe('Whether mirrors for tags go into OPENSHIFT_IMG_OVERRIDES too'),
  askRegistries: z
    .boolean()
    .exactOptional()
    .describe("Whether catalogs are looked up in registries, with the hosted cluster's own pull secret"),
});

export const registryOverridesSystem: ChartSystem<RegistryOverridesInput, RegistryOverridesInput> = {
  name: 'registry-overrides',
  summary: 'Makes mirror sets count for everything that looks up images without a container runtime',
  config: schema,
  kinds: ['standalone', 'hosted', 'management'],
  check: (config, { kind }) =>
    kind === 'hosted' ? mirrorSetsOfHosted(config, true) : sectionProblems(config, 'error'),
  warnings: (config, { kind }) =>
    kind === 'hosted' ? mirrorSetsOfHosted(config, false) : sectionProblems(config, 'warning'),
  objects: (config, cluster) => (cluster.kind === 'hosted' ? [] : overridesObjects(config)),
  // What its catalogs are, where the control plane does not say.
  hostedAccess: () => [
    {
      namespace: 'openshift-marketplace',
      rules: [may(READ, 'operators.coreos.com', ['catalogsources'])],
    },
  ],
  managementReconciler(management, hosted, own) {
    if (hosted.length === 0 && !management.discovery) return undefined;
    const places = hosted.map(({ cluster, config }) => ({
      askRegistries: config.askRegistries === true,
      hostedClusterNamespace: cluster.hostedCluster.namespace,
      controlPlaneNamespace: cluster.controlPlaneNamespace,
    }));
    return {
      name: 'registry-overrides',
      options: {
        ...(management.discovery ? optionsOf(own ?? {}) : {}),
        ...clusterOptions(hosted, optionsOf),
      },
      access: overridesAccess(
        management.discovery ? undefined : places,
        [own, ...hosted.map(({ config }) => config)].some((one) => one?.askRegistries === true),
      ),
      alerts: REGISTRY_OVERRIDES_ALERTS,
    };
  },
};

/** What of the section the reconciler needs to know. */
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

/** The findings of the linter, each at its field of the section. */
function sectionProblems(
  config: RegistryOverridesInput,
  severity: MirrorProblem['severity'],
): readonly SectionProblem[] {
  return lintMirrorSets(config.mirrorSets ?? [])
    .filter((problem) => problem.severity === severity)
    .map((problem) => ({ path: sectionPath(config.mirrorSets ?? [], problem), text: problem.message }));
}

/** HyperShift makes the one set of a hosted cluster, and forbids others there. */
function mirrorSetsOfHosted(
  { mirrorSets = [], machineConfigRoles = [] }: RegistryOverridesInput,
  ownOnly: boolean,
): readonly SectionProblem[] {
  const path = mirrorSets.length > 0 ? 'mirrorSets' : 'machineConfigRoles';
  if (mirrorSets.length + machineConfigRoles.length === 0) return [];
  const text =
    'is not rendered into a hosted cluster: its nodes follow spec.imageContentSources of the HostedCluster; write the mirrors there';
  return [{ path: [path], text, ownOnly }];
}

/** Everything that is wrong or surprising in `sets`, warnings included. */
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
 * Mirror sets as constructs, linted when they are made.
 *
 * @throws TypeError that lists every mistake of the sets
 * @example
 * ```ts
 * import { MirrorSets } from './chart.ts';
 * import { Testing } from 'cdk8s';
 * import assert from 'node:assert/strict';
 *
 * const chart = Testing.chart();
 * new MirrorSets(chart, 'mirrors', { sets: [{ name: 'team', entries: [{ source: 'quay.io/team', mirrors: ['mirror.example.com/team'] }] }] });
 * assert.equal(Testing.synth(chart)[0].kind, 'ImageDigestMirrorSet');
 * const wrong = [{ name: 'team', entries: [{ source: 'quay.io/Team', mirrors: ['a,b'] }] }];
 * assert.throws(() => new MirrorSets(Testing.chart(), 'mirrors', { sets: wrong }), /quay\.io\/Team/);
 * ```
 */
export class MirrorSets extends ObjectGroup {
  constructor(scope: Construct, id: string, props: MirrorSetsProps) {
    const errors = lintMirrorSets(props.sets).filter((problem) => problem.severity === 'error');
    if (errors.length > 0)
      throw new TypeError(`Cannot make mirror sets: ${errors.map((problem) => problem.message).join('; ')}`);
    super(
      scope,
      id,
      overridesObjects({ mirrorSets: props.sets, machineConfigRoles: props.machineConfigRoles ?? [] }),
    );
  }
}
