/** What two sections of one cluster surprise each other with. */
import type { FleetProblem } from './fleet-problems.ts';
import type { Section } from './fleet-sections.ts';

/**
 * Beside the credential provider every pull secret of a namespace may be what a pod pulls with: `verify` has to list them, or its report is
 * `Incomplete` each time.
 */
export function pairWarnings(sections: readonly (readonly Section[])[]): readonly FleetProblem[] {
  return sections.flatMap((own, index) => {
    const verify = own.find(({ system }) => system.name === 'verify')?.config as
      | { readonly namespaceSecrets?: boolean; readonly secretNames?: readonly string[] }
      | undefined;
    const provides = own.some(({ system }) => system.name === 'credential-provider');
    if (!provides || verify === undefined) return [];
    if (verify.namespaceSecrets === true || verify.secretNames !== undefined) return [];
    return [
      {
        path: ['clusters', index, 'systems', 'verify', 'namespaceSecrets'],
        text: 'with the credential provider pods pull with any pull secret of their namespace, and who may not list those reports Incomplete: write namespaceSecrets: true, or name the Secrets that count in secretNames',
      },
    ];
  });
}
