/** A mirror set of a fleet file. */
import type { MirrorSet } from '../../charts/registry-overrides/chart.ts';

export function mirrorSet(name: string, entries: MirrorSet['entries'], type?: MirrorSet['type']): MirrorSet {
  return { name, entries, ...(type === undefined ? {} : { type }) };
}
