/** What should wake somebody: credentials that are refused, that end, and checks that do not run. */
import type { Alert } from '../shared/monitoring.ts';

/** By the gauges that the reconciler makes of the PullStatus of the CronJob. */
export const VERIFY_ALERTS: readonly Alert[] = [
  {
    name: 'PullCredentialRefused',
    expression: 'max by (credential, reason) (pullwright_credential_refused) > 0',
    for: '1h',
    summary: 'A registry refuses {{ $labels.credential }}: {{ $labels.reason }}',
    description:
      'New pods that need it cannot start. Renew the entry in place; pullwright verify --all-in-use says when it is taken.',
  },
  {
    name: 'PullCredentialEndsSoon',
    expression: 'min by (credential) (pullwright_credential_expires_at) - time() < 3 * 86400',
    for: '10m',
    summary: '{{ $labels.credential }} ends in {{ $value | humanizeDuration }}',
    description: 'Renew the entry in place before it does.',
  },
  {
    name: 'PullCredentialsNotVerified',
    expression: 'time() - max by (scope) (pullwright_verify_last_run) > 86400',
    for: '1h',
    severity: 'info',
    summary: 'Nobody has asked the registries about pull credentials for {{ $value | humanizeDuration }}',
    description: 'Look at the Jobs of CronJob pullwright-verify. What is known is as old as that.',
  },
];
