/** Deliberate differences between the pull secret adapter and the existing job. */
import { type Deviation, deviates } from './suite.ts';

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
    deviates(
      'the running system counts an age that is reached to the second as not exceeded; its first release did not',
      ({ kind, age, ready }: { kind?: unknown; age?: unknown; ready?: unknown }) =>
        kind === 'first-release' && age === (ready === true ? 1800 : 10),
    ),
  ],
  'adapter/cloudevents-wire-recorded': [
    deviates(
      'events in binary mode are understood as well; the peer nacks them without end',
      ({ attributes = {} }: { attributes?: Record<string, string> }) =>
        Object.keys(attributes).some((name) => name.toLowerCase() === 'ce-specversion'),
    ),
  ],
  'adapter/job-unit-cases': [
    deviates(
      'Google documents ABORTED as "try again"; the peer gives up',
      (input) => (input as { code?: unknown }).code === 'Aborted',
    ),
    deviates(
      'without SECRET_NAME the name is made from the cluster; the peer checks after it has made one',
      ({ kind, task = {} }: { kind?: string; task?: Record<string, string> }) =>
        kind === 'config' && task['cluster_id'] !== undefined && task['secret_name'] === undefined,
    ),
    deviates(
      'each entry must hold user:password, as the requirement says; the peer looks no deeper than "auths"',
      (input) => hasBadEntry((input as { text?: string }).text ?? ''),
    ),
  ],
  'adapter/job-peer-recorded': [
    deviates('a pull secret that can never work is refused before anything is stored', (input) =>
      hasBadEntry((input as { env: Record<string, string> }).env['PULL_SECRET_DATA'] ?? ''),
    ),
    deviates(
      'a dry run really authenticates; the peer says so without a token',
      ({ args = [], metadata_mode: mode }: { args?: readonly string[]; metadata_mode?: string }) =>
        args.includes('--dry-run') && mode !== 'ok',
    ),
    deviates('Google documents ABORTED as "try again"; the peer gives up', (input) =>
      faults(input).some((fault) => fault.code === 'ABORTED'),
    ),
    deviates(
      'a secret that somebody else has just made is there, which is what was wanted; the peer gives up',
      (input) =>
        faults(input).some((fault) => fault.rpc === 'CreateSecret' && fault.code === 'ALREADY_EXISTS'),
    ),
    deviates(
      'after a lost answer the content is looked at before it is added again; the peer stores it twice',
      (input) => faults(input).some((fault) => fault.after === true),
    ),
    deviates('what reads back differently is a failure; the peer reports success', (input) =>
      faults(input).some((fault) => fault.rpc === 'AccessSecretVersion' && fault.code === undefined),
    ),
    deviates(
      'content that is there already is not added again, and secrets of others are left alone',
      ({ preexisting = [] }: { preexisting?: readonly unknown[] }) =>
        preexisting.some((one) => typeof one === 'object'),
    ),
  ],
};
