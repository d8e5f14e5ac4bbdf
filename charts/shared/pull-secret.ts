/** A pull secret as a construct: a reference at synth time, never a value. */
import type { Construct } from 'constructs';
import { ObjectGroup } from './object-group.ts';
import { type PolicyRule, secretsByName } from './rbac.ts';
import {
  type SecretReference,
  type SecretSource,
  secretSourceObjects,
  sourceFiles,
} from './secret-source.ts';

export interface PullSecretProps extends SecretReference {
  /** What makes the Secret; absent when it is there already. @default none */
  readonly source?: SecretSource;
}

/**
 * Names a Secret of type `kubernetes.io/dockerconfigjson` and renders what makes it.
 *
 * @example
 * ```ts
 * import { PullSecret } from './pull-secret.ts';
 * import { Testing } from 'cdk8s';
 * import assert from 'node:assert/strict';
 *
 * const chart = Testing.chart();
 * const secret = new PullSecret(chart, 'tenant', {
 *   namespace: 'kube-system',
 *   name: 'additional-pull-secret',
 *   source: { externalSecret: { store: 'vault', key: 'registries/team-a' } },
 * });
 * assert.deepEqual(secret.readRule().resourceNames, ['additional-pull-secret']);
 * assert.equal(Testing.synth(chart)[0].kind, 'ExternalSecret');
 * ```
 */
export class PullSecret extends ObjectGroup {
  readonly reference: SecretReference;
  /** Files that you keep yourself (SOPS), relative to the cluster's folder: pass them to `renderTree` as `kept`. */
  readonly keptFiles: readonly string[];

  constructor(scope: Construct, id: string, props: PullSecretProps) {
    const reference = { namespace: props.namespace, name: props.name };
    super(scope, id, props.source === undefined ? [] : secretSourceObjects(reference, props.source));
    this.reference = reference;
    this.keptFiles = props.source === undefined ? [] : sourceFiles(reference, props.source);
  }

  /** For a Role in the Secret's namespace: `get` on this Secret and no other. */
  readRule(): PolicyRule {
    return secretsByName([this.reference.name], ['get']);
  }
}
