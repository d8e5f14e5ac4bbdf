/** The reconciler of a stand-alone cluster as a construct. */
import type { Construct } from 'constructs';
import { readFleet } from './fleet.ts';
import { ObjectGroup } from './shared/object-group.ts';
import { OWN_NAMESPACE } from './shared/objects.ts';
import { type ReconcilerSettings, reconcilerObjects } from './shared/reconciler.ts';
import type { Delivery } from './shared/system.ts';
import type { SystemInputs } from './systems.ts';

/** A stand-alone cluster is one: there is nothing to divide. */
export interface ReconcilerProps extends Omit<ReconcilerSettings, 'shards'> {
  /** Image of the pods, with tag or digest. */
  readonly image: string;
  /** Systems that it looks after, with their sections. */
  readonly systems: SystemInputs;
  /** @default {'pullwright-system'} */
  readonly namespace?: string;
  /** Whether it also applies what is not rendered. @default {'gitops'} */
  readonly delivery?: Delivery;
}

/**
 * Namespace, Deployment, configuration, PodDisruptionBudget, NetworkPolicy and the rights that the systems need.
 *
 * @throws FleetError when a section has mistakes
 *
 * @example
 * ```ts
 * import { Reconciler } from './reconciler.ts';
 * import { Testing } from 'cdk8s';
 * import assert from 'node:assert/strict';
 *
 * const chart = Testing.chart();
 * new Reconciler(chart, 'reconciler', {
 *   image: 'registry.example.com/pullwright:0.1.0',
 *   systems: { 'global-pull-secret': {} },
 *   replicas: 3,
 * });
 * const deployment = Testing.synth(chart).find((object) => object.kind === 'Deployment');
 * assert.equal(deployment.spec.replicas, 3);
 * ```
 */
export class Reconciler extends ObjectGroup {
  constructor(scope: Construct, id: string, props: ReconcilerProps) {
    const { image, systems, namespace = OWN_NAMESPACE, delivery = 'gitops', ...settings } = props;
    const fleet = readFleet({ image, namespace, clusters: [{ name: 'standalone', delivery, systems }] }, id);
    const objects = fleet.clusters.flatMap(({ context, sections }) => {
      const parts = sections.flatMap(({ system, config }) => system.reconciler?.(config, context) ?? []);
      return reconcilerObjects(context, parts, settings);
    });
    super(scope, id, objects);
  }
}
