/**
 * `npm run reference`: writes every page of `docs/reference`, and the schema of the fleet file beside it, out of the tables and the sources of the program. The
 * same texts are held against the folder in the test suite.
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

/** Where the pages are. */
export const REFERENCE: string = resolve(import.meta.dirname, '../../docs/reference');

/** For editors of a fleet file. */
export const FLEET_SCHEMA: string = join(REFERENCE, '../fleet.schema.json');

/** Every page by its name in the folder. */
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

/** Writes them. */
export async function writeReference(): Promise<void> {
  mkdirSync(REFERENCE, { recursive: true });
  for (const [name, text] of await referencePages()) writeFileSync(join(REFERENCE, name), text);
  writeFileSync(FLEET_SCHEMA, fleetSchemaText());
}

if (import.meta.main) await writeReference();
