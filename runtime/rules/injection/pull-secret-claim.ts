/**
 * `PullSecretClaim` (pullwright.dev/v1alpha1, namespaced): the owner of a namespace asks for what a profile offers on request. The
 * owner of the source approves by a grant.
 */
import type { KubeObject } from '../kubernetes/object.ts';
import type { Shape } from '../kubernetes/shape.ts';
import { ownObjectProblems } from './own-kind.ts';

export const CLAIM_API_VERSION = 'pullwright.dev/v1alpha1';
export const CLAIM_KIND = 'PullSecretClaim';

/** A claim, read. */
export interface PullSecretClaim {
  readonly namespace: string;
  readonly name: string;
  /** Name of the profile; empty when it cannot be read. */
  readonly profile: string;
  /** With problems it asks for nothing. */
  readonly problems: readonly string[];
}

/** What the definition of the kind allows. */
export const CLAIM_SHAPE: Shape = { fields: { profile: 'string' } };

/** Name of a profile; the definition states the same. */
export const PROFILE_NAME: RegExp = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/**
 * Reads a claim. Total: one that cannot be read asks for nothing, and says why.
 *
 * @example
 * ```ts
 * import { readPullSecretClaim } from './pull-secret-claim.ts';
 * import assert from 'node:assert/strict';
 *
 * const object = { apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullSecretClaim', metadata: { namespace: 'shop', name: 'quay' } };
 * assert.equal(readPullSecretClaim({ ...object, spec: { profile: 'team' } }).profile, 'team');
 * assert.deepEqual(readPullSecretClaim({ ...object, spec: {} }).problems, [
 *   'spec.profile: required value: must be the name of a PullSecretProfile',
 * ]);
 * ```
 */
export function readPullSecretClaim(object: KubeObject): PullSecretClaim {
  const { namespace = '', name } = object.metadata;
  const shape = ownObjectProblems(object, CLAIM_SHAPE);
  const { profile } = (shape.length > 0 ? {} : (object.spec ?? {})) as { readonly profile?: string };
  const problems = shape.length > 0 ? shape : profileProblems(profile);
  return { namespace, name, profile: problems.length > 0 ? '' : (profile ?? ''), problems };
}

function profileProblems(profile: string | undefined): readonly string[] {
  if (profile === undefined || profile === null || profile === '')
    return ['spec.profile: required value: must be the name of a PullSecretProfile'];
  if (PROFILE_NAME.test(profile)) return [];
  const shown = JSON.stringify(profile.slice(0, 80));
  return [`spec.profile: invalid value ${shown}: must be the name of a PullSecretProfile`];
}
