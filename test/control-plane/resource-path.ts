/** API path of a test object. */
import type { Requester } from './request.ts';

// Tests look into objects of any kind.
// oxlint-disable-next-line typescript/no-explicit-any
type Anything = any;

/** Raw JSON of an object, or as much of it as names it. */
export interface TestObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly [field: string]: Anything;
  };
  readonly [field: string]: Anything;
}

/** `/api/v1/namespaces/<namespace>/secrets/<name>`, by the usual plural of the kind. */
export function resourcePath({ apiVersion, kind, metadata }: TestObject): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const scope = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
  return `${base}${scope}/${plural(kind.toLowerCase())}/${metadata.name}`;
}

function plural(word: string): string {
  if (/(s|x|ch)$/.test(word)) return `${word}es`;
  return /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}ies` : `${word}s`;
}

/** Server-side apply as `manager`, forced; throws when refused. Gives the object as stored. */
export async function applyObject(
  client: Requester,
  object: TestObject,
  manager = 'test',
): Promise<TestObject> {
  const path = `${resourcePath(object)}?fieldManager=${manager}&force=true`;
  const answer = await client.request('PATCH', path, object, 'application/apply-patch+yaml');
  if (answer.status >= 300)
    throw new Error(`Cannot apply ${resourcePath(object)}: ${answer.status} ${answer.body.message}`);
  return answer.body as TestObject;
}
