/**
 * Makes gauges of what the CronJob `pullwright-verify` reports. Nothing is written: a Job that has ended cannot be scraped, and
 * this process can.
 *
 * A pod that has ended cannot be scraped, and a push gateway is one more thing to run and to trust: the Job writes one
 * PullStatus, and the reconciler makes gauges of it.
 */
import type { Key, Outcome, Read, Reconciler, Ref, Sample, World } from '../controller/contract.ts';
import { VERIFY, verdictsOf } from '../rules/diagnose/verify-status.ts';
import { UsageError } from '../rules/errors.ts';
import {
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatusName,
  type Verdict,
} from '../rules/kubernetes/pull-status.ts';

const NAME = pullStatusName('CronJob', VERIFY);

/** Makes the reconciler; the one option is the namespace of the CronJob. */
export function reconcilers(options: Readonly<Record<string, unknown>>): readonly Reconciler[] {
  const { namespace = 'pullwright-system', ...others } = options;
  const unknown = Object.keys(others);
  if (unknown.length > 0)
    throw new UsageError(
      `Cannot use the options of verify: no such option "${unknown.join('", "')}", expected namespace`,
    );
  if (typeof namespace !== 'string' || namespace === '')
    throw new UsageError('Cannot use the options of verify: expected namespace as a text');
  return [verifyReconciler(namespace)];
}

function verifyReconciler(namespace: string): Reconciler {
  const read: Read = {
    role: 'management',
    apiVersion: PULL_STATUS_API_VERSION,
    kind: PULL_STATUS_KIND,
    namespace,
    name: NAME,
    optional: true,
  };
  const ref: Ref = { ...read, name: NAME };
  return {
    name: 'verify',
    reads: [read],
    keysFor: (changed, world) =>
      changed.kind === PULL_STATUS_KIND && changed.name === NAME
        ? [{ scope: world.scope.name, namespace, name: NAME }]
        : [],
    reconcile: (world: World, key: Key): Outcome => ({ metrics: samplesOf(world, ref, key) }),
  };
}

function samplesOf(world: World, ref: Ref, { scope }: Key): readonly Sample[] {
  const object = world.get(ref);
  const summary = (object?.status as { readonly summary?: { readonly checkedAt?: string } } | undefined)
    ?.summary;
  if (object === undefined || summary?.checkedAt === undefined) return [];
  return [
    ...at('pullwright_verify_last_run', 'When registries were last asked, in seconds', summary.checkedAt, {
      scope,
    }),
    ...verdictsOf(object).flatMap((verdict) => credentialSamples(verdict, scope)),
  ];
}

function credentialSamples(
  { subject, verdict, reason, expiresAt, lastOk }: Verdict,
  scope: string,
): readonly Sample[] {
  const labels = { scope, credential: subject };
  const refused: Sample = {
    name: 'pullwright_credential_refused',
    help: '1 while a registry refuses the credential',
    value: 1,
    labels: { ...labels, reason },
  };
  return [
    ...at('pullwright_credential_expires_at', 'When the credential ends, in seconds', expiresAt, labels),
    ...at(
      'pullwright_credential_last_ok',
      'When a registry last took the credential, in seconds',
      lastOk,
      labels,
    ),
    ...(verdict === 'Rejected' && reason !== 'NotPullable' ? [refused] : []),
  ];
}

function at(
  name: Sample['name'],
  help: string,
  time: string | undefined,
  labels: Readonly<Record<string, string>>,
): readonly Sample[] {
  const value = time === undefined ? Number.NaN : Date.parse(time) / 1000;
  return Number.isFinite(value) ? [{ name, help, value, labels }] : [];
}
