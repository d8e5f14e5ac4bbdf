/** Attempts as requests, and how an API server takes them. */
import type { Requester } from '../control-plane/request.ts';

/** One attempt. Writes are dry runs: authorization and admission are asked as for others. */
export interface Attack {
  /** Verb, resource, place: as RBAC would say it. */
  readonly verb: string;
  readonly resource: string;
  readonly namespace?: string;
  /** Undefined: a list, or a creation whose name RBAC does not see. */
  readonly name?: string;
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly type?: string;
  /** Whom it says to be. */
  readonly as?: string;
}

/** How the API server took it; `escalation` is a role or binding that would give more than the account has. */
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
  // What RBAC says has this form, whatever else may forbid a request.
  return { kind: /cannot \S+ resource/.test(text) ? 'unauthorized' : 'done' };
}

export interface At {
  readonly group?: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
}

function pathOf({ group = '', resource, namespace, name }: At): string {
  const [plural = '', sub] = resource.split('/');
  const root = group === '' ? '/api/v1' : `/apis/${group}`;
  return [
    root,
    ...(namespace === undefined ? [] : ['namespaces', namespace]),
    plural,
    ...(name === undefined ? [] : [name]),
    ...(sub === undefined ? [] : [sub]),
  ].join('/');
}

function place({ resource, namespace, name }: At): Pick<Attack, 'resource' | 'namespace' | 'name'> {
  return {
    resource,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
  };
}

export function read(verb: 'get' | 'list', at: At): Attack {
  return { ...place(at), verb, method: 'GET', path: pathOf(at) };
}

/** By POST: RBAC sees no name. */
export function made(at: At, body: object): Attack {
  const { name: _, ...unnamed } = at;
  return {
    ...place(unnamed),
    verb: 'create',
    method: 'POST',
    path: `${pathOf(unnamed)}?dryRun=All`,
    body,
  };
}

/** Not in a dry run. */
export function reallyMade(at: At, body: object): Attack {
  return { ...made(at, body), path: pathOf(at) };
}

export function changed(at: At, body: object): Attack {
  return {
    ...place(at),
    verb: 'patch',
    method: 'PATCH',
    path: `${pathOf(at)}?dryRun=All`,
    body,
    type: MERGE,
  };
}

/** What may be there or not, by server-side apply. */
export function applied(at: At, body: object): Attack {
  return {
    ...place(at),
    verb: 'patch',
    method: 'PATCH',
    path: `${pathOf(at)}?${FORCED}`,
    body,
    type: APPLY,
  };
}

export function removed(at: At): Attack {
  return { ...place(at), verb: 'delete', method: 'DELETE', path: `${pathOf(at)}?dryRun=All` };
}

export function posted(at: At, body: object): Attack {
  return { ...place(at), verb: 'create', method: 'POST', path: `${pathOf(at)}?dryRun=All`, body };
}

export function described({ verb, resource, namespace, name }: Attack): string {
  return `${verb} ${resource} ${namespace === undefined ? '' : `${namespace}/`}${name ?? '*'}`;
}
