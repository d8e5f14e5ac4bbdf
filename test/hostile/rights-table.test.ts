// deadline: 600 s
/**
 * Somebody has the token of an account that ships, and tries all there is to try. What a real API server answers is what
 * `pullwright rights` says, attempt by attempt, and what is let through stands in a list.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FleetInput, readFleet, renderFleet, writeTree } from '../../charts/mod.ts';
import type { Right } from '../../runtime/rules/rights/right.ts';
import { type ControlPlane, missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { Requester } from '../control-plane/request.ts';
import { suite } from '../support/suite.ts';
import { attacksOn, FOREIGN, NAMESPACES, type Present } from './rights-attacks.ts';
import { discovery, full, hub, rights } from './rights-fleets.ts';
import { stolenToken } from './rights-live-plane.ts';
import { type Attack, described, taken } from './rights-requests.ts';

const test = suite('all that a stolen token tries');
const folder = mkdtempSync(join(tmpdir(), 'pullwright-table-'));
test.lastly('the scratch folder goes', () => rmSync(folder, { recursive: true }));

/** Each fleet, the folder of the cluster in it, and how many accounts have tokens there. */
const FLEETS: readonly (readonly [name: string, fleet: FleetInput, cluster: string, accounts: number])[] = [
  ['full', full, '.', 6],
  ['hub', hub, 'hub', 2],
  // Its agents' account comes with the agents.
  ['guest', hub, 'guest', 1],
  ['discovery', discovery, '.', 2],
];

/** What `rights` says of an attempt: no right, or those that cover it. */
function covering(account: string, attack: Attack, all: readonly Right[]): readonly Right[] {
  return all.filter(
    (right) =>
      right.account === account &&
      right.power === attack.power &&
      right.resources.includes(attack.resource) &&
      right.verbs.includes(attack.verb) &&
      (right.namespace === undefined || right.namespace === attack.namespace) &&
      (right.names === undefined || (attack.name !== undefined && right.names.includes(attack.name))),
  );
}

interface Rights {
  readonly all: readonly Right[];
  /** What the list lets through; undefined while it is written. */
  readonly listed: ReadonlySet<string> | undefined;
}

/** Waits, since a policy is taken in some time after it was stored. */
async function judged(
  thief: Requester,
  account: string,
  attack: Attack,
  { all, listed }: Rights,
): Promise<string | undefined> {
  const own = covering(account, attack, all);
  return await eventually(async () => {
    const live = await taken(thief, attack);
    const what = `${account}: ${described(attack)}: ${JSON.stringify(live)}, ${JSON.stringify(own)}`;
    if (own.length === 0) {
      assert.equal(live.kind, 'unauthorized', what);
      return undefined;
    }
    assert.notEqual(live.kind, 'unauthorized', what);
    if (live.kind === 'escalation') return undefined;
    const closed = own.every(({ boundBy }) => boundBy.some(({ unless }) => unless.length === 0));
    if (closed) assert.equal(live.kind, 'refused', what);
    const bounds = own.flatMap(({ boundBy }) => boundBy.map(({ policy }) => policy));
    if (live.kind !== 'refused') {
      const isExpected = listed?.has(described(attack)) ?? true;
      assert.ok(isExpected || bounds.length === 0, `let through, and not in the list: ${what}`);
      return described(attack);
    }
    assert.ok(bounds.includes(live.policy), what);
    return undefined;
  });
}

async function furnished(plane: ControlPlane, fleet: FleetInput, cluster: string): Promise<string> {
  for (const name of [...NAMESPACES, 'clusters', 'openshift-marketplace'])
    await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name } });
  const place = join(folder, plane.server.replace(/\W/g, '-'));
  writeTree(place, renderFleet(readFleet(fleet)).tree);
  const from = join(place, cluster);
  const ran = await plane.kubectl('apply', '--server-side', '--force-conflicts', '-k', from);
  assert.equal(ran.code, 0, ran.stderr);
  for (const namespace of NAMESPACES) {
    await plane.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: FOREIGN, namespace } });
    await plane.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } });
  }
  await plane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } });
  return from;
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

/** What is let through of all that somebody tries with the token of that account. */
async function letThrough(
  plane: ControlPlane,
  [namespace, name]: readonly [string, string],
  attacks: readonly Attack[],
  known: Rights,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [as, own] of Map.groupBy(attacks, (attack) => attack.as)) {
    const thief = await stolenToken(plane, namespace, name, as);
    for (const attack of own) {
      const one = await judged(thief, `ServiceAccount ${namespace}/${name}`, attack, known);
      if (one !== undefined) found.push(one);
    }
    thief.close();
  }
  return found;
}

const missing = missingControlPlane();
for (const [name, fleet, cluster, expected] of FLEETS) {
  const title = `against ${name} is refused as rights say, and what is not stands in the list`;
  if (missing !== undefined) test.skip(title, missing);
  else
    test(title, async () => {
      const plane = await startControlPlane({ crds: 'all' });
      try {
        await attacked(plane, { name, from: await furnished(plane, fleet, cluster), expected });
      } finally {
        await plane.stop();
      }
    });
}

async function attacked(
  plane: ControlPlane,
  { name, from, expected }: { readonly name: string; readonly from: string; readonly expected: number },
): Promise<void> {
  const live = await rights('--kubeconfig', plane.kubeconfig, '--output=json');
  assert.equal(live.code, 0, live.stderr);
  const offline = await rights('--from', from, '--output=json');
  assert.deepEqual(JSON.parse(live.stdout), JSON.parse(offline.stdout), 'the folder says the same');
  const all: readonly Right[] = JSON.parse(live.stdout).rights;
  const attacks = attacksOn(await presentIn(plane));
  const accounts = await accountsIn(plane);
  assert.equal(accounts.length, expected, accounts.join(' '));
  const path = join(import.meta.dirname, '../golden/rights/through', `${name}.json`);
  const isWritten = process.env['UPDATE_GOLDEN'] === '1';
  const list = isWritten ? {} : (JSON.parse(readFileSync(path, 'utf8')) as Record<string, readonly string[]>);
  const through: Record<string, readonly string[]> = {};
  for (const account of accounts) {
    const id = account.join('/');
    const listed = isWritten ? undefined : new Set(list[id]);
    through[id] = await letThrough(plane, account, attacks, { all, listed });
  }
  const text = `${JSON.stringify(through, undefined, 2)}\n`;
  if (isWritten) writeFileSync(path, text);
  assert.equal(text, readFileSync(path, 'utf8'), 'run it with UPDATE_GOLDEN=1');
}

test.run();
