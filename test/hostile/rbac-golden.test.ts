/** Every rendered ServiceAccount, role, binding and admission policy: a change shows in a golden. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { defaultFleet, type FleetInput, readFleet, renderFleet } from '../../charts/mod.ts';
import { type Case, table, test } from '../support/suite.ts';
import { discovery, full, hub, named } from './rights-fleets.ts';

const KINDS = /^(ServiceAccount|(Cluster)?Role(Binding)?|(Validating|Mutating)AdmissionPolicy(Binding)?)$/;

interface Fleet extends Case {
  readonly fleet: FleetInput;
  /** Its folder in the rendered tree. */
  readonly cluster?: string;
}

const FLEETS: readonly Fleet[] = [
  { name: 'default', reason: 'what a fleet that says nothing gets', fleet: defaultFleet },
  { name: 'full', reason: 'all systems of a stand-alone cluster', fleet: full },
  { name: 'hub', reason: 'a management cluster', fleet: hub, cluster: 'hub/' },
  { name: 'guest', reason: 'its hosted cluster', fleet: hub, cluster: 'guest/' },
  { name: 'discovery', reason: 'hosted clusters are not named', fleet: discovery },
  { name: 'named', reason: 'all that can be named is named', fleet: named },
];

/** YAML of the objects of these kinds, in the order of the rendered tree. */
function rbacOf({ fleet, cluster = '' }: Fleet): string {
  const documents = [...renderFleet(readFleet(fleet)).tree]
    .filter(([path]) => path.startsWith(cluster) && path.endsWith('.yaml'))
    .flatMap(([, text]) => parseAllDocuments(text))
    .filter((document) => KINDS.test(String(document.get('kind'))));
  return documents.map((document) => document.toString({ directives: false, lineWidth: 0 })).join('---\n');
}

table(test, FLEETS, (fleet) => {
  const path = join(import.meta.dirname, '../golden/rbac', `${fleet.name}.yaml`);
  const rendered = rbacOf(fleet);
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(path, rendered);
  assert.equal(rendered, readFileSync(path, 'utf8'), 'look at it, then run with UPDATE_GOLDEN=1');
});
