/** A bus whose systemd does what a script says: for orders of messages that a real one gives only by luck. */

import { PullwrightError } from '../../runtime/core/errors.ts';
import { type Bus, type BusCall, BusRefused, type BusSignal } from '../../runtime/node/systemd.ts';

export interface BusScript {
  /** Result of the job; null: it never ends. */
  readonly result: string | null;
  /** Error name and text that the call is answered with. */
  readonly refused?: readonly [string, string];
  /** The signal comes before the reply to the call. */
  readonly early?: boolean;
  /** The connection breaks at this call, without a reply. */
  readonly losesAt?: string;
  /** State of the unit before and after the call. */
  readonly before?: Unit;
  readonly after?: Unit;
}

interface Unit {
  readonly active: string;
  readonly invocation: string;
  readonly busy?: boolean;
}

export interface ScriptedBus {
  readonly connect: () => Promise<Bus>;
  /** Members called, in order. */
  readonly calls: string[];
}

const JOB = '/org/freedesktop/systemd1/job/7';

export function scriptedBus(script: BusScript): ScriptedBus {
  const calls: string[] = [];
  let called = false;
  const connect = (): Promise<Bus> => {
    const listeners: ((signal: BusSignal) => void)[] = [];
    let lose: (error: Error) => void = () => undefined;
    const lost = new Promise<never>((_, reject) => {
      lose = reject;
    });
    lost.catch(() => undefined);
    const ended = (): void => {
      if (script.result === null) return;
      const signal = {
        path: '/org/freedesktop/systemd1',
        interface: 'org.freedesktop.systemd1.Manager',
        member: 'JobRemoved',
      };
      // An unrelated job ends as well.
      for (const tell of listeners)
        tell({ ...signal, body: [6, '/org/freedesktop/systemd1/job/6', 'other.service', 'failed'] });
      for (const tell of listeners) tell({ ...signal, body: [7, JOB, 'kubelet.service', script.result] });
    };
    const answer = (call: BusCall): readonly unknown[] => {
      switch (call.member) {
        case 'LoadUnit':
          return ['/org/freedesktop/systemd1/unit/kubelet_2eservice'];
        case 'GetAll':
          return [
            properties((called ? script.after : script.before) ?? { active: 'active', invocation: 'aa' }),
          ];
        case 'RestartUnit':
          called = true;
          if (script.refused !== undefined) throw new BusRefused(call.member, ...script.refused);
          if (script.early === true) ended();
          else setImmediate(ended);
          return [JOB];
        default:
          return [];
      }
    };
    return Promise.resolve({
      lost,
      close: () => undefined,
      onSignal: (listener) => listeners.push(listener),
      call: async (call) => {
        calls.push(call.member);
        await Promise.resolve();
        if (call.member === script.losesAt && !called) {
          called = true;
          const error = new PullwrightError('Cannot use the bus: it closed the connection', {
            code: 'BusLost',
          });
          lose(error);
          throw error;
        }
        return answer(call);
      },
    });
  };
  return { connect, calls };
}

function properties(unit: Unit): Record<string, { value: unknown }> {
  return {
    ActiveState: { value: unit.active },
    SubState: { value: 'running' },
    LoadState: { value: 'loaded' },
    InvocationID: { value: Buffer.from(unit.invocation, 'hex') },
    Job: { value: [unit.busy === true ? 7 : 0, '/'] },
  };
}
