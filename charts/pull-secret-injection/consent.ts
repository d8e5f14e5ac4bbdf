/**
 * Admission policies for Secret distribution: the author of a profile must be allowed to read its source Secrets, and the
 * reconciler's account may write only copies.
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
import { MAX_SECRETS, MAX_SOURCES, PROFILE } from '../../runtime/pull-secret-injection/kinds/profile.ts';

type Policy = Pick<AdmissionPolicyInput, 'resource' | 'validations'> & Partial<AdmissionPolicyInput>;

/** A denying policy. It fails closed, because consent is mandatory. */
function policy(name: string, input: Policy): readonly KubeObject[] {
  return admissionPolicy({
    metadata: { name, labels: labels({ name, component: 'pull-secret-injection' }) },
    apiGroup: 'pullwright.dev',
    apiVersion: '*',
    operations: ['CREATE', 'UPDATE'],
    failurePolicy: 'Fail',
    actions: ['Deny'],
    ...input,
  });
}

const SPEC_CHANGES = {
  name: 'spec-changes',
  expression: "request.operation == 'CREATE' || object.spec != oldObject.spec",
};

/** CEL: whether the requester may get a Secret, or without `name` all Secrets of the namespace. Both arguments are CEL. */
function mayGet(namespace: string, name?: string): string {
  const named = name === undefined ? '' : `.name(${name})`;
  return `authorizer.group('').resource('secrets').namespace(${namespace})${named}.check('get').allowed()`;
}

/** One validation per index, because the API server allows two authorizer checks per expression. */
function checks(count: number, check: (index: number) => Validation): readonly Validation[] {
  return Array.from({ length: count }, (_, index) => check(index));
}

/** Denies writes of a `PullSecretProfile` unless the requester may `get` each of its source Secrets. */
export function consentPolicy(): readonly KubeObject[] {
  return policy('pullwright-pull-secret-profile-consent', {
    resource: 'pullsecretprofiles',
    matchConditions: [SPEC_CHANGES],
    validations: checks(MAX_SECRETS * MAX_SOURCES, (index) => {
      const [secret, source] = [Math.floor(index / MAX_SOURCES), index % MAX_SOURCES];
      const sources = `object.spec.secrets[${secret}].sources`;
      const at = `${sources}[${source}]`;
      return {
        expression: `size(object.spec.secrets) <= ${secret} || !has(${sources}) || size(${sources}) <= ${source} || ${mayGet(`${at}.namespace`, `${at}.name`)}`,
        message: `you cannot get the Secret of spec.secrets[${secret}].sources[${source}]`,
        messageExpression: `'you cannot get Secret "' + ${at}.namespace + '/' + ${at}.name + '" of spec.secrets[${secret}].sources[${source}]: ask its owner for the verb "get", or name another source'`,
      };
    }),
  });
}

/** Denies writes of a `PullSecretGrant` unless the requester may `get` its Secrets. */
export function grantConsentPolicy(): readonly KubeObject[] {
  return policy('pullwright-pull-secret-grant-consent', {
    resource: 'pullsecretgrants',
    matchConditions: [SPEC_CHANGES],
    validations: checks(MAX_GRANTED_SECRETS, (at) => {
      const secret = `object.spec.secrets[${at}].name`;
      return {
        expression: `size(object.spec.secrets) <= ${at} || ${mayGet('object.metadata.namespace', secret)}`,
        message: `you cannot get the Secret of spec.secrets[${at}]`,
        messageExpression: `'you cannot get Secret "' + object.metadata.namespace + '/' + ${secret} + '" of spec.secrets[${at}]: ask its owner to grant it'`,
      };
    }),
  });
}

const SOURCE_NAMESPACE = "object.metadata.annotations['pullwright.dev/source-namespace']";
const MAX_SET_SECRETS = 16;
const PINNED = ['revisionName', 'customVersion']
  .map((field) => `object.spec.?injectionStrategy.?revision.?${field}.hasValue()`)
  .join(' || ');

/**
 * Denies writes of a SidecarSet with a source namespace unless the requester may `get` its Secrets there. A policy cannot resolve
 * a pinned revision: a pin requires `get` on all Secrets of that namespace.
 */
export function sidecarSetConsentPolicy(): readonly KubeObject[] {
  const list = 'object.spec.imagePullSecrets';
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
        expression: `${SPEC_CHANGES.expression} || object.metadata.?annotations != oldObject.metadata.?annotations`,
      },
    ],
    validations: [
      {
        expression: `!has(${list}) || size(${list}) <= ${MAX_SET_SECRETS}`,
        message: `at most ${MAX_SET_SECRETS} secrets are allowed for one SidecarSet`,
      },
      {
        expression: `!(${PINNED}) || ${mayGet(SOURCE_NAMESPACE)}`,
        message: 'a pinned revision may name any Secret: you cannot get all Secrets of the source namespace',
        messageExpression: `'spec.injectionStrategy.revision may name any Secret, and you cannot get all Secrets of namespace "' + ${SOURCE_NAMESPACE} + '": ask for the verb "get" there, or remove the pin or the annotation pullwright.dev/source-namespace'`,
      },
      ...checks(MAX_SET_SECRETS, (at) => {
        const secret = `${list}[${at}].?name.orValue('')`;
        return {
          expression: `!has(${list}) || size(${list}) <= ${at} || ${mayGet(SOURCE_NAMESPACE, secret)}`,
          message: `you cannot get the Secret of spec.imagePullSecrets[${at}]`,
          messageExpression: `'you cannot get Secret "' + ${SOURCE_NAMESPACE} + '/' + ${secret} + '": ask its owner for the verb "get", or remove the annotation pullwright.dev/source-namespace'`,
        };
      }),
    ],
  });
}

type Account = Parameters<typeof userOf>[0];

/** Match condition for requests of the reconciler. */
function byAccount(account: Account): NonNullable<Policy['matchConditions']> {
  return [{ name: 'reconciler', expression: `request.userInfo.username == '${userOf(account)}'` }];
}

/**
 * Restricts the account to Secrets that it created, which RBAC cannot express. Even a faulty reconciler cannot overwrite or
 * delete an unmarked Secret. No namespace is exempt.
 *
 * @param named Secrets that the account writes for other systems, by namespace; their Roles also name them
 */
export function guardPolicy(
  account: Account,
  named: Readonly<Record<string, readonly string[]>> = {},
): readonly KubeObject[] {
  const owned = (object: string): string =>
    `${object}.metadata.?labels[?'pullwright.dev/owner'].orValue('') != ''`;
  const isNamed = Object.entries(named)
    .map(
      ([where, names]) => ` || (request.namespace == '${where}' && request.name in ${JSON.stringify(names)})`,
    )
    .join('');
  const offered = "oldObject.metadata.?annotations[?'pullwright.dev/adopt'].orValue('') == 'true'";
  return policy('pullwright-pull-secret-copies', {
    apiGroup: '',
    apiVersion: 'v1',
    resource: 'secrets',
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    matchConditions: byAccount(account),
    validations: [
      {
        expression: `request.operation == 'DELETE' || (object.type == 'kubernetes.io/dockerconfigjson' && (${owned('object')}${isNamed}))`,
        message: 'the reconciler of Pullwright writes only pull secrets with the label pullwright.dev/owner',
      },
      {
        expression: `request.operation == 'CREATE' || ${owned('oldObject')} || (request.operation == 'UPDATE' && ${offered})${isNamed}`,
        message: 'the reconciler of Pullwright changes and deletes only Secrets that it created or may adopt',
      },
    ],
  });
}

/** Restricts pod creation by the account to dry runs. */
export function dryRunPolicy(account: Account): readonly KubeObject[] {
  return policy('pullwright-pods-by-dry-run', {
    apiGroup: '',
    apiVersion: 'v1',
    resource: 'pods',
    operations: ['CREATE'],
    matchConditions: byAccount(account),
    validations: [
      {
        expression: 'has(request.dryRun) && request.dryRun',
        message: 'the reconciler of Pullwright creates pods only in dry runs',
      },
    ],
  });
}

/**
 * Denies a profile that delivers a different Secret under the same name and to the same namespaces as an existing profile. CEL
 * cannot decide in general whether selectors overlap, but they do if one requires a subset of the other's labels. The reconciler
 * reports other collisions on the later profile.
 */
export function collisionPolicy(): readonly KubeObject[] {
  return policy('pullwright-pull-secret-profile-collision', {
    resource: 'pullsecretprofiles',
    // Fails open: the profile that owns the copies keeps them in any case.
    failurePolicy: 'Ignore',
    against: { ...PROFILE },
    matchConditions: [SPEC_CHANGES],
    variables: [
      { name: 'collides', expression: collides('object') },
      { name: 'did', expression: `oldObject != null && ${collides('oldObject')}` },
    ],
    validations: [
      {
        expression:
          'params.metadata.name == object.metadata.name || has(params.metadata.deletionTimestamp) || (has(params.spec.successor) && params.spec.successor == object.metadata.name) || !variables.collides || variables.did',
        message: 'another profile delivers a different Secret of the same name to the same namespaces',
        messageExpression: `'profile "' + params.metadata.name + '" delivers a different Secret "' + object.spec.secrets.filter(s, ${NAME_CONFLICT})[0].name + '" to namespaces that this one selects too: use another name, or set in that profile spec.successor: ' + object.metadata.name`,
      },
    ],
  });
}

/** CEL: whether the other profile delivers another Secret under the name of `s`. */
const NAME_CONFLICT =
  'has(s.sources) && size(s.sources) > 0 && params.spec.secrets.exists(t, t.name == s.name && has(t.sources) && size(t.sources) > 0 && t.sources != s.sources)';

function collides(object: string): string {
  const [a, b] = [`${object}.spec.namespaceSelector`, 'params.spec.namespaceSelector'];
  const meet = `(${a} == ${b} || ${asksNoMore(a, b)} || ${asksNoMore(b, a)})`;
  return `${brings(object)} && ${brings('params')} && ${meet} && ${object}.spec.secrets.exists(s, ${NAME_CONFLICT})`;
}

function brings(object: string): string {
  return `(!has(${object}.spec.mode) || ${object}.spec.mode != 'Inject')`;
}

/** CEL: whether `a` selects every namespace that `b` selects. */
function asksNoMore(a: string, b: string): string {
  const labels = `${a}.matchLabels.all(k, has(${b}.matchLabels) && k in ${b}.matchLabels && ${b}.matchLabels[k] == ${a}.matchLabels[k])`;
  return `((!has(${a}.matchExpressions) || size(${a}.matchExpressions) == 0) && (!has(${a}.matchLabels) || ${labels}))`;
}
