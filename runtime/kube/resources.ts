/** Maps kinds to URLs. Discovery runs once per API version, and again for an unknown kind. */
import { PullwrightError } from '../core/errors.ts';
import { isPathSegment, type KubeObject } from '../core/kubernetes/object.ts';

/** A kind, and optionally a namespace, to list or watch. */
export interface Collection {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
}

/** Names an object for a request. */
export interface ObjectRef extends Collection {
  readonly name: string;
}

/** Plural and scope of a kind. */
export interface Resource {
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Kinds that are the same in every cluster and need no discovery. */
const WELL_KNOWN: Readonly<Record<string, Resource>> = Object.fromEntries(
  [
    'v1 Secret secrets ns',
    'v1 ConfigMap configmaps ns',
    'v1 ServiceAccount serviceaccounts ns',
    'v1 Pod pods ns',
    'v1 Namespace namespaces',
    'v1 Node nodes',
    'apps/v1 DaemonSet daemonsets ns',
    'apps/v1 Deployment deployments ns',
    'apps/v1 StatefulSet statefulsets ns',
    'apps/v1 ReplicaSet replicasets ns',
    'batch/v1 Job jobs ns',
    'batch/v1 CronJob cronjobs ns',
    'rbac.authorization.k8s.io/v1 Role roles ns',
    'rbac.authorization.k8s.io/v1 RoleBinding rolebindings ns',
    'coordination.k8s.io/v1 Lease leases ns',
    'events.k8s.io/v1 Event events ns',
  ].map((line) => {
    const [apiVersion, kind, plural = '', scope] = line.split(' ');
    return [`${apiVersion} ${kind}`, { plural, namespaced: scope === 'ns' }];
  }),
);

export class ResourceMap {
  readonly #discover: (path: string) => Promise<unknown>;
  readonly #known: Map<string, Resource>;

  /**
   * @param discover returns the JSON of a discovery path; undefined for 404
   * @param known more kinds, by `<apiVersion> <kind>`; requests for one that the cluster does not serve return 404
   */
  constructor(discover: (path: string) => Promise<unknown>, known: Readonly<Record<string, Resource>> = {}) {
    this.#discover = discover;
    this.#known = new Map(Object.entries({ ...WELL_KNOWN, ...known }));
  }

  /**
   * Path of a collection, or undefined when the cluster does not serve the kind.
   *
   * @throws PullwrightError `UnsafeName` for a namespace that would change the path
   */
  async collectionPath(collection: Collection): Promise<string | undefined> {
    const resource = await this.#find(collection);
    if (resource === undefined) return undefined;
    if (collection.namespace !== undefined) expectName('namespace', collection.namespace);
    const scope =
      resource.namespaced && collection.namespace !== undefined
        ? `/namespaces/${encodeURIComponent(collection.namespace)}`
        : '';
    return `${groupPath(collection.apiVersion)}${scope}/${resource.plural}`;
  }

  /**
   * Path of one object, or undefined when the cluster does not serve the kind.
   *
   * @throws PullwrightError `UnsafeName` for a name or namespace that would change the path
   */
  async objectPath(ref: ObjectRef): Promise<string | undefined> {
    expectName('name', ref.name);
    const path = await this.collectionPath(ref);
    return path === undefined ? undefined : `${path}/${encodeURIComponent(ref.name)}`;
  }

  async #find({ apiVersion, kind }: Collection): Promise<Resource | undefined> {
    const known = this.#known.get(`${apiVersion} ${kind}`);
    if (known !== undefined) return known;
    const list = (await this.#discover(groupPath(apiVersion))) as ResourceList | undefined;
    for (const { name, kind: served, namespaced } of list?.resources ?? [])
      if (!name.includes('/')) this.#known.set(`${apiVersion} ${served}`, { plural: name, namespaced });
    return this.#known.get(`${apiVersion} ${kind}`);
  }
}

interface ResourceList {
  readonly resources?: readonly {
    readonly name: string;
    readonly kind: string;
    readonly namespaced: boolean;
  }[];
}

/** Whether name and namespace are valid path segments, so that the object may exist. */
export function mayExist({ name, namespace }: ObjectRef): boolean {
  return isPathSegment(name) && (namespace === undefined || isPathSegment(namespace));
}

/** Encoding is not enough: an encoded `..` is still resolved. @throws PullwrightError `UnsafeName` */
function expectName(what: string, text: string): void {
  if (isPathSegment(text)) return;
  throw new PullwrightError(
    `Cannot request ${what} "${text.slice(0, 100)}": expected a non-empty name without "/" and "%" that is not "." or ".."`,
    { code: 'UnsafeName', retryPolicy: 'terminal', hint: 'Correct the name in its source object' },
  );
}

function groupPath(apiVersion: string): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}

/** The reference to an object. */
export function objectRef({ apiVersion, kind, metadata }: KubeObject): ObjectRef {
  const { name, namespace } = metadata;
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

/** `Secret in kube-system` */
export function describeCollection({ kind, namespace }: Collection): string {
  return namespace === undefined ? kind : `${kind} in ${namespace}`;
}

/** @throws PullwrightError `KindNotServed` */
export function notServed({ apiVersion, kind }: Collection): never {
  throw new PullwrightError(`Cannot find kind "${apiVersion} ${kind}": the API server does not serve it`, {
    code: 'KindNotServed',
    retryPolicy: 'waiting',
    afterMs: 60_000,
    hint: 'Install its CustomResourceDefinition',
  });
}
