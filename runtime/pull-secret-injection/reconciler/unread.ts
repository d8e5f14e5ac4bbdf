/** Secrets that are not read, though they may be there: that they are not seen says nothing of them. */
import type { World } from '../../controller/contract.ts';
import type { ProfileSource } from '../../rules/injection/profile.ts';
import { type InjectionOptions, isOutside } from '../options.ts';
import { secretRef, sourceName } from './names.ts';

/** Why the Secret is not read, and what to do; undefined when it is. */
export function unreadText(
  world: World,
  { namespace, name }: ProfileSource,
  options: InjectionOptions,
): string | undefined {
  const id = sourceName({ namespace, name });
  const { namespaces, secretNames, sources } = options;
  if (isOutside(namespace, options))
    return `Secret "${id}" is not read: the fleet has pull-secret-injection work in ${namesText(namespaces)} alone; add "${namespace}" to its namespaces`;
  if (namespaces.length === 0) return undefined;
  if (secretNames.length > 0 && !secretNames.includes(name) && !sources.includes(id))
    return `Secret "${id}" is not read: the fleet names the Secrets that pull-secret-injection may read; add "${name}" to its secretNames, or the profile to its profiles`;
  if (world.isUnreadable(secretRef(namespace, name)))
    return `Secret "${id}" may not be read: the Role of pull-secret-injection in namespace "${namespace}" is missing; apply what synth renders for the namespace`;
  return undefined;
}

/** e.g. `"a", "b"`. */
export function namesText(names: readonly string[]): string {
  const some = names.slice(0, 5).map((name) => `"${name}"`);
  return `${some.join(', ')}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`;
}
