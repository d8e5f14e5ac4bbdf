/** Takes back what the installer put on a node, once the kubelet runs without it. */
import { existsSync, rmSync } from 'node:fs';
import { removeFile } from '../../host/atomic-file.ts';
import { IN_USE_LIFE_MS, NOTES, removeStaleAuthFiles } from '../../node/janitor.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { read } from './host.ts';
import { NEUTRAL, OWN_FILE, OWN_LEFTOVER } from './managed.ts';
import { readRecord } from './record.ts';
import { digestOf, removeConfigs } from './source.ts';
import { dropInFile, type HostPlaces, recordFile } from './wanted.ts';

/**
 * Removes drop-in, files, executable, journal, and auth files that wait for a pull; each may be gone already. The drop-in has no effect any more when this is
 * called, so that the kubelet needs no restart. An executable with other bytes than were copied stays.
 */
export function removeAll(places: HostPlaces & { readonly authDir: string }, log: Logger): void {
  const { root, configDir, stateDir, authDir } = places;
  const file = dropInFile(places);
  if (read('', file)?.text === NEUTRAL) removeFile(file);
  removeConfigs(root + configDir, (name) => OWN_FILE.test(name) || OWN_LEFTOVER.test(name));
  const record = readRecord(recordFile(places));
  if (record !== undefined) removeExecutable(root + record.path, record.sha256, log);
  // The kubelet does not ask any more, so that no pull takes what is there.
  removeStaleAuthFiles(root + authDir, Number.NEGATIVE_INFINITY, Date.now(), IN_USE_LIFE_MS);
  for (const folder of [stateDir, `${authDir}/${NOTES}`])
    rmSync(root + folder, { recursive: true, force: true });
}

function removeExecutable(path: string, sha256: string, log: Logger): void {
  if (!existsSync(path)) return;
  if (digestOf(path) === sha256) removeFile(path);
  else log.warn('Executable stays: somebody else has replaced it since', { file: path });
}
