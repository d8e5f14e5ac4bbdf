// deadline: 600 s
// needs: control plane
/** A stolen token of each account that ships, every attack of the table, a real API server: it lets through what the list says. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type FleetInput, readFleet, renderFleet, writeTree } from '../../charts/mod.ts';
import { type ControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { Requester } from '../control-plane/request.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { attacksOn, FOREIGN, NAMESPACES, type Present } from './rights-attacks.ts';
import { discovery, full, hub } from './rights-fleets.ts';
import { stolenToken } from './rights-live-plane.ts';
import { type Attack, described, taken } from './rights-requests.ts';

const folder = tempFolder();

/** Each fleet, the folder of the cluster in it, and how many accounts have tokens there. */
const FLEETS: readonly (readonly [name: string, fleet: FleetInput, cluster: string, accounts: number])[] = [
  ['full', full, '.', 7],
  ['hub', hub, 'hub', 2],
  // Its agents' account comes with the agents.
  ['guest', hub, 'guest', 1],
  ['discovery', discovery, '.', 2],
];

/** Repeats an attempt that the list does not expect: roles and policies take effect some time after they are stored. */
async function isLetThrough(
  thief: Requester,
  attack: Attack,
  listed?: ReadonlySet<string>,
): Promise<boolean> {
  return await eventually(async () => {
    const live = await taken(thief, attack);
    const isThrough = live.kind === 'done';
    const expected = listed?.has(described(attack)) ?? isThrough;
    assert.equal(isThrough, expected, `${described(attack)}: ${JSON.stringify(live)}`);
    return isThrough;
  });
}

async function furnished(plane: ControlPlane, fleet: FleetInput, cluster: string): Promise<void> {
  for (const name of [...NAMESPACES, 'clusters', 'openshift-marketplace'])
    await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name } });
  const place = join(folder, plane.server.replace(/\W/g, '-'));
  writeTree(place, renderFleet(readFleet(fleet)).tree);
  const ran = await plane.kubectl('apply', '--server-side', '--force-conflicts', '-k', join(place, cluster));
  assert.equal(ran.code, 0, ran.stderr);
  for (const namespace of NAMESPACES) {
    await plane.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: FOREIGN, namespace } });
    await plane.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } });
  }
  await plane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } });
}

async function namesOf(plane: ControlPlane, path: string): Promise<readonly string[]> {
  const query = '?labelSelector=app.kubernetes.io/part-of=pullwright';
  const { body } = await plane.client.request('GET', `${path}${query}`);
  return body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
}

async function presentIn(plane: ControlPlane): Promise<Present> {
  const admission = '/apis/admissionregistration.k8s.io/v1';
  return {
    policies: await namesOf(plane, `${admission}/validatingadmissionpolicies`),
    policyBindings: await namesOf(plane, `${admission}/validatingadmissionpolicybindings`),
    roles: await namesOf(plane, '/apis/rbac.authorization.k8s.io/v1/clusterroles'),
  };
}

async function accountsIn(plane: ControlPlane): Promise<readonly (readonly [string, string])[]> {
  const { body } = await plane.client.request(
    'GET',
    '/api/v1/serviceaccounts?labelSelector=app.kubernetes.io/part-of=pullwright',
  );
  return body.items.map(({ metadata }: { metadata: { namespace: string; name: string } }) => [
    metadata.namespace,
    metadata.name,
  ]);
}

interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
}

function ruleText({ verbs, apiGroups = [], resources = [], resourceNames = [] }: Rule): string {
  const [group = ''] = apiGroups;
  const kinds = resources.map((one) => (group === '' ? one : `${one}.${group}`)).join(', ');
  return `${verbs.join(', ')}: ${kinds}${resourceNames.length === 0 ? '' : ` ${resourceNames.join(', ')}`}`;
}

/** Every verb on every object that RBAC grants the account, by namespace (`*`: in each), without the rights of all accounts. */
async function rightsOf(
  plane: ControlPlane,
  [namespace, name]: readonly [string, string],
): Promise<Readonly<Record<string, readonly string[]>>> {
  const [thief, anybody] = [
    await stolenToken(plane, namespace, name),
    await stolenToken(plane, 'default', 'default'),
  ];
  const review = async (who: Requester, where: string): Promise<readonly string[]> => {
    const { status, body } = await who.request(
      'POST',
      '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
      {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectRulesReview',
        spec: { namespace: where },
      },
    );
    assert.equal(status, 201, body.message);
    return (body.status.resourceRules as readonly Rule[]).map(ruleText);
  };
  const { body } = await plane.client.request('GET', '/api/v1/namespaces');
  const everybodys = new Set(await review(anybody, 'default'));
  const found = new Map<string, readonly string[]>();
  for (const { metadata } of body.items as readonly { metadata: { name: string } }[])
    found.set(
      metadata.name,
      [...new Set(await review(thief, metadata.name))].filter((rule) => !everybodys.has(rule)).sort(),
    );
  thief.close();
  anybody.close();
  const [first = [], ...others] = found.values();
  const wide = first.filter((rule) => others.every((rules) => rules.includes(rule)));
  const own = [...found].map(
    ([where, rules]) => [where, rules.filter((rule) => !wide.includes(rule))] as const,
  );
  return Object.fromEntries([['*', wide] as const, ...own].filter(([, rules]) => rules.length > 0));
}

/** Attacks that succeed with the token of that account. */
async function letThrough(
  plane: ControlPlane,
  [namespace, name]: readonly [string, string],
  attacks: readonly Attack[],
  listed?: ReadonlySet<string>,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [as, own] of Map.groupBy(attacks, (attack) => attack.as)) {
    const thief = await stolenToken(plane, namespace, name, as);
    for (const attack of own) if (await isLetThrough(thief, attack, listed)) found.push(described(attack));
    thief.close();
  }
  return found;
}

for (const [name, fleet, cluster, expected] of FLEETS) {
  const title = `against ${name} is refused, but for what the list says`;
  test(title, async () => {
    const plane = await startControlPlane({ crds: 'all' });
    try {
      await furnished(plane, fleet, cluster);
      await attacked(plane, name, expected);
    } finally {
      await plane.stop();
    }
  });
}

async function attacked(plane: ControlPlane, name: string, expected: number): Promise<void> {
  const attacks = attacksOn(await presentIn(plane));
  const accounts = await accountsIn(plane);
  assert.equal(accounts.length, expected, accounts.join(' '));
  const path = (list: string): string => join(import.meta.dirname, '../golden/rbac', list, `${name}.json`);
  const isWritten = process.env['UPDATE_GOLDEN'] === '1';
  const list = isWritten
    ? {}
    : (JSON.parse(readFileSync(path('through'), 'utf8')) as Record<string, readonly string[]>);
  const through: Record<string, readonly string[]> = {};
  const rights: Record<string, Awaited<ReturnType<typeof rightsOf>>> = {};
  for (const account of accounts) {
    const id = account.join('/');
    const listed = isWritten ? undefined : new Set(list[id]);
    through[id] = await letThrough(plane, account, attacks, listed);
    rights[id] = await rightsOf(plane, account);
  }
  for (const [kind, value] of Object.entries({ through, rights })) {
    const text = `${JSON.stringify(value, undefined, 2)}\n`;
    if (isWritten) writeFileSync(path(kind), text);
    assert.equal(text, readFileSync(path(kind), 'utf8'), 'run it with UPDATE_GOLDEN=1');
  }
}
