/** What the installer remembers of the executable that it copied, so that it takes back that file and no other. */
import { readFileSync } from 'node:fs';
import { replaceFile } from '../../host/atomic-file.ts';

/** The copied executable. */
export interface InstalledExecutable {
  /** Absolute path on the host. */
  readonly path: string;
  /** Lower-case hexadecimal SHA-256 of its bytes. */
  readonly sha256: string;
  readonly version: string;
}

/** Reads the record `file`; undefined when there is none that can be understood. */
export function readRecord(file: string): InstalledExecutable | undefined {
  try {
    const value = JSON.parse(readFileSync(file, 'utf8')) as Partial<Record<string, unknown>>;
    const { path, sha256, version } = value;
    return typeof path === 'string' && typeof sha256 === 'string' && typeof version === 'string'
      ? { path, sha256, version }
      : undefined;
  } catch {
    return undefined;
  }
}

/** Stores the record, whole or not at all. */
export function storeRecord(file: string, record: InstalledExecutable): void {
  replaceFile(file, Buffer.from(`${JSON.stringify(record)}\n`), { mode: 0o600 });
}
