/** The status of one PullSecretGrant: whether it can be read, and whether there is what it grants. */
import type { Outcome, Ref, World } from '../../controller/contract.ts';
import {
  ANY_PROFILE,
  GRANT_API_VERSION,
  GRANT_KIND,
  type PullSecretGrant,
  readPullSecretGrant,
} from '../../rules/injection/pull-secret-grant.ts';
import {
  type Condition,
  nextConditions,
  type Readiness,
  readiness,
} from '../../rules/kubernetes/conditions.ts';
import type { InjectionOptions } from '../options.ts';
import { secretRef } from './names.ts';
import { distributionIn } from './view.ts';

/** What should be true of the status of a grant. */
export function reconcileGrant(
  world: World,
  namespace: string,
  name: string,
  options: InjectionOptions,
): Outcome {
  const ref: Ref = { role: 'hosted', apiVersion: GRANT_API_VERSION, kind: GRANT_KIND, namespace, name };
  const object = world.get(ref);
  if (object === undefined) return {};
  const grant = readPullSecretGrant(object, options.trustedLabelKeys);
  const { generation } = object.metadata;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const before = (object.status as { conditions?: readonly Condition[] } | undefined)?.conditions ?? [];
  const conditions = nextConditions(
    before,
    readiness({ ...observed, ...stateOf(world, grant, options) }),
    world.now,
  );
  return { status: [{ ref, status: { ...observed, conditions } }] };
}

/** A grant may come before what it grants; then it says what it waits for. */
function stateOf(
  world: World,
  grant: PullSecretGrant,
  options: InjectionOptions,
): Omit<Readiness, 'observedGeneration'> {
  const profiles = grant.profiles
    .map((name) => (name === ANY_PROFILE ? 'any profile' : `"${name}"`))
    .join(', ');
  const ready = {
    reason: 'Granted',
    message: `${grant.secrets.length} Secrets may be brought by ${profiles}`,
  };
  if (grant.problems.length > 0)
    return { ready, stalled: { reason: 'GrantInvalid', message: grant.problems.join('; ') } };
  const absent = grant.secrets.filter((name) => world.get(secretRef(grant.namespace, name)) === undefined);
  if (absent.length > 0) return { ready, progressing: waiting('SourceMissing', 'Secret', absent) };
  const known = new Set(distributionIn(world, options).distributors.map(({ name }) => name));
  const strange = grant.profiles.filter((name) => name !== ANY_PROFILE && !known.has(name));
  return strange.length === 0
    ? { ready }
    : { ready, progressing: waiting('ProfileMissing', 'profile', strange) };
}

function waiting(
  reason: string,
  kind: string,
  names: readonly string[],
): NonNullable<Readiness['progressing']> {
  const list = names
    .slice(0, 10)
    .map((name) => `"${name}"`)
    .join(', ');
  return { reason, message: `The ${kind} ${list} does not exist; the grant holds as soon as it does` };
}
