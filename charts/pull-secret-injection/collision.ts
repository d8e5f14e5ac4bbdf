/** The admission policy that refuses a profile which asks for a Secret name that another one brings to the same namespaces. */
import { PROFILE_API_VERSION, PROFILE_KIND } from '../../runtime/rules/injection/profile.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { admissionPolicy, labels } from '../shared/objects.ts';

export const COLLISION_POLICY_NAME = 'pullwright-pull-secret-profile-collision';

/**
 * Each profile that is there is held against the one that is written. Whether two selectors meet cannot be told in general; it
 * can be seen when one of them asks for no more than the other. What is not seen here the reconciler tells the later profile.
 */
export function collisionPolicy(): readonly KubeObject[] {
  const metadata = {
    name: COLLISION_POLICY_NAME,
    labels: labels({ name: COLLISION_POLICY_NAME, component: 'pull-secret-injection' }),
  };
  return admissionPolicy({
    metadata,
    apiGroup: 'pullwright.dev',
    apiVersion: '*',
    resource: 'pullsecretprofiles',
    operations: ['CREATE', 'UPDATE'],
    // Not to be evaluated is no reason to refuse: the holder keeps its copies all the same.
    failurePolicy: 'Ignore',
    against: { apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND },
    matchConditions: [
      {
        name: 'spec-changes',
        expression: "request.operation == 'CREATE' || object.spec != oldObject.spec",
      },
    ],
    variables: [
      { name: 'collides', expression: collides('object') },
      { name: 'did', expression: `oldObject != null && ${collides('oldObject')}` },
    ],
    validations: [
      {
        expression:
          'params.metadata.name == object.metadata.name || has(params.metadata.deletionTimestamp) || (has(params.spec.successor) && params.spec.successor == object.metadata.name) || !variables.collides || variables.did',
        message: 'another profile brings another Secret of the same name to the same namespaces',
        messageExpression: `'profile "' + params.metadata.name + '" brings another Secret "' + object.spec.secrets.filter(s, ${rivals('s', 'params')})[0].name + '" to namespaces that this one selects too: use another name, or have it name its successor: spec.successor: ' + object.metadata.name`,
      },
    ],
    actions: ['Deny'],
  });
}

function collides(object: string): string {
  const [a, b] = [`${object}.spec.namespaceSelector`, 'params.spec.namespaceSelector'];
  const meet = `(${a} == ${b} || ${asksNoMore(a, b)} || ${asksNoMore(b, a)})`;
  return `${brings(object)} && ${brings('params')} && ${meet} && ${object}.spec.secrets.exists(s, ${rivals('s', 'params')})`;
}

function brings(object: string): string {
  return `(!has(${object}.spec.mode) || ${object}.spec.mode != 'Inject')`;
}

/** Every namespace that `b` selects, `a` selects too. */
function asksNoMore(a: string, b: string): string {
  const labels = `${a}.matchLabels.all(k, has(${b}.matchLabels) && k in ${b}.matchLabels && ${b}.matchLabels[k] == ${a}.matchLabels[k])`;
  return `((!has(${a}.matchExpressions) || size(${a}.matchExpressions) == 0) && (!has(${a}.matchLabels) || ${labels}))`;
}

function rivals(secret: string, other: string): string {
  return `has(${secret}.sources) && size(${secret}.sources) > 0 && ${other}.spec.secrets.exists(t, t.name == ${secret}.name && has(t.sources) && size(t.sources) > 0 && t.sources != ${secret}.sources)`;
}
