/** Changes of every kind that reaches a reconciler, each with the weight that says how often it is made. */

import { readFileSync } from 'node:fs';
import { pullSecretGrantCrd } from '../../runtime/pull-secret-injection/kinds/grant.ts';
import { pullSecretProfileCrd } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { installCrd } from '../control-plane/crds.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { grantObject, namespaceObject, profileObject, sourceObject } from '../pull-secret-injection/live.ts';
import { additional, declare, pullSecret, secretOf } from '../reconcile/scene.ts';
import { deployment, mirrors } from '../registry-overrides/live-objects.ts';
import { CLUSTERS, hostedCluster, hostedControlPlane } from '../support/hypershift.ts';

export interface Change {
  readonly name: string;
  readonly weight: number;
  make(planes: Planes, random: () => number): Promise<unknown>;
}

/** A management cluster, and the hosted cluster that it looks after. */
export interface Planes {
  readonly management: ControlPlane;
  readonly hosted: ControlPlane;
}

const PLATFORM_NAMESPACE = 'clusters-prod';
const NAMESPACES = 12;

function pick(random: () => number, count: number): number {
  return Math.floor(random() * count);
}

function named(apiVersion: string, kind: string, name: string, namespace?: string): TestObject {
  return { apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } };
}

export const CHANGES: readonly Change[] = [
  {
    name: 'the platform secret rotates',
    weight: 4,
    make: ({ management }, random) =>
      management.apply(
        pullSecret('pull-secret', PLATFORM_NAMESPACE, ['quay.io', `p${pick(random, 20)}.example.com`]),
      ),
  },
  {
    name: 'the tenant secret changes',
    weight: 6,
    make: ({ hosted }, random) =>
      hosted.apply(
        additional(...Array.from({ length: 1 + pick(random, 30) }, (_, index) => `t${index}.example.com`)),
      ),
  },
  {
    name: 'the tenant secret is broken',
    weight: 1,
    make: ({ hosted }) =>
      hosted.apply(
        secretOf('additional-pull-secret', 'kube-system', {
          '.dockerconfigjson': Buffer.from('{"auths":[]}').toString('base64'),
        }),
      ),
  },
  {
    name: 'the tenant secret is deleted',
    weight: 1,
    make: ({ hosted }) => hosted.remove(named('v1', 'Secret', 'additional-pull-secret', 'kube-system')),
  },
  {
    name: 'the merged secret is deleted by hand',
    weight: 1,
    make: ({ hosted }) => hosted.remove(named('v1', 'Secret', 'global-pull-secret', 'kube-system')),
  },
  {
    name: 'a namespace comes',
    weight: 3,
    make: ({ hosted }, random) =>
      hosted.apply(namespaceObject(`team-${pick(random, NAMESPACES)}`, { tier: random() < 0.5 ? 'a' : 'b' })),
  },
  {
    name: 'a namespace goes',
    weight: 1,
    make: ({ hosted }, random) => hosted.remove(named('v1', 'Namespace', `team-${pick(random, NAMESPACES)}`)),
  },
  {
    name: 'a profile changes',
    weight: 3,
    make: ({ hosted }, random) =>
      hosted.apply(
        profileObject(`profile-${pick(random, 4)}`, {
          namespaceSelector: { matchLabels: { tier: random() < 0.5 ? 'a' : 'b' } },
          selector: {},
          secrets: [
            { name: `registry-${pick(random, 2)}`, sources: [{ namespace: 'sources', name: 'registry' }] },
          ],
        }),
      ),
  },
  {
    name: 'a profile is deleted',
    weight: 1,
    make: ({ hosted }, random) =>
      hosted.remove(named('pullwright.dev/v1alpha1', 'PullSecretProfile', `profile-${pick(random, 4)}`)),
  },
  {
    name: 'the source of a profile rotates',
    weight: 3,
    make: ({ hosted }, random) =>
      hosted.apply(sourceObject('sources', 'registry', [`s${pick(random, 9)}.example.com`])),
  },
  {
    name: 'a mirror set changes',
    weight: 3,
    make: ({ management }, random) =>
      management.apply(
        mirrors(
          Array.from({ length: 1 + pick(random, 4) }, (_, index) => [
            `quay.io/team-${index}`,
            [`m${pick(random, 9)}.example.com/team-${index}`],
          ]),
          `mirrors-${pick(random, 3)}`,
        ),
      ),
  },
  {
    name: 'a mirror set is deleted',
    weight: 1,
    make: ({ management }, random) =>
      management.remove(
        named('config.openshift.io/v1', 'ImageDigestMirrorSet', `mirrors-${pick(random, 3)}`),
      ),
  },
];

/** Kills and worse: each is over, and the API server back, when it resolves. */
export const TROUBLES: readonly Change[] = [
  { name: 'the API server is killed', weight: 3, make: ({ hosted }) => hosted.apiServer.restart() },
  {
    name: 'the API server of the management cluster is killed',
    weight: 2,
    make: ({ management }) => management.apiServer.restart(),
  },
  {
    name: 'the history is compacted while it is down',
    weight: 1,
    make: async ({ hosted }) => {
      await hosted.compact();
      await hosted.apiServer.restart();
    },
  },
  {
    name: 'the API server hangs for two seconds',
    weight: 2,
    make: async ({ hosted }) => {
      hosted.apiServer.pause();
      await new Promise((resolve) => setTimeout(resolve, 2000));
      hosted.apiServer.resume();
    },
  },
];

/** One of `changes`, by weight. */
export function choose(changes: readonly Change[], random: () => number): Change {
  const total = changes.reduce((sum, { weight }) => sum + weight, 0);
  let at = random() * total;
  for (const change of changes) {
    at -= change.weight;
    if (at < 0) return change;
  }
  return changes[0] as Change;
}

/** Creates the objects that the changes modify, except those in the namespaces of teams. */
export async function furnish({ management, hosted }: Planes): Promise<void> {
  for (const crd of [pullSecretProfileCrd(), pullSecretGrantCrd()]) await installCrd(hosted.client, crd);
  for (const name of ['openshift-config', 'sources']) await hosted.apply(namespaceObject(name));
  await hosted.apply(sourceObject('sources', 'registry', ['s.example.com']));
  await hosted.apply(grantObject('sources', ['registry']));
  await management.apply(namespaceObject(CLUSTERS));
  await management.apply(hostedCluster('prod'));
  await declare(management, 'prod', readFileSync(hosted.kubeconfig, 'utf8'), hostedControlPlane('prod'));
  for (const name of ['control-plane-operator', 'ignition-server'])
    await management.apply(deployment('prod', name));
}
