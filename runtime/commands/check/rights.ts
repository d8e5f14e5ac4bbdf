/** Asks a cluster what the account that asks may do. */
import { inParallel } from '../../controller/parallel.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { AskedRight } from '../../rules/check/types.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { recordOf } from '../../rules/record.ts';

/** Questions at once. */
const CONCURRENCY = 8;

/** One question for each verb, kind and namespace of the plan: what server-side apply needs. */
export async function askRights(
  client: KubeClient,
  plan: readonly KubeObject[],
): Promise<readonly AskedRight[]> {
  const asked = new Map<string, Omit<AskedRight, 'allowed'>>();
  for (const { apiVersion, kind, metadata } of plan)
    for (const verb of ['create', 'patch']) {
      const right = {
        verb,
        group: groupOf(apiVersion),
        resource: pluralOf(kind),
        ...placeOf(metadata.namespace),
      };
      asked.set(JSON.stringify(right), right);
    }
  const answers: AskedRight[] = [];
  await inParallel([...asked.values()], CONCURRENCY, async (right) => {
    answers.push({ ...right, allowed: await isAllowed(client, right) });
  });
  return answers.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function placeOf(namespace: string | undefined): Pick<AskedRight, 'namespace'> {
  return namespace === undefined ? {} : { namespace };
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}

/** Every kind that is rendered forms its plural by these rules. */
function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (name.endsWith('y')) return `${name.slice(0, -1)}ies`;
  return name.endsWith('s') ? `${name}es` : `${name}s`;
}

async function isAllowed(client: KubeClient, right: Omit<AskedRight, 'allowed'>): Promise<boolean> {
  const review: KubeObject = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    // Nothing is stored, and a name is of no use; the API server wants none.
    metadata: { name: '' },
    spec: { resourceAttributes: right },
  };
  const answer = await client.create(review, 'pullwright-check');
  return recordOf(answer.status)['allowed'] === true;
}
