/** Plain objects as constructs, so that they compose with everything else of cdk8s. */
import { ApiObject, type ApiObjectProps } from 'cdk8s';
import { Construct } from 'constructs';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';

/**
 * A construct that holds one ApiObject per plain object; its id is `<kind>-<namespace>-<name>`, which stays the same when
 * others come and go, so that patches by path survive.
 *
 * @example
 * ```ts
 * import { ObjectGroup } from './object-group.ts';
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
    for (const object of objects) new ApiObject(this, objectId(object), object as unknown as ApiObjectProps);
  }
}

/** `Role-kube-system-global-pull-secret-syncer` */
export function objectId(object: KubeObject): string {
  const { namespace, name } = object.metadata;
  return [object.kind, namespace, name].filter((part) => part !== undefined).join('-');
}
