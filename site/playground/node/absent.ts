/** What a page has not: a cluster, a registry, a disk to write to, a chart to render. Nothing that the page offers leads here. */
import { UsageError } from '../../../runtime/core/errors.ts';

export function absent(): never {
  throw new UsageError(
    'This page has files only: no cluster, no registry and no disk. Use the program for that',
  );
}
