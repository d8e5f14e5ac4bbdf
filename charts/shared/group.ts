/** A pull secret as a construct: a reference at synth time, never a value. */
import { ApiObject, type ApiObjectProps } from 'cdk8s';
import type { EnvValue, ISecret } from 'cdk8s-plus-28';
import { Construct } from 'constructs';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import {
  grant,
  labels,
  type PolicyRule,
  type Subject,
  secretsByName,
} from '../../runtime/core/kubernetes/objects.ts';
import {
  type SecretReference,
  type SecretSource,
  secretSourceObjects,
  sourceFiles,
} from '../../runtime/global-pull-secret/secret-source.ts';

// Plain objects as constructs, for composition with cdk8s.

/**
 * A construct with one ApiObject per plain object. Its id `<kind>-<namespace>-<name>` does not depend on other objects, so
 * patches by path stay valid.
 *
 * @example
 * ```ts
 * import { ObjectGroup } from './group.ts';
 * import { Testing } from 'cdk8s';
 * import assert from 'node:assert/strict';
 *
 * const chart = Testing.chart();
 * new ObjectGroup(chart, 'group', [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } }]);
 * assert.equal(Testing.synth(chart)[0].metadata.name, 'a');
 * ```
 */
export class ObjectGroup extends Construct {
  constructor(scope: Construct, id: string, objects: readonly KubeObject[]) {
    super(scope, id);
    for (const object of objects) {
      const { namespace, name } = object.metadata;
      const parts = [object.kind, namespace, name].filter((part) => part !== undefined);
      new ApiObject(this, parts.join('-'), object as unknown as ApiObjectProps);
    }
  }
}

export interface PullSecretProps extends SecretReference {
  /** Renders the source of the Secret; absent when the Secret exists already. @default none */
  readonly source?: SecretSource;
}

/**
 * References a Secret of type `kubernetes.io/dockerconfigjson` and renders its source. Implements `ISecret` of cdk8s-plus-28, for
 * `dockerRegistryAuth` of a Deployment or `allowRead` of a Role.
 *
 * @example
 * ```ts
 * import { PullSecret } from './group.ts';
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
 * secret.allowRead({ namespace: 'kube-system', name: 'syncer' });
 * assert.deepEqual(Testing.synth(chart).map(({ kind }) => kind), ['ExternalSecret', 'Role', 'RoleBinding']);
 * ```
 */
export class PullSecret extends ObjectGroup implements ISecret {
  readonly apiGroup = '';
  readonly apiVersion = 'v1';
  readonly kind = 'Secret';
  readonly resourceType = 'secrets';
  readonly reference: SecretReference;
  /** SOPS files that you maintain, relative to the cluster's folder: pass them to `renderTree` as `kept`. */
  readonly keptFiles: readonly string[];

  constructor(scope: Construct, id: string, props: PullSecretProps) {
    const reference = { namespace: props.namespace, name: props.name };
    super(scope, id, props.source === undefined ? [] : secretSourceObjects(reference, props.source));
    this.reference = reference;
    this.keptFiles = props.source === undefined ? [] : sourceFiles(reference, props.source);
  }

  /** Rule for a Role in the Secret's namespace: `get` on this Secret only. */
  readRule(): PolicyRule {
    return secretsByName([this.reference.name], ['get']);
  }

  get name(): string {
    return this.reference.name;
  }

  get resourceName(): string {
    return this.reference.name;
  }

  asApiResource(): this {
    return this;
  }

  asNonApiResource(): undefined {
    return undefined;
  }

  /**
   * Adds a Role and RoleBinding that let these accounts `get` this Secret only.
   *
   * @param readers ServiceAccounts of any namespace
   */
  allowRead(...readers: readonly Subject[]): void {
    const { namespace, name } = this.reference;
    const metadata = {
      namespace,
      name: `read-${name}`,
      labels: labels({ name: 'pull-secret', component: 'access' }),
    };
    new ObjectGroup(this, 'read', grant(metadata, [this.readRule()], ...readers));
  }

  /**
   * Required by `ISecret`, but unsupported: a pull secret is for the kubelet, and environment variables leak to child processes
   * and crash reports.
   *
   * @throws TypeError always
   */
  envValue(key: string): EnvValue {
    throw new TypeError(
      `Cannot put key "${key}" of pull secret "${this.reference.namespace}/${this.name}" into the environment: name it in imagePullSecrets, or mount it as a file`,
    );
  }
}
