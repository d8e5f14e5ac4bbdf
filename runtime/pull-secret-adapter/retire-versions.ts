/** Older versions: some stay enabled while both credentials are in use, the others are disabled, repetitions destroyed. */
import { sameSecret } from '../rules/redacted.ts';
import type { StoreInput } from './store-secret.ts';

/** @param current full name of the version that was just added */
export async function retireVersions(input: StoreInput, current: string): Promise<void> {
  const { manager, secretName } = input;
  const enabled = await manager.enabledVersions(secretName);
  const mine = numberOf(current);
  const older = enabled.map((version) => numberOf(version.name)).filter((number) => number < mine);
  let kept = 0;
  for (const number of older.sort((a, b) => b - a)) {
    // Who reads "latest" may still hold the one before: it stays, unless it says the same.
    if (kept >= input.keepVersions) {
      await manager.disable(secretName, String(number));
      continue;
    }
    const payload = await manager.access(secretName, String(number));
    if (payload !== undefined && sameSecret(payload.text, input.content)) {
      await manager.destroy(secretName, String(number));
    } else {
      kept += 1;
    }
  }
}

function numberOf(name: string): number {
  return Number(name.slice(name.lastIndexOf('/') + 1));
}
