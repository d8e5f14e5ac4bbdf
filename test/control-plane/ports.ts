/** Ports of servers that are started, and started again, while other tests start theirs. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Range {
  readonly first: number;
  readonly count: number;
}

const ALL: Range = { first: 20_000, count: 12_000 };

/** Ports of this process. */
const claims = new Set<string>();
process.once('exit', () => {
  for (const claim of claims) rmSync(claim, { force: true });
});

/**
 * Ports below the range that Linux gives to outgoing connections: a server that is restarted finds its port free, and a
 * client that knocks while it is down cannot be connected to itself. Nobody else is given them for as long as this process lives: between a
 * look and the start of the server lie seconds in which another test looks.
 */
export async function freePorts(count: number, among: Range = ALL): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = among.first + Math.floor(Math.random() * among.count);
    if (claim(port) && (await isFree(port))) ports.push(port);
  }
  return ports;
}

function claim(port: number): boolean {
  const path = join(tmpdir(), `pullwright-port-${port}`);
  if (claims.has(path)) return false;
  for (let tries = 0; tries < 2; tries += 1)
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' });
      claims.add(path);
      return true;
    } catch {
      if (isHeld(path)) return false;
    }
  return false;
}

/** Takes away what an ended process left. What cannot be read or removed belongs to another user. */
function isHeld(path: string): boolean {
  try {
    process.kill(Number(readFileSync(path, 'utf8')), 0);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') return true;
  }
  try {
    rmSync(path, { force: true });
    return false;
  } catch {
    return true;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
