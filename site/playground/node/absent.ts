/** Stubs for what a page lacks: a cluster, a registry, a writable disk, chart rendering. No feature of the page reaches them. */
import { UsageError } from '../../../runtime/core/errors.ts';

export function absent(): never {
  throw new UsageError(
    'This page has files only: no cluster, no registry and no disk. Use the program for that',
  );
}
