/** A tenant whose Secrets weigh as much as an API server takes, and what a process had in memory. */
import { readFileSync } from 'node:fs';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { sourceObject } from '../pull-secret-injection/live.ts';

export const HEAVY_NAMESPACE = 'heavy';

/** Valid, and as large as a Secret can be. */
function heavyObject(name: string): TestObject {
  const object = sourceObject(HEAVY_NAMESPACE, name, ['heavy.example']);
  const auths = { 'heavy.example': { auth: Buffer.from(`a:${'x'.repeat(750_000)}`).toString('base64') } };
  return {
    ...object,
    data: { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') },
  };
}

/** Name of the heavy Secret at this place. */
export function heavyName(at: number): string {
  return `heavy-${String(at).padStart(3, '0')}`;
}

/** Makes those from one place to another. */
export async function makeHeavy(plane: ControlPlane, from: number, to: number): Promise<void> {
  const path = `/api/v1/namespaces/${HEAVY_NAMESPACE}/secrets`;
  for (let at = from; at < to; at += 1) {
    const { status } = await plane.client.request('POST', path, heavyObject(heavyName(at)));
    if (status !== 201) throw new Error(`${heavyName(at)} was refused: ${status}`);
  }
}

/** The most that a process has had in memory, in MiB. */
export function peakOf(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / 1024;
}

/** The processor time that it has had, in milliseconds. */
export function processorMs(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // After the name, which is in brackets: user and system time are the 12th and 13th, in hundredths of a second.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
