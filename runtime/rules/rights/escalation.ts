/** What the rights of an account amount to together: tokens of others, other accounts, the cluster. */
import type { KubeObject } from '../kubernetes/object.ts';
import { liftedBy } from './bounds.ts';
import { subjectName } from './grants.ts';
import type { Right } from './right.ts';
import { ACT_AS_ADMIN, adminRights, CLUSTER_ADMIN, isClosed, meet, sumOf, unique } from './ways-up.ts';

/** What the rules of an account give, without bounds that it can lift, and what follows from that without the rights of others. */
export function ownRights(
  account: string,
  given: readonly Right[],
  objects: readonly KubeObject[],
): readonly Right[] {
  const { lifts, direct } = liftedRights(account, given, objects);
  const all = [...lifts, ...tokenRights(account, direct), ...direct];
  return [...adminRights(account, all), ...hostedRights(account, all), ...all];
}

/** Who may change or delete what binds it is not bound by it: admission is never asked about its own objects. */
function liftedRights(
  account: string,
  rights: readonly Right[],
  objects: readonly KubeObject[],
): { readonly lifts: readonly Right[]; readonly direct: readonly Right[] } {
  const ways = rights.filter(
    ({ power, resources, verbs }) =>
      power === 'change-admission' && resources.some(isValidating) && verbs.some(lifts),
  );
  const lifted = liftedBy(objects, (resource, name) =>
    ways.some(
      ({ resources, names }) => resources.includes(resource) && (names === undefined || names.includes(name)),
    ),
  );
  const binding = new Set(rights.flatMap(({ boundBy }) => boundBy.map(({ policy }) => policy)));
  const names = [...binding].filter((policy) => lifted.has(policy)).toSorted(order);
  if (names.length === 0) return { lifts: [], direct: rights };
  return {
    lifts: [
      {
        account,
        power: 'lift-bounds',
        can: 'lift the policies that bind it',
        names,
        ...sumOf(ways),
        resources: unique(ways, ({ resources }) => resources.filter(isValidating)),
        verbs: unique(ways, ({ verbs }) => verbs.filter(lifts)),
      },
    ],
    direct: rights.map((right) => ({
      ...right,
      boundBy: right.boundBy.filter(({ policy }) => !names.includes(policy)),
    })),
  };
}

function lifts(verb: string): boolean {
  return verb !== 'create';
}

function isValidating(resource: string): boolean {
  return resource.startsWith('validatingadmission');
}

/** Whose pods, tokens or names it may have, it may be. */
const ACTING: readonly string[] = ['run-pods', 'exec', 'mint-tokens', 'impersonate'];
const BY_ACCOUNT: readonly string[] = ['serviceaccounts', 'serviceaccounts/token'];

/**
 * The accounts of one namespace that have wide rights, or come to such as yet others, for who may be any of them. Who may be all is
 * an administrator.
 *
 * @param everyone what each account has by its own rules
 */
export function withOthers(
  account: string,
  everyone: ReadonlyMap<string, readonly Right[]>,
): readonly Right[] {
  const own = everyone.get(account) ?? [];
  const byNamespace = Map.groupBy(own.filter(isActing), ({ namespace = '' }) => namespace);
  const acting = [...byNamespace].flatMap(([namespace, ways]) => {
    const others = [...everyone.keys()]
      .filter((one) => one !== account && ways.some((way) => reaches(way, one)))
      .map((one) => ({ one, wide: comesTo(one, account, everyone) }))
      .filter(({ wide }) => wide.length > 0);
    if (others.length === 0) return [];
    const isAdmin = others.some(({ wide }) => wide.some(({ power }) => power === CLUSTER_ADMIN));
    return [
      {
        account,
        power: isAdmin ? ACT_AS_ADMIN : 'act-as-accounts',
        can: 'act as accounts that have wide rights',
        ...(namespace === '' ? {} : { namespace }),
        names: others.map(({ one }) => nameIn(namespace, one)).toSorted(order),
        ...sumOf(ways),
      },
    ];
  });
  const rest = own.filter(({ power }) => power !== CLUSTER_ADMIN);
  return acting.length === 0 ? own : [...adminRights(account, [...acting, ...rest]), ...acting, ...rest];
}

/** The wide rights of an account and of all whom it may be, one through the other; what leads back counts for nothing. */
function comesTo(
  one: string,
  from: string,
  everyone: ReadonlyMap<string, readonly Right[]>,
): readonly Right[] {
  // A set that grows is gone through to its end.
  const all = new Set([one]);
  for (const account of all) {
    const ways = (everyone.get(account) ?? []).filter(isActing);
    for (const other of everyone.keys())
      if (other !== from && ways.some((way) => reaches(way, other))) all.add(other);
  }
  return [...all].flatMap((account) => (everyone.get(account) ?? []).filter(({ wide }) => wide));
}

/** Without a namespace only the name of a user or group says who it is; who may be anybody is an administrator. */
function isActing({ power, namespace, names, boundBy }: Right): boolean {
  const isSaid = namespace !== undefined || (power === 'impersonate' && names !== undefined);
  return isSaid && ACTING.includes(power) && !boundBy.some(isClosed);
}

function nameIn(namespace: string, account: string): string {
  return namespace === '' ? account : account.slice(account.indexOf('/') + 1);
}

/** A pod takes the account that it names; a token or a name is asked for by name. */
function reaches({ namespace, resources, names }: Right, account: string): boolean {
  if (namespace === undefined)
    return names?.some((name) => resources.some((resource) => personOf(resource, name) === account)) === true;
  const start = `ServiceAccount ${namespace}/`;
  if (!account.startsWith(start)) return false;
  return (
    names === undefined ||
    !resources.every((one) => BY_ACCOUNT.includes(one)) ||
    names.includes(account.slice(start.length))
  );
}

/** Whom a rule to impersonate names. */
function personOf(resource: string, name: string): string | undefined {
  return resource === 'users'
    ? subjectName('User', name)
    : resource === 'groups'
      ? `Group ${name}`
      : undefined;
}

/** HyperShift's kubeconfig of `system:admin`, in the namespace of each control plane. */
const HOSTED_ADMIN = 'admin-kubeconfig';

/** Whoever reads it is the administrator of that hosted cluster. Who reads all Secrets of a place is named for that. */
function hostedRights(account: string, rights: readonly Right[]): readonly Right[] {
  return rights
    .filter(({ power, names }) => power === 'read-secrets' && names?.includes(HOSTED_ADMIN))
    .map(({ namespace, verbs, by, reason }) => ({
      account,
      power: 'administer-hosted-clusters',
      can: 'become administrator of hosted clusters',
      ...(namespace === undefined ? {} : { namespace }),
      names: [HOSTED_ADMIN],
      resources: ['secrets'],
      verbs,
      by,
      boundBy: [],
      ...(reason === undefined ? {} : { reason }),
      wide: true,
    }));
}

/**
 * A Secret of the type `kubernetes.io/service-account-token` gets the token of whichever service account of its namespace it
 * names: who may both make and read one has every account there, unless a policy refuses that.
 */
function tokenRights(account: string, rights: readonly Right[]): readonly Right[] {
  const makes = rights.filter(
    ({ power, verbs, boundBy }) =>
      power === 'write-secrets' && verbs.includes('create') && !boundBy.some(isClosed),
  );
  const reads = rights.filter(({ power }) => power === 'read-secrets');
  return makes.flatMap((make) => {
    const read = reads.find((one) => meet(make, one) && shareNames(make, one));
    if (read === undefined) return [];
    const namespace = make.namespace ?? read.namespace;
    return [
      {
        account,
        power: 'mint-tokens',
        can: 'make a token Secret of a service account and read it',
        ...(namespace === undefined ? {} : { namespace }),
        resources: ['secrets'],
        verbs: ['create', 'get'],
        by: [...new Set([...make.by, ...read.by])],
        boundBy: [],
        wide: true,
      },
    ];
  });
}

function shareNames(a: Right, b: Right): boolean {
  const names = new Set(b.names);
  return a.names === undefined || b.names === undefined || a.names.some((one) => names.has(one));
}

/** As plain texts are ordered, whatever the language. */
export function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
