/** One hosted cluster beside its management cluster, and runs of the reconciler over both. */

import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { EntryStatus, PullStatusTarget } from '../../runtime/core/kubernetes/pull-status.ts';
import type { ClusterPair, Lookup, LookupResult, Sample } from '../../runtime/engine/contract.ts';
import { runOffline } from '../../runtime/engine/offline/offline.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { reconcilers } from '../../runtime/registry-overrides/reconciler/reconcile.ts';
import { meta, refOf } from '../support/meta.ts';

export const NAMESPACE = 'clusters-prod';
export const SCOPE: ClusterPair = {
  name: 'clusters/prod',
  controlPlaneNamespace: NAMESPACE,
  hostedCluster: { namespace: 'clusters', name: 'prod' },
};

export function hostedCluster(
  annotations: Readonly<Record<string, string>> = {},
  spec: Readonly<Record<string, unknown>> = {},
): KubeObject {
  return {
    ...meta('hypershift.openshift.io/v1beta1 HostedCluster', {
      name: 'prod',
      namespace: 'clusters',
      uid: 'u-prod',
      annotations,
    }),
    spec: { olmCatalogPlacement: 'management', ...spec },
    status: { version: { history: [{ version: '4.22.3' }] } },
  };
}

export function mirrorSet(
  kind: 'ImageDigestMirrorSet' | 'ImageTagMirrorSet' | 'ImageContentSourcePolicy',
  name: string,
  entries: readonly unknown[],
): KubeObject {
  const list = {
    ImageDigestMirrorSet: 'imageDigestMirrors',
    ImageTagMirrorSet: 'imageTagMirrors',
    ImageContentSourcePolicy: 'repositoryDigestMirrors',
  }[kind];
  const apiVersion =
    kind === 'ImageContentSourcePolicy' ? 'operator.openshift.io/v1alpha1' : 'config.openshift.io/v1';
  return { apiVersion, kind, metadata: { name, uid: `u-${name}` }, spec: { [list]: entries } };
}

/** With managedFields, as from an API server. */
export function deployment(name: string, env: readonly unknown[] = [], manager = 'kubectl'): KubeObject {
  const container = name.endsWith('-catalog') ? 'registry' : name;
  const managedFields = [{ manager, operation: 'Update', fieldsV1: {} }];
  const init = name.endsWith('-catalog')
    ? { initContainers: [{ name: 'extract-content', image: 'old' }] }
    : {};
  return {
    ...meta('apps/v1 Deployment', { name, namespace: NAMESPACE, uid: `u-${name}`, managedFields }),
    spec: {
      template: {
        spec: {
          ...init,
          containers: [
            { name: container, image: 'old', env },
            { name: 'sidecar', image: 's' },
          ],
        },
      },
    },
  };
}

/** The two Deployments that carry the variable. */
export const DEPLOYMENTS: readonly KubeObject[] = [
  deployment('control-plane-operator', [{ name: 'POD_NAME', value: 'x' }]),
  deployment('ignition-server'),
];

/** Mirrors for digests, deliberately not in alphabetical order. */
export const DIGESTS: KubeObject = mirrorSet('ImageDigestMirrorSet', 'release', [
  { source: 'quay.io/ocp', mirrors: ['z.example.com/ocp', 'a.example.com/ocp'] },
]);
/** Mirrors for tags, and a source that must not be contacted. */
export const TAGS: KubeObject = mirrorSet('ImageTagMirrorSet', 'team', [
  {
    source: 'registry.example.com/team',
    mirrors: ['m.example.com/team'],
    mirrorSourcePolicy: 'NeverContactSource',
  },
]);

export interface RunInput {
  readonly options?: Readonly<Record<string, unknown>>;
  readonly facts?: Readonly<Record<string, LookupResult>>;
  readonly hosted?: readonly KubeObject[];
  readonly now?: Date;
}

export interface RunOutput {
  readonly management: ObjectStore;
  readonly hosted: ObjectStore;
  readonly verbs: readonly string[];
  readonly needs: readonly Lookup[];
  readonly problems: readonly string[];
  readonly events: readonly string[];
  /** `name{labels} value`, without the scope. */
  readonly metrics: readonly string[];
}

/** Reconciles once to a fixed point. */
export function run(objects: readonly KubeObject[], input: RunInput = {}): RunOutput {
  const management = storeOf(objects);
  const hosted = storeOf(input.hosted ?? []);
  const result = runOffline({
    reconcilers: reconcilers({ catalogs: false, ...input.options }),
    scope: SCOPE,
    stores: { management, hosted },
    now: input.now ?? new Date('2026-03-02T08:15:00Z'),
    facts: (need) => input.facts?.[need.image],
  });
  const reports = result.reports;
  return {
    management,
    hosted,
    verbs: result.objects.map((one) => `${one.verb} ${one.ref.kind}/${one.ref.name}`),
    needs: reports.flatMap((one) => one.needs),
    problems: reports.flatMap((one) => one.problems.map((problem) => `${problem.code}: ${problem.message}`)),
    events: reports.flatMap((one) => one.events.map((event) => `${event.reason}: ${event.note}`)),
    metrics: reports.flatMap((one) => one.metrics.map(metricText)),
  };
}

function metricText({ name, value, labels = {} }: Sample): string {
  const { scope: _scope, ...rest } = labels;
  return `${name}${JSON.stringify(rest)} ${value}`;
}

export function storeOf(objects: readonly KubeObject[]): ObjectStore {
  const store = new ObjectStore();
  for (const object of objects) store.set(object);
  return store;
}

export function deploymentOf(out: RunOutput, name: string): KubeObject | undefined {
  return out.management.get(refOf('apps/v1 Deployment', name, NAMESPACE));
}

interface PodSpec {
  readonly containers: readonly {
    readonly name: string;
    readonly image?: string;
    readonly env?: readonly { name: string; value: string }[];
  }[];
  readonly initContainers?: readonly { readonly name: string; readonly image?: string }[];
}

export function podSpec(object: KubeObject | undefined): PodSpec {
  if (object === undefined) throw new Error('there is no such Deployment');
  return (object.spec as { template: { spec: PodSpec } }).template.spec;
}

/** The ConfigMap with the document. */
export function documentOf(out: RunOutput): KubeObject {
  const metadata = { namespace: NAMESPACE, name: 'registry-overrides' };
  const found = out.management.get({ apiVersion: 'v1', kind: 'ConfigMap', ...metadata });
  if (found === undefined) throw new Error('there is no document');
  return found;
}

/** All objects after a run, for the next run. */
export function after(out: RunOutput): readonly KubeObject[] {
  return [...out.management];
}

/** What is written, deleted or kept among these kinds. */
export function verbsOf(out: RunOutput, kinds: RegExp): readonly string[] {
  return out.verbs.filter((verb) => kinds.test(verb));
}

/** Value of the variable on a Deployment; undefined when it is not set. */
export function variable(out: RunOutput, name: string): string | undefined {
  const container = podSpec(deploymentOf(out, name)).containers.find((one) => one.name === name);
  return container?.env?.find((one) => one.name === 'OPENSHIFT_IMG_OVERRIDES')?.value;
}

export interface Status {
  readonly about: PullStatusTarget;
  readonly conditions: readonly { type: string; status: string; reason: string; message: string }[];
  readonly verdicts: readonly EntryStatus[];
  readonly summary: Readonly<Record<string, string>>;
}

export function statusOf(out: RunOutput): Status {
  const object = out.management.get(
    refOf('pullwright.dev/v1alpha1 PullStatus', 'hostedcluster-prod', 'clusters'),
  );
  return object?.status as Status;
}

export function condition(out: RunOutput, type: string): string {
  const found = statusOf(out).conditions.find((one) => one.type === type);
  return found === undefined ? 'absent' : `${found.status} ${found.reason}`;
}
