/** Gives in where somebody else changes an object back again and again, and says who it is. */
import { PullwrightError } from '../rules/errors.ts';
import { describeObject, type KubeObject } from '../rules/kubernetes/object.ts';
import type { Cluster } from './cluster.ts';
import type { Ref } from './contract.ts';

/** A write to an object that is there. */
export interface Correction {
  readonly ref: Ref;
  readonly before: KubeObject | undefined;
  /** Digest of what is written: the same for the same. */
  readonly digest: () => string;
  /**
   * What to do about a fight.
   *
   * @default hint {what most objects have}
   */
  readonly hint?: string;
}

/**
 * Writes, unless somebody undoes it again and again. What did not get through corrected nothing: an API server that refuses for a while is no
 * other manager.
 *
 * @throws PullwrightError `ManagedElsewhere`; else what `write` throws
 */
export async function withoutFight<T>(
  correction: Correction,
  cluster: Cluster,
  write: () => Promise<T>,
): Promise<T> {
  assertNoFight(correction, cluster);
  try {
    return await write();
  } catch (error) {
    cluster.fights.takeBack(describeObject(correction.ref));
    throw error;
  }
}

const HINT = 'Let one of both manage it: set mode observe here, or stop the other';

function assertNoFight({ ref, before, digest, hint = HINT }: Correction, { fights }: Cluster): void {
  if (fights.allows(describeObject(ref), digest)) return;
  const others = (before?.metadata.managedFields ?? [])
    .map(({ manager }) => manager ?? '')
    .filter((manager) => !manager.startsWith('pullwright-'));
  const names = [...new Set(others)].map((name) => `"${name}"`).join(', ');
  throw new PullwrightError(
    `Cannot keep "${describeObject(ref)}" as declared: it is changed back again and again, by ${names === '' ? 'another manager' : names}`,
    {
      code: 'ManagedElsewhere',
      disposition: 'terminal',
      hint,
    },
  );
}
