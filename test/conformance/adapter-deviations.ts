/** Where the pull secret adapter answers differently from the existing job, on purpose. */
import type { Deviation } from './suite.ts';

interface Fault {
  readonly rpc?: string;
  readonly code?: string;
  readonly after?: boolean;
}

/** An entry that no runtime can use: the existing job stores it all the same. */
function hasBadEntry(text: string): boolean {
  try {
    const { auths } = JSON.parse(text) as { auths?: unknown };
    if (typeof auths !== 'object' || auths === null || Array.isArray(auths)) return false;
    return Object.values(auths).some((entry: unknown) => {
      const auth = (entry as { auth?: unknown } | null)?.auth;
      return typeof auth !== 'string' || !Buffer.from(auth, 'base64').toString().includes(':');
    });
  } catch {
    return false;
  }
}

function faults(input: unknown): readonly Fault[] {
  return (input as { faults?: readonly Fault[] }).faults ?? [];
}

export const ADAPTER_DEVIATIONS: Readonly<Record<string, readonly Deviation[]>> = {
  'adapter/sentinel-decision-cases': [
    {
      when: (input) => {
        const { kind, age, ready } = input as { kind?: unknown; age?: unknown; ready?: unknown };
        return kind === 'first-release' && age === (ready === true ? 1800 : 10);
      },
      reason:
        'the running system counts an age that is reached to the second as not exceeded; its first release did not',
    },
  ],
  'adapter/cloudevents-wire-recorded': [
    {
      when: (input) => {
        const { attributes = {} } = input as { attributes?: Record<string, string> };
        return Object.keys(attributes).some((name) => name.toLowerCase() === 'ce-specversion');
      },
      reason: 'events in binary mode are understood as well; the peer nacks them without end',
    },
  ],
  'adapter/job-unit-cases': [
    {
      when: (input) => (input as { code?: unknown }).code === 'Aborted',
      reason: 'Google documents ABORTED as "try again"; the peer gives up',
    },
    {
      when: (input) => {
        const { kind, task = {} } = input as { kind?: string; task?: Record<string, string> };
        return kind === 'config' && task['cluster_id'] !== undefined && task['secret_name'] === undefined;
      },
      reason: 'without SECRET_NAME the name is made from the cluster; the peer checks after it has made one',
    },
    {
      when: (input) => hasBadEntry((input as { text?: string }).text ?? ''),
      reason:
        'each entry must hold user:password, as the requirement says; the peer looks no deeper than "auths"',
    },
  ],
  'adapter/job-peer-recorded': [
    {
      when: (input) => hasBadEntry((input as { env: Record<string, string> }).env['PULL_SECRET_DATA'] ?? ''),
      reason: 'a pull secret that can never work is refused before anything is stored',
    },
    {
      when: (input) => {
        const { args = [], metadata_mode: mode } = input as {
          args?: readonly string[];
          metadata_mode?: string;
        };
        return args.includes('--dry-run') && mode !== 'ok';
      },
      reason: 'a dry run really authenticates; the peer says so without a token',
    },
    {
      when: (input) => faults(input).some((fault) => fault.code === 'ABORTED'),
      reason: 'Google documents ABORTED as "try again"; the peer gives up',
    },
    {
      when: (input) =>
        faults(input).some((fault) => fault.rpc === 'CreateSecret' && fault.code === 'ALREADY_EXISTS'),
      reason:
        'a secret that somebody else has just made is there, which is what was wanted; the peer gives up',
    },
    {
      when: (input) => faults(input).some((fault) => fault.after === true),
      reason:
        'after a lost answer the content is looked at before it is added again; the peer stores it twice',
    },
    {
      when: (input) =>
        faults(input).some((fault) => fault.rpc === 'AccessSecretVersion' && fault.code === undefined),
      reason: 'what reads back differently is a failure; the peer reports success',
    },
    {
      when: (input) => {
        const { preexisting = [] } = input as { preexisting?: readonly unknown[] };
        return preexisting.some((one) => typeof one === 'object');
      },
      reason: 'content that is there already is not added again, and secrets of others are left alone',
    },
  ],
};
