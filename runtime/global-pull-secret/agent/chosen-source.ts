/** Which of the two pull secrets counts, and what it says: from the watch while it is ahead, else from the mounts. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { PullwrightError } from '../../rules/errors.ts';
import { redact, reveal } from '../../rules/redacted.ts';
import { choosePullSecret } from '../reconciler/source.ts';
import { type AgentDocument, parseDocument } from './document.ts';
import { type MountedSecret, readSource, sha256Of } from './mounted-secret.ts';
import type { SourceName, WatchedSecret } from './secret-watch.ts';

export interface SecretPlaces {
  readonly globalFile: string;
  readonly originalFile: string;
  /** The secrets as the API server has them; undefined while nobody knows. @default nobody asks it */
  readonly watched?: (name: SourceName) => WatchedSecret | undefined;
}

/** What the mounts held when the watch last brought the newest. */
export type Mounts = Map<SourceName, string>;

export interface ChosenSource {
  readonly from: SourceName;
  readonly document: AgentDocument;
  readonly source: MountedSecret;
}

/** Which source counts, and what it says; undefined where both are mounted and neither exists. */
export function chosenSource(options: SecretPlaces, mounts: Mounts): ChosenSource | undefined {
  const read = (name: SourceName): MountedSecret =>
    newest(name, readSource(options[`${name}File`]), options, mounts);
  const sources = { global: read('global'), original: read('original') };
  const choice = choosePullSecret(sources.global.file, sources.original.file);
  const subject = (name: 'global' | 'original'): string => `${name} pull secret "${sources[name].path}"`;
  if (choice.ok) {
    const source = sources[choice.used];
    return { from: choice.used, document: parseDocument(source.bytes, subject(choice.used)), source };
  }
  for (const name of ['global', 'original'] as const) {
    const { error, bytes, file } = sources[name];
    if (error !== undefined) throw error;
    // Says in our words what is wrong with it, without a character of the text.
    if (file.state === 'present' && reveal(bytes).length > 0) parseDocument(bytes, subject(name));
  }
  if (sources.original.file.state === 'present') parseDocument(sources.original.bytes, subject('original'));
  if (existsSync(dirname(options.originalFile)) && existsSync(dirname(options.globalFile))) return undefined;
  throw new PullwrightError(`Cannot read ${subject('original')}: it does not exist`, {
    code: 'SourceMissing',
    hint: 'Mount Secret kube-system/original-pull-secret there, optional where the cluster has none',
  });
}

/**
 * The watch is ahead of the mount as long as it is open. When it is not, the mount is newer as soon as it holds something else
 * than it held while the watch was open.
 */
function newest(
  name: SourceName,
  mount: MountedSecret,
  { watched }: SecretPlaces,
  mounts: Mounts,
): MountedSecret {
  const seen = watched?.(name);
  if (seen === undefined) return mount;
  const held = sha256Of(mount);
  if (seen.live) mounts.set(name, held);
  else if (mounts.get(name) !== held) return mount;
  if (seen.bytes === undefined)
    return { path: mount.path, file: { state: 'absent' }, bytes: redact(new Uint8Array()) };
  const content = redact(Buffer.from(reveal(seen.bytes)).toString('utf8'));
  const { bytes, judged, confirmed, resourceVersion } = seen;
  return {
    path: mount.path,
    file: { state: 'present', content },
    bytes,
    judged,
    confirmed,
    resourceVersion,
  };
}
