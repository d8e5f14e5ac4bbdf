/**
 * `npm run reference`: writes every page of `docs/reference` and the schema of the fleet file, from the tables and sources of the
 * program. A test compares the committed files with the same output.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fleetSchemaText } from '../../charts/fleet-schema.ts';
import { alertsPage, allAlerts } from './alerts.ts';
import { commandPages, manPage, markdownReference } from './cli.ts';
import { fleetPage, kindsPage } from './kinds.ts';
import { allMetrics, metricsPage } from './metrics.ts';
import { conditionsPage, errorsPage, eventsPage } from './reasons.ts';
import { rightsPage } from './rights.ts';
import { allSaid } from './said.ts';
import { readSources } from './source.ts';

/** Folder of the pages. */
export const REFERENCE: string = resolve(import.meta.dirname, '../../docs/reference');

/** JSON schema of the fleet file, for editors. */
export const FLEET_SCHEMA: string = join(REFERENCE, '../fleet.schema.json');

/** Returns every page by its file name. */
export async function referencePages(): Promise<ReadonlyMap<string, string>> {
  const commands = await commandPages();
  const sources = readSources();
  const said = allSaid(sources);
  return new Map([
    ['cli.md', markdownReference(commands)],
    ['pullwright.1', manPage(commands)],
    ['kinds.md', kindsPage()],
    ['fleet.md', fleetPage()],
    ['conditions.md', conditionsPage(said)],
    ['events.md', eventsPage(said)],
    ['errors.md', errorsPage(said)],
    ['metrics.md', metricsPage(await allMetrics(sources))],
    ['alerts.md', alertsPage(allAlerts())],
    ['rights.md', rightsPage()],
  ]);
}

/** Writes every page and the schema. */
export async function writeReference(): Promise<void> {
  mkdirSync(REFERENCE, { recursive: true });
  for (const [name, text] of await referencePages()) writeFileSync(join(REFERENCE, name), text);
  writeFileSync(FLEET_SCHEMA, fleetSchemaText());
}

if (import.meta.main) await writeReference();
