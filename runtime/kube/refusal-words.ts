/**
 * Who refused a request, out of the API server's words: its message is not shown as it is, because it may quote values, but names
 * of webhooks, policies, quotas, users and resources are words of a few letters that can be taken out.
 *
 * Source of the rule: the texts of kube-apiserver 1.36 (authorization, ResourceQuota, ValidatingAdmissionPolicy, admission webhooks).
 */

/** What to say in place of the status and its reason. */
export interface RefusalWords {
  /** CamelCase, stable. */
  readonly code: string;
  /** What is the case; follows the colon of the message. */
  readonly state: string;
  readonly hint: string;
}

/** A name of Kubernetes. */
const NAME = '[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}';

interface Rule {
  readonly pattern: RegExp;
  readonly words: (match: readonly string[]) => RefusalWords;
}

const RULES: readonly Rule[] = [
  {
    pattern: new RegExp(`exceeded quota: (${NAME}(?:,${NAME})*)(?:,|$)`),
    words: ([, quota = '']) => ({
      code: 'QuotaExceeded',
      state: `the ResourceQuota "${quota}" is used up`,
      hint: 'Raise it, or remove what it counts; it is tried again',
    }),
  },
  {
    pattern: new RegExp(`admission webhook "(${NAME})" denied the request`),
    words: ([, webhook = '']) => ({
      code: 'AdmissionDenied',
      state: `the admission webhook "${webhook}" refuses it`,
      hint: 'Exempt it there, or ask whoever runs the webhook for the reason; it is tried again',
    }),
  },
  {
    pattern: new RegExp(`ValidatingAdmissionPolicy '(${NAME})' with binding '(${NAME})' denied request`),
    words: ([, policy = '', binding = '']) => ({
      code: 'AdmissionDenied',
      state: `the ValidatingAdmissionPolicy "${policy}" (binding "${binding}") refuses it`,
      hint: 'Exempt it there, or make what the policy wants; it is tried again',
    }),
  },
  {
    pattern: new RegExp(`failed calling webhook "(${NAME})"`),
    words: ([, webhook = '']) => ({
      code: 'AdmissionUnreachable',
      state: `the admission webhook "${webhook}" does not answer the API server`,
      hint: 'Look whether the pods behind it run; it is tried again',
    }),
  },
];

const DENIED = new RegExp(
  `User "(${NAME})" cannot ([a-z*]{1,32}) resource "([a-z0-9./-]{1,253})" in API group "([a-z0-9.-]{0,253})"(?: in the namespace "(${NAME})"| at the cluster scope)?`,
);

/**
 * Reads the message of a Status; undefined when it says nothing that is known.
 *
 * @example
 * ```ts
 * import { refusalWords } from './refusal-words.ts';
 * import assert from 'node:assert/strict';
 *
 * const quota = 'secrets "a" is forbidden: exceeded quota: none, requested: count/secrets=1, used: count/secrets=3';
 * assert.equal(refusalWords(quota)?.state, 'the ResourceQuota "none" is used up');
 * const denied = 'secrets "a" is forbidden: User "ann" cannot get resource "secrets" in API group "" in the namespace "web"';
 * assert.equal(refusalWords(denied)?.hint, 'Grant the verb "get" on secrets in namespace "web" to "ann" by RBAC');
 * ```
 */
export function refusalWords(message: unknown): RefusalWords | undefined {
  if (typeof message !== 'string') return undefined;
  const denied = DENIED.exec(message);
  if (denied !== null) return deniedWords(denied);
  for (const { pattern, words } of RULES) {
    const match = pattern.exec(message);
    if (match !== null) return words(match);
  }
  return undefined;
}

function deniedWords([, user = '', verb = '', resource = '', group = '', namespace]: readonly (
  | string
  | undefined
)[]): RefusalWords {
  const kind = group === '' ? resource : `${resource}.${group}`;
  const place = namespace === undefined ? 'for the cluster' : `in namespace "${namespace}"`;
  return {
    code: 'Forbidden',
    state: 'the API server answered 403 Forbidden',
    hint: `Grant the verb "${verb}" on ${kind} ${place} to "${user}" by RBAC`,
  };
}
