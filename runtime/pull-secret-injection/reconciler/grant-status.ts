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
  type ConditionText,
  nextConditions,
  type SummaryRow,
  summarize,
} from '../../rules/kubernetes/conditions.ts';
import { counted } from '../../rules/text/counted.ts';
import type { InjectionOptions } from '../options.ts';
import { secretRef } from './names.ts';
import { profileRef } from './profile-status.ts';
import { unreadText } from './unread.ts';
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
    summarize(SUMMARY, { world, grant, options }, generation),
    world.now,
  );
  return { status: [{ ref, status: { ...observed, conditions } }] };
}

interface GrantFacts {
  readonly world: World;
  readonly grant: PullSecretGrant;
  readonly options: InjectionOptions;
}

/** A grant may come before what it grants; then it says what it waits for. */
const SUMMARY: readonly SummaryRow<GrantFacts>[] = [
  ['stalled', ({ grant: { problems } }) => invalid(problems)],
  ['stalled', unreadSecrets],
  ['progressing', absentSecrets],
  ['progressing', strangeProfiles],
  ['ready', granted],
];

function invalid(problems: readonly string[]): ConditionText | undefined {
  return problems.length === 0 ? undefined : { reason: 'GrantInvalid', message: problems.join('; ') };
}

function unreadSecrets({ world, grant, options }: GrantFacts): ConditionText | undefined {
  const { namespace } = grant;
  const [message] = grant.secrets.flatMap((name) => unreadText(world, { namespace, name }, options) ?? []);
  return message === undefined ? undefined : { reason: 'SourceUnread', message };
}

function absentSecrets({ world, grant }: GrantFacts): ConditionText | undefined {
  const absent = grant.secrets.filter((name) => world.get(secretRef(grant.namespace, name)) === undefined);
  return waiting('SourceMissing', 'Secret', absent);
}

function strangeProfiles({ world, grant, options }: GrantFacts): ConditionText | undefined {
  const known = new Set(distributionIn(world, options).distributors.map(({ name }) => name));
  const strange = grant.profiles.filter(
    (name) => name !== ANY_PROFILE && !known.has(name) && world.get(profileRef(name)) === undefined,
  );
  return waiting('ProfileMissing', 'profile', strange);
}

function granted({ grant }: GrantFacts): ConditionText {
  const profiles = grant.profiles
    .map((name) => (name === ANY_PROFILE ? 'any profile' : `"${name}"`))
    .join(', ');
  return {
    reason: 'Granted',
    message: `${counted(grant.secrets.length, 'Secret')} may be brought by ${profiles}`,
  };
}

function waiting(reason: string, kind: string, names: readonly string[]): ConditionText | undefined {
  if (names.length === 0) return undefined;
  const list = names
    .slice(0, 10)
    .map((name) => `"${name}"`)
    .join(', ');
  return {
    reason,
    message: `The ${kind} ${list} ${names.length === 1 ? 'does' : 'do'} not exist; the grant holds as soon as ${names.length === 1 ? 'it does' : 'they do'}`,
  };
}
