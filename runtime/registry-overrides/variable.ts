/** The value of `OPENSHIFT_IMG_OVERRIDES`, and what of it is left out where all of it would be too long. */
import { HOSTED_CLUSTER_NAMESPACE, type Read, type World } from '../controller/contract.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { Verdict } from '../rules/kubernetes/pull-status.ts';
import { askedSources } from '../rules/registry-overrides/asked-sources.ts';
import {
  formatImageOverrides,
  OVERRIDES_ENV,
  type OverrideMap,
} from '../rules/registry-overrides/registry-overrides.ts';

/** A longer one makes the kernel refuse to start the container. In characters; with the name, 128 KiB. */
export const MAX_VALUE = 131_000;

export interface VariableValue {
  /** May still be longer than {@link MAX_VALUE}. */
  readonly text: string;
  /** One for each source that is left out. */
  readonly verdicts: readonly Verdict[];
}

/**
 * The value for `overrides`. `images`, asked for only where the whole is too long: every image that the control plane was told of
 * by name.
 *
 * @example
 * ```ts
 * import { variableValue } from './variable.ts';
 * import assert from 'node:assert/strict';
 *
 * const overrides = new Map([['quay.io/ocp', ['z.example.com', 'a.example.com']]]);
 * assert.equal(variableValue(overrides, () => []).text, 'quay.io/ocp=z.example.com,quay.io/ocp=a.example.com');
 * ```
 */
export function variableValue(overrides: OverrideMap, images: () => readonly string[]): VariableValue {
  const whole = formatImageOverrides(overrides, 'given');
  if (whole.length <= MAX_VALUE) return { text: whole, verdicts: [] };
  const { asked, never } = askedSources(overrides, images());
  const message = `with all ${overrides.size} sources ${OVERRIDES_ENV} would have ${whole.length} characters, at most ${MAX_VALUE} are possible: this one is left out, because no component of a control plane looks up an image of it; nodes follow it as before`;
  return {
    text: formatImageOverrides(asked, 'given'),
    verdicts: never.map((source) => ({
      subject: source,
      verdict: 'Warning',
      reason: 'NeverAsked',
      message,
    })),
  };
}

const NODE_POOL = {
  role: 'management',
  apiVersion: 'hypershift.openshift.io/v1beta1',
  kind: 'NodePool',
} as const;

export const OWN_NODE_POOLS_READ: Read = {
  ...NODE_POOL,
  namespace: HOSTED_CLUSTER_NAMESPACE,
  optional: true,
};

/** Images that a control plane is told of by name: releases of the cluster and its NodePools, and what annotations name. */
export function imagesOfControlPlane(world: World, cluster: KubeObject): readonly string[] {
  const { namespace, name, annotations } = cluster.metadata;
  const pools = world
    .list({ ...NODE_POOL, namespace: namespace ?? '' })
    .filter(({ spec }) => (spec as { clusterName?: unknown } | undefined)?.clusterName === name);
  const { release, controlPlaneRelease } = (cluster.spec ?? {}) as Record<string, { image?: unknown } | null>;
  const { version } = (cluster.status ?? {}) as {
    version?: { history?: readonly ({ image?: unknown } | null)[] } | null;
  };
  const named: unknown[] = [
    release?.image,
    controlPlaneRelease?.image,
    ...(version?.history ?? []).map((one) => one?.image),
    ...pools.map(
      ({ spec }) => (spec as { release?: { image?: unknown } | null } | undefined)?.release?.image,
    ),
    // Images, or pairs of them.
    ...Object.values(annotations ?? {}).flatMap((value) => String(value).split(/[=,\s]+/)),
  ];
  return named.filter((image): image is string => typeof image === 'string' && image !== '');
}
