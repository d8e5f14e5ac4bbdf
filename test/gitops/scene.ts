/** Objects that both tools' journeys look at. */

import type { TestObject } from '../control-plane/resource-path.ts';
import { grantObject } from '../pull-secret-injection/live.ts';
import { pullSecret } from '../reconcile/scene.ts';

/** The part of an object that identifies it. */
export function named(apiVersion: string, kind: string, name: string, namespace?: string): TestObject {
  return { apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } };
}

export const DEPLOYMENT: TestObject = named(
  'apps/v1',
  'Deployment',
  'pullwright-reconciler',
  'pullwright-system',
);
export const VERIFY: TestObject = named('batch/v1', 'CronJob', 'pullwright-verify', 'pullwright-system');
export const ROLE: TestObject = named(
  'rbac.authorization.k8s.io/v1',
  'ClusterRole',
  'pullwright-global-pull-secret',
);
/** Profile of the documents' fleet, and the copy that it distributes to a namespace. */
export const PROFILE: TestObject = named('pullwright.dev/v1alpha1', 'PullSecretProfile', 'team-registry');
export const COPY: TestObject = named('v1', 'Secret', 'team-registry', 'team-a');

/** The profile's source, and its grant to every namespace that the profile selects. */
export const SOURCE: TestObject = pullSecret('quay-robot', 'platform', ['quay.io']);
export const GRANT: TestObject = grantObject('platform', ['quay-robot']);
