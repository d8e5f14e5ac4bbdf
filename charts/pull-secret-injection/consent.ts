/**
 * Admission policies that keep distribution honest: an author of a profile must be allowed to read what it distributes,
 * and the reconciler's own account may write nothing but copies.
 */

import { userOf } from '../../runtime/core/kubernetes/account-bounds.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import {
  type AdmissionPolicyInput,
  admissionPolicy,
  labels,
  type Validation,
} from '../../runtime/core/kubernetes/objects.ts';
import { MAX_GRANTED_SECRETS } from '../../runtime/pull-secret-injection/kinds/grant.ts';
import {
  MAX_SECRETS,
  MAX_SOURCES,
  PROFILE_API_VERSION,
  PROFILE_KIND,
} from '../../runtime/pull-secret-injection/kinds/profile.ts';

/** Refuses what does not hold; where it cannot be evaluated, too, since consent is not optional. */
function policy(
  name: string,
  more: Pick<AdmissionPolicyInput, 'apiGroup' | 'resource' | 'validations'> & Partial<AdmissionPolicyInput>,
): readonly KubeObject[] {
  return admissionPolicy({
    metadata: { name, labels: labels({ name, component: 'pull-secret-injection' }) },
    apiVersion: '*',
    operations: ['CREATE', 'UPDATE'],
    failurePolicy: 'Fail',
    actions: ['Deny'],
    ...more,
  });
}

const SPEC_CHANGES = {
  name: 'spec-changes',
  expression: "request.operation == 'CREATE' || object.spec != oldObject.spec",
};

/** The two policies of the reconciler's account. */
function accountPolicy(
  name: string,
  { namespace, name: account }: GuardInput['serviceAccount'],
  more: Parameters<typeof policy>[1],
): readonly KubeObject[] {
  return policy(name, {
    apiVersion: 'v1',
    matchConditions: [
      {
        name: 'reconciler',
        expression: `request.userInfo.username == '${userOf({ namespace, name: account })}'`,
      },
    ],
    ...more,
  });
}

export const CONSENT_POLICY_NAME = 'pullwright-pull-secret-profile-consent';
export const GUARD_POLICY_NAME = 'pullwright-pull-secret-copies';

/**
 * Who writes a `PullSecretProfile` must be allowed to `get` each of its source Secrets; the request is refused otherwise.
 *
 * One check per place in the lists, because the API server allows two authorizer checks per expression. Without the
 * policy's answer the request is refused as well: consent is not optional.
 */
export function consentPolicy(): readonly KubeObject[] {
  return policy(CONSENT_POLICY_NAME, {
    apiGroup: 'pullwright.dev',
    resource: 'pullsecretprofiles',
    matchConditions: [SPEC_CHANGES],
    validations: Array.from({ length: MAX_SECRETS * MAX_SOURCES }, (_, index) =>
      sourceCheck(Math.floor(index / MAX_SOURCES), index % MAX_SOURCES),
    ),
  });
}

/** CEL: whether the author of the request may. */
function mayGet(namespace: string, secret: string): string {
  return `authorizer.group('').resource('secrets').namespace(${namespace}).name(${secret}).check('get').allowed()`;
}

function sourceCheck(secret: number, source: number): Validation {
  const sources = `object.spec.secrets[${secret}].sources`;
  const at = `${sources}[${source}]`;
  const absent = `size(object.spec.secrets) <= ${secret} || !has(${sources}) || size(${sources}) <= ${source}`;
  return {
    expression: `${absent} || ${mayGet(`${at}.namespace`, `${at}.name`)}`,
    message: `you may not get the Secret that spec.secrets[${secret}].sources[${source}] names`,
    messageExpression: `'you may not get Secret "' + ${at}.namespace + '/' + ${at}.name + '", which spec.secrets[${secret}].sources[${source}] names: ask its owner for the verb "get", or name another source'`,
  };
}

/** The same for a `PullSecretGrant`: who may not read a Secret cannot give it away. */
export function grantConsentPolicy(): readonly KubeObject[] {
  const checks = Array.from({ length: MAX_GRANTED_SECRETS }, (_, at): Validation => {
    const secret = `object.spec.secrets[${at}].name`;
    return {
      expression: `size(object.spec.secrets) <= ${at} || ${mayGet('object.metadata.namespace', secret)}`,
      message: `you may not get the Secret that spec.secrets[${at}] names`,
      messageExpression: `'you may not get Secret "' + object.metadata.namespace + '/' + ${secret} + '", which spec.secrets[${at}] names: ask its owner to grant it'`,
    };
  });
  return policy('pullwright-pull-secret-grant-consent', {
    apiGroup: 'pullwright.dev',
    resource: 'pullsecretgrants',
    matchConditions: [SPEC_CHANGES],
    validations: checks,
  });
}

const SOURCE_NAMESPACE = "object.metadata.annotations['pullwright.dev/source-namespace']";
const MAX_SET_SECRETS = 16;
const PINNED = ['revisionName', 'customVersion']
  .map((field) => `object.spec.?injectionStrategy.?revision.?${field}.hasValue()`)
  .join(' || ');

/**
 * The same for a SidecarSet that says, by annotation, where its secrets come from. Others are none of our business. What a pinned revision
 * names cannot be seen here, so that whoever pins one has to be allowed to get all Secrets of that namespace.
 */
export function sidecarSetConsentPolicy(): readonly KubeObject[] {
  const list = 'object.spec.imagePullSecrets';
  const checks = Array.from({ length: MAX_SET_SECRETS }, (_, at): Validation => {
    const secret = `${list}[${at}].?name.orValue('')`;
    return {
      expression: `!has(${list}) || size(${list}) <= ${at} || ${mayGet(SOURCE_NAMESPACE, secret)}`,
      message: `you may not get the Secret that spec.imagePullSecrets[${at}] names`,
      messageExpression: `'you may not get Secret "' + ${SOURCE_NAMESPACE} + '/' + ${secret} + '": ask its owner for the verb "get", or remove the annotation pullwright.dev/source-namespace'`,
    };
  });
  return policy('pullwright-sidecar-set-consent', {
    apiGroup: 'apps.kruise.io',
    resource: 'sidecarsets',
    matchConditions: [
      {
        name: 'names-a-source',
        expression: "'pullwright.dev/source-namespace' in object.metadata.?annotations.orValue({})",
      },
      {
        name: 'changes',
        expression:
          "request.operation == 'CREATE' || object.spec != oldObject.spec || object.metadata.?annotations != oldObject.metadata.?annotations",
      },
    ],
    validations: [
      {
        expression: `!has(${list}) || size(${list}) <= ${MAX_SET_SECRETS}`,
        message: `at most ${MAX_SET_SECRETS} secrets are brought for one SidecarSet`,
      },
      {
        expression: `!(${PINNED}) || authorizer.group('').resource('secrets').namespace(${SOURCE_NAMESPACE}).check('get').allowed()`,
        message: 'a pinned revision may name any Secret: you may not get all of the source namespace',
        messageExpression: `'spec.injectionStrategy.revision may name any Secret, and you may not get all Secrets of namespace "' + ${SOURCE_NAMESPACE} + '": ask for the verb "get" there, or remove the pin or the annotation pullwright.dev/source-namespace'`,
      },
      ...checks,
    ],
  });
}

/** Input of {@link guardPolicy}. */
export interface GuardInput {
  /** Of the reconciler. */
  readonly serviceAccount: { readonly namespace: string; readonly name: string };
  /** Secrets that the account writes for other systems, by namespace; their Roles name them, too. */
  readonly named?: Readonly<Record<string, readonly string[]>>;
}

/**
 * RBAC cannot say "only Secrets that you made": this does. Whatever goes wrong in the reconciler, a Secret without its mark
 * is neither overwritten nor deleted by its account. No namespace is excepted.
 */
export function guardPolicy({ serviceAccount, named = {} }: GuardInput): readonly KubeObject[] {
  const owned = (object: string): string =>
    `${object}.metadata.?labels[?'pullwright.dev/owner'].orValue('') != ''`;
  const isNamed = Object.entries(named)
    .map(
      ([where, names]) => ` || (request.namespace == '${where}' && request.name in ${JSON.stringify(names)})`,
    )
    .join('');
  const offered = "oldObject.metadata.?annotations[?'pullwright.dev/adopt'].orValue('') == 'true'";
  return accountPolicy(GUARD_POLICY_NAME, serviceAccount, {
    apiGroup: '',
    resource: 'secrets',
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    validations: [
      {
        expression: `request.operation == 'DELETE' || (object.type == 'kubernetes.io/dockerconfigjson' && (${owned('object')}${isNamed}))`,
        message:
          'the reconciler of Pullwright writes only pull secrets that carry the label pullwright.dev/owner',
      },
      {
        expression: `request.operation == 'CREATE' || ${owned('oldObject')} || (request.operation == 'UPDATE' && ${offered})${isNamed}`,
        message:
          'the reconciler of Pullwright changes and deletes only Secrets that it made or that their owner hands over',
      },
    ],
  });
}

/** The account asks in dry runs what admission makes of a pod. It makes no pods. */
export function dryRunPolicy({ serviceAccount }: Pick<GuardInput, 'serviceAccount'>): readonly KubeObject[] {
  return accountPolicy('pullwright-pods-by-dry-run', serviceAccount, {
    apiGroup: '',
    resource: 'pods',
    operations: ['CREATE'],
    validations: [
      {
        expression: 'has(request.dryRun) && request.dryRun',
        message: 'the reconciler of Pullwright creates pods only in dry runs',
      },
    ],
  });
}

// The admission policy that refuses a profile which asks for a Secret name that another one brings to the same namespaces.

export const COLLISION_POLICY_NAME = 'pullwright-pull-secret-profile-collision';

/**
 * Each profile that is there is held against the one that is written. Whether two selectors meet cannot be told in general; it
 * can be seen when one of them asks for no more than the other. What is not seen here the reconciler tells the later profile.
 */
export function collisionPolicy(): readonly KubeObject[] {
  return policy(COLLISION_POLICY_NAME, {
    apiGroup: 'pullwright.dev',
    resource: 'pullsecretprofiles',
    // Not to be evaluated is no reason to refuse: the holder keeps its copies all the same.
    failurePolicy: 'Ignore',
    against: { apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND },
    matchConditions: [SPEC_CHANGES],
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
