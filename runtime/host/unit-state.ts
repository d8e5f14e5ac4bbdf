/** What a unit does now, by its properties. */
import { PullwrightError } from '../rules/errors.ts';

/** A unit as systemd sees it. */
export interface UnitState {
  /** `active`, `activating`, `failed`, `inactive` and so on. */
  readonly active: string;
  /** `running`, `auto-restart`, `dead` and so on. */
  readonly sub: string;
  /** `loaded`, `not-found`, `masked` and so on. */
  readonly load: string;
  /** A new value each time the unit is started, in hex; empty when it never was. */
  readonly invocation: string;
  /** Whether a job of the unit is waiting or running. */
  readonly busy: boolean;
}

/** @throws PullwrightError for an answer without properties */
export function unitState(answer: unknown): UnitState {
  if (typeof answer !== 'object' || answer === null)
    throw new PullwrightError('Cannot read the state of the unit: systemd answers without its properties', {
      code: 'BusAnswer',
    });
  const all = answer as Readonly<Record<string, { readonly value?: unknown } | null | undefined>>;
  const text = (name: string): string => {
    const value = all[name]?.value;
    return typeof value === 'string' ? value : '';
  };
  const id = all['InvocationID']?.value;
  const job = all['Job']?.value;
  return {
    active: text('ActiveState'),
    sub: text('SubState'),
    load: text('LoadState'),
    invocation: isBytes(id) ? Buffer.from(id).toString('hex') : '',
    busy: Array.isArray(job) && job[0] !== 0,
  };
}

function isBytes(value: unknown): value is Uint8Array | readonly number[] {
  if (value instanceof Uint8Array) return true;
  return Array.isArray(value) && value.every((one) => typeof one === 'number');
}
