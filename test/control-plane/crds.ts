/**
 * Custom resource definitions for a test control plane: the files of the folder that `PULLWRIGHT_CRDS` names, and for kinds
 * that are not there (or when it is not set) permissive ones of the same group, versions and scope. PullStatus is ours.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'yaml';
import { pullStatusCrd } from '../../runtime/core/kubernetes/pull-status-kind.ts';
import type { Requester } from './request.ts';
import { applyObject } from './resource-path.ts';

/** Name of a definition. */
export type CrdName =
  | 'clusterversions.config.openshift.io'
  | 'criocredentialproviderconfigs.config.openshift.io'
  | 'hostedclusters.hypershift.openshift.io'
  | 'hostedcontrolplanes.hypershift.openshift.io'
  | 'imagecontentsourcepolicies.operator.openshift.io'
  | 'imagedigestmirrorsets.config.openshift.io'
  | 'imagetagmirrorsets.config.openshift.io'
  | 'images.config.openshift.io'
  | 'imagestreams.image.openshift.io'
  | 'infrastructures.config.openshift.io'
  | 'machineconfigpools.machineconfiguration.openshift.io'
  | 'machineconfigs.machineconfiguration.openshift.io'
  | 'machines.cluster.x-k8s.io'
  | 'nodepools.hypershift.openshift.io'
  | 'sidecarsets.apps.kruise.io'
  | 'pullstatuses.pullwright.dev';

/** `<plural>.<group>` to its kind, versions (the last one stores) and scope. */
const KINDS: Readonly<Record<CrdName, readonly [kind: string, versions: string, scope: string]>> = {
  'clusterversions.config.openshift.io': ['ClusterVersion', 'v1', 'Cluster'],
  'criocredentialproviderconfigs.config.openshift.io': ['CRIOCredentialProviderConfig', 'v1', 'Cluster'],
  'hostedclusters.hypershift.openshift.io': ['HostedCluster', 'v1beta1', 'Namespaced'],
  'hostedcontrolplanes.hypershift.openshift.io': ['HostedControlPlane', 'v1beta1', 'Namespaced'],
  'imagecontentsourcepolicies.operator.openshift.io': ['ImageContentSourcePolicy', 'v1alpha1', 'Cluster'],
  'imagedigestmirrorsets.config.openshift.io': ['ImageDigestMirrorSet', 'v1', 'Cluster'],
  'imagetagmirrorsets.config.openshift.io': ['ImageTagMirrorSet', 'v1', 'Cluster'],
  'images.config.openshift.io': ['Image', 'v1', 'Cluster'],
  'imagestreams.image.openshift.io': ['ImageStream', 'v1', 'Namespaced'],
  'infrastructures.config.openshift.io': ['Infrastructure', 'v1', 'Cluster'],
  'machineconfigpools.machineconfiguration.openshift.io': ['MachineConfigPool', 'v1', 'Cluster'],
  'machineconfigs.machineconfiguration.openshift.io': ['MachineConfig', 'v1', 'Cluster'],
  'machines.cluster.x-k8s.io': ['Machine', 'v1beta1,v1beta2', 'Namespaced'],
  'nodepools.hypershift.openshift.io': ['NodePool', 'v1beta1', 'Namespaced'],
  'sidecarsets.apps.kruise.io': ['SidecarSet', 'v1alpha1,v1beta1', 'Cluster'],
  'pullstatuses.pullwright.dev': ['PullStatus', 'v1alpha1', 'Namespaced'],
};

/** Every definition that {@link installCrds} knows. */
export const ALL_CRDS: readonly CrdName[] = Object.keys(KINDS) as CrdName[];

interface Definition {
  readonly metadata: { readonly name: string };
}

/** Installs `names` and waits until the server serves them. */
export async function installCrds(client: Requester, names: readonly CrdName[]): Promise<void> {
  await Promise.all(names.map((name) => installCrd(client, definitionOf(name))));
}

/** Installs one definition, ours or any other. */
export async function installCrd(client: Requester, definition: Definition): Promise<void> {
  const apiVersion = 'apiextensions.k8s.io/v1';
  const path = `/apis/${apiVersion}/customresourcedefinitions/${definition.metadata.name}`;
  await applyObject(client, { apiVersion, kind: 'CustomResourceDefinition', ...definition });
  for (const deadline = Date.now() + 20_000; Date.now() < deadline; await delay(50)) {
    const { body } = await client.request('GET', path);
    const established = (body.status?.conditions ?? []).some(
      (condition: { type: string; status: string }) =>
        condition.type === 'Established' && condition.status === 'True',
    );
    if (established && (await served(client, body))) return;
  }
  throw new Error(`Cannot install ${definition.metadata.name}: it is not served after 20 s`);
}

// "Established" comes a moment before the handlers are there.
async function served(
  client: Requester,
  definition: {
    spec: { group: string; names: { plural: string }; versions: { name: string; served: boolean }[] };
  },
): Promise<boolean> {
  const { group, names, versions } = definition.spec;
  const version = versions.find((candidate) => candidate.served)?.name ?? '';
  const listed = await client.request('GET', `/apis/${group}/${version}/${names.plural}?limit=1`);
  return listed.status === 200;
}

function definitionOf(name: CrdName): Definition {
  if (name === 'pullstatuses.pullwright.dev') return pullStatusCrd();
  const folder = process.env['PULLWRIGHT_CRDS'];
  const file = folder === undefined ? '' : join(folder, `${name}.yaml`);
  if (file === '' || !existsSync(file)) return permissive(name);
  const definition = parse(readFileSync(file, 'utf8')) as Record<string, unknown> & Definition;
  return { ...definition, metadata: withoutServerFields(definition.metadata) };
}

function withoutServerFields(
  metadata: Definition['metadata'] & { annotations?: object },
): Definition['metadata'] {
  return {
    name: metadata.name,
    ...(metadata.annotations === undefined ? {} : { annotations: metadata.annotations }),
  };
}

function permissive(name: CrdName): Definition {
  const [kind, versions, scope] = KINDS[name];
  const plural = name.slice(0, name.indexOf('.'));
  const schema = {
    openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  };
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name,
      // Groups under k8s.io are protected; this is what a definition that is not reviewed upstream says.
      annotations: { 'api-approved.kubernetes.io': 'unapproved, test only' },
    },
    spec: {
      group: name.slice(name.indexOf('.') + 1),
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      scope,
      versions: versions.split(',').map((version, index, all) => ({
        name: version,
        served: true,
        storage: index === all.length - 1,
        schema,
        subresources: { status: {} },
      })),
    },
  };
  return definition;
}
