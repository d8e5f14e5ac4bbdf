/**
 * What stands in a cluster with pull secret injection, besides the reconciler and the definitions of kinds.
 *
 * The guard policy names the account that really writes, or is not rendered: one that names an account which does not exist
 * binds nobody and reads as if it did.
 */

import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { labels, type NetworkSettings } from '../../runtime/core/kubernetes/objects.ts';
import { PROFILE_API_VERSION, PROFILE_KIND } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import type { CertificateSource } from '../../runtime/pull-secret-injection/options.ts';
import { aggregatedRoles, triesPods } from './access.ts';
import {
  collisionPolicy,
  consentPolicy,
  dryRunPolicy,
  grantConsentPolicy,
  guardPolicy,
  sidecarSetConsentPolicy,
} from './consent.ts';
import { webhookObjects } from './webhook.ts';

export interface InjectionObjectsInput {
  readonly namespace: string;
  readonly image: string;
  readonly admission: 'policy' | 'webhook' | 'none';
  /** Needed for `admission: webhook`. */
  readonly certificates?: CertificateSource;
  readonly excludedNamespaces: readonly string[];
  /** The only namespaces that the system works in. @default all */
  readonly onlyNamespaces?: readonly string[] | undefined;
  /** Of the reconciler. Without one that is its alone there is no guard policy: it would bind people as well. */
  readonly account?: { readonly namespace: string; readonly name: string };
  readonly withoutContainers: boolean;
  /** Secrets that the reconciler writes for other systems, by namespace. */
  readonly network?: NetworkSettings;
  readonly guardNamed: Readonly<Record<string, readonly string[]>>;
  readonly profiles: readonly { readonly name: string; readonly spec: Readonly<Record<string, unknown>> }[];
}

/** Consent, collision and guard policies, the webhook where it is asked for, and the profiles of the fleet. */
export function injectionObjects(input: InjectionObjectsInput): readonly KubeObject[] {
  const { namespace, image, certificates, excludedNamespaces, withoutContainers } = input;
  return [
    ...aggregatedRoles(),
    ...consentPolicy(),
    ...grantConsentPolicy(),
    ...collisionPolicy(),
    ...sidecarSetConsentPolicy(),
    ...(input.account === undefined
      ? []
      : guardPolicy({ serviceAccount: input.account, named: input.guardNamed })),
    ...(input.account === undefined || !triesPods(input)
      ? []
      : dryRunPolicy({ serviceAccount: input.account })),
    ...(input.admission === 'webhook' && certificates !== undefined
      ? webhookObjects({
          namespace,
          image,
          certificates,
          excludedNamespaces,
          onlyNamespaces: input.onlyNamespaces,
          withoutContainers,
          ...(input.network === undefined ? {} : { network: input.network }),
        })
      : []),
    ...input.profiles.map(({ name, spec }) => ({
      apiVersion: PROFILE_API_VERSION,
      kind: PROFILE_KIND,
      metadata: { name, labels: labels({ name, component: 'pull-secret-injection' }) },
      spec,
    })),
  ];
}
