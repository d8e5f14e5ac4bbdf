/** Attempts as requests, and how an API server takes them. */
import type { Requester } from '../control-plane/request.ts';

/** One attempt. Writes are dry runs: authorization and admission are asked as for others. */
export interface Attack {
  /** Verb, resource, place: as RBAC would say it. */
  readonly verb: string;
  readonly resource: string;
  readonly namespace: string | undefined;
  /** Undefined: a list, or a creation whose name RBAC does not see. */
  readonly name: string | undefined;
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly type?: string;
  /** Whom it says to be. */
  readonly as?: string;
}

/** Outcome of a request; `escalation`: a role or binding would grant more than the account has. */
export type Taken =
  | { readonly kind: 'unauthorized' | 'escalation' | 'done' }
  | { readonly kind: 'refused'; readonly policy: string };

const APPLY = 'application/apply-patch+yaml';
const MERGE = 'application/merge-patch+json';
const FORCED = 'fieldManager=thief&force=true&dryRun=All';

/** Tries it, with that token; what the request was worth when it was let through does not matter. */
export async function taken(account: Requester, attack: Attack): Promise<Taken> {
  const { method, path, body, type } = attack;
  const answer = await account.request(method, path, body, type);
  const text = String(answer.body?.message ?? '');
  const policy = /ValidatingAdmissionPolicy '([^']+)'/.exec(text)?.[1];
  if (policy !== undefined) return { kind: 'refused', policy };
  if (answer.status !== 403) return { kind: 'done' };
  if (text.includes('attempting to grant RBAC permissions not currently held')) return { kind: 'escalation' };
  // This form comes from RBAC only, not from other 403 answers.
  return { kind: /cannot \S+ resource/.test(text) ? 'unauthorized' : 'done' };
}

/** An object, or all of its kind (undefined: of the cluster, of no name). */
export interface At {
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly path: string;
}

/** @param kind `secrets` or `apps/v1 deployments` */
export function at(kind: string, namespace?: string, name?: string): At {
  const [resource = '', group] = kind.split(' ').reverse();
  const [plural, sub] = resource.split('/');
  const root = group === undefined ? '/api/v1' : `/apis/${group}`;
  const place = namespace === undefined ? [] : ['namespaces', namespace];
  const path = [root, ...place, plural, name, sub].filter((part) => part !== undefined).join('/');
  return { resource, namespace, name, path };
}

export function read(verb: 'get' | 'list', one: At): Attack {
  return { ...one, verb, method: 'GET' };
}

/** By POST: RBAC sees no name but that of a sub-resource's object. */
export function made(one: At, body: object): Attack {
  return { ...one, verb: 'create', method: 'POST', path: `${one.path}?dryRun=All`, body };
}

/** A create without dry run. */
export function reallyMade(one: At, body: object): Attack {
  return { ...made(one, body), path: one.path };
}

export function changed(one: At, body: object): Attack {
  return { ...one, verb: 'patch', method: 'PATCH', path: `${one.path}?dryRun=All`, body, type: MERGE };
}

/** Server-side apply, for an object that may not exist yet. */
export function applied(one: At, body: object): Attack {
  return { ...one, verb: 'patch', method: 'PATCH', path: `${one.path}?${FORCED}`, body, type: APPLY };
}

export function removed(one: At): Attack {
  return { ...one, verb: 'delete', method: 'DELETE', path: `${one.path}?dryRun=All` };
}

export function described({ verb, resource, namespace, name }: Attack): string {
  return `${verb} ${resource} ${namespace === undefined ? '' : `${namespace}/`}${name ?? '*'}`;
}
