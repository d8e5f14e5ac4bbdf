/** Sends lines to the journal over its stream socket, as a service's stdout would go there. */
import { createConnection } from 'node:net';
import type { LogLine } from './log.ts';

const PATIENCE_MS = 200;

/**
 * Sends the lines under `identifier`; gives up quietly, because a journal that is away must not fail a pull. The first lines
 * of the stream are its header: identifier, unit, default priority, whether lines carry a priority, and no forwarding.
 */
export async function sendToJournal(
  socket: string,
  identifier: string,
  lines: readonly LogLine[],
): Promise<void> {
  const body = lines.map(({ priority, text }) => `<${priority}>${text}\n`).join('');
  await new Promise<void>((resolve) => {
    const connection = createConnection(socket);
    const timer = setTimeout(() => connection.destroy(), PATIENCE_MS);
    connection.on('error', () => undefined);
    connection.on('close', () => {
      clearTimeout(timer);
      resolve();
    });
    connection.on('finish', () => connection.destroy());
    connection.end(`${identifier}\n\n6\n1\n0\n0\n0\n${body}`);
  });
}
