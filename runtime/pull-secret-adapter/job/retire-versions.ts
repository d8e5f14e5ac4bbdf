/** Older versions: some stay enabled while both credentials are in use, the others are disabled, repetitions destroyed. */
import { sameSecret } from '../../rules/redacted.ts';
import { versionNumber } from './read-version.ts';
import type { GcpSecret } from './secret-manager.ts';
import type { StoreInput } from './store-input.ts';

/**
 * @param current full name of the version that holds the content
 * @returns how many versions are enabled afterwards
 */
export async function retireVersions(input: StoreInput, secret: GcpSecret, current: string): Promise<number> {
  const { manager, secretName } = input;
  const enabled = await manager.enabledVersions(secretName);
  const mine = Number(versionNumber(current));
  // What somebody gave a name is in use under it.
  const named = new Set(Object.values(secret.versionAliases ?? {}).map(Number));
  const numbers = enabled.map((version) => Number(versionNumber(version.name)));
  const older = numbers.filter((number) => number < mine && !named.has(number));
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
  return numbers.length - older.length + kept;
}
