/**
 * Values out of the tables of a `registries.conf`, with the refusals that the runtime has for a wrong type.
 *
 * Source of the rule: BurntSushi/toml, with which containers/image reads the file. It does not mind the case of a key.
 */

import { PullwrightError } from '../errors.ts';
import { isRecord } from '../record.ts';

/** A table as a TOML parser gives it. */
export type Table = Readonly<Record<string, unknown>>;

/** The file is one that the runtime itself refuses, with its reason. */
export function refuse(reason: string): PullwrightError {
  return new PullwrightError(reason, { code: 'RegistriesConfRefused', disposition: 'terminal' });
}

export function stringOf(table: Table, key: string): string {
  const value = table[key];
  if (value === undefined) return '';
  if (typeof value !== 'string') throw mismatch(key, 'string', value);
  return value;
}

export function flagOf(table: Table, key: string): boolean {
  const value = table[key];
  if (value === undefined) return false;
  if (typeof value !== 'boolean') throw mismatch(key, 'bool', value);
  return value;
}

export function listOf(table: Table, key: string): readonly unknown[] {
  const value = table[key];
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw mismatch(key, 'array', value);
  return value;
}

export function tablesOf(table: Table, key: string): readonly Table[] {
  return listOf(table, key).map((entry) => asTable(entry, key));
}

/** A table with the keys that mean something in lower case; of two spellings of one key the lower one counts. */
export function asTable(value: unknown, key: string): Table {
  if (!isRecord(value) || value instanceof Date) throw mismatch(key, 'table', value);
  for (const name in value) if (CAPITAL.test(name)) return lowered(value);
  return value;
}

const CAPITAL = /[A-Z]/;

function lowered(table: Table): Table {
  return {
    ...Object.fromEntries(Object.entries(table).map(([name, value]) => [name.toLowerCase(), value])),
    ...table,
  };
}

export function mismatch(key: string, wanted: string, found: unknown): PullwrightError {
  return refuse(
    `toml: incompatible types: ${key} is ${Array.isArray(found) ? 'array' : typeof found}, expected ${wanted}`,
  );
}
