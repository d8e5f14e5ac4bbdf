/** The lines of a watch, as events. */
import { apiErrorOf } from './api-error.ts';
import type { WatchEvent } from './client.ts';
import { decodeObject } from './decode.ts';
import type { JsonLine } from './lines.ts';
import { type Collection, describeCollection } from './resources.ts';

interface RawEvent {
  readonly type: string;
  readonly object: Readonly<Record<string, unknown>> & {
    readonly code?: number;
    readonly metadata?: { readonly resourceVersion?: string };
  };
}

/** One event for each line. @throws ApiError when the server ends the watch with one */
export async function* watchEvents(
  lines: AsyncIterable<JsonLine>,
  collection: Collection,
): AsyncGenerator<WatchEvent> {
  for await (const line of lines) yield watchEventOf(line, collection);
}

function watchEventOf({ value, leftOut, bytes }: JsonLine, collection: Collection): WatchEvent {
  const { type, object } = value as RawEvent;
  if (type === 'ERROR') {
    const subject = describeCollection(collection);
    throw apiErrorOf({ verb: 'watch', subject, status: object.code ?? 500, body: object });
  }
  if (type === 'BOOKMARK') return { type, resourceVersion: object.metadata?.resourceVersion ?? '', bytes };
  // Where only the metadata is read, the server calls it PartialObjectMetadata.
  const { apiVersion, kind } = collection;
  return { type: type as 'ADDED', object: decodeObject({ ...object, apiVersion, kind }), leftOut, bytes };
}
