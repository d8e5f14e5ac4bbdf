/** Mirror sets as a fleet file has them. */
import type { MirrorSet } from '../../charts/registry-overrides/chart.ts';

export function mirrorSet(name: string, entries: MirrorSet['entries'], type?: MirrorSet['type']): MirrorSet {
  return { name, entries, ...(type === undefined ? {} : { type }) };
}
