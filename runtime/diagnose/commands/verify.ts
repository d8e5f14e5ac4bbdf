/** Verifies pull credentials at registries. Reports the results as a PullStatus, Events on Secrets, and gauges. */
import { hostname } from 'node:os';
import { z } from 'zod';
import { type Command, type CommandIo, defineCommand } from '../../cli/command.ts';
import { count, type Given, outputFlag, several, text, toggle } from '../../cli/flags.ts';
import { paintFor, writeProblems } from '../../cli/terminal.ts';
import { describeError, UsageError } from '../../core/errors.ts';
import { type ConditionInput, readinessOf } from '../../core/kubernetes/conditions.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import {
  type EntryStatus,
  PULL_STATUS,
  pullStatus,
  pullStatusName,
  VERIFY,
  verdictsOf,
} from '../../core/kubernetes/pull-status.ts';
import { readOptions } from '../../core/kubernetes/read-spec.ts';
import { defined, valueAt } from '../../core/record.ts';
import { counted, oneLined } from '../../core/text.ts';
import type { Reconciler, Ref, Sample } from '../../engine/contract.ts';
import { EventRecorder } from '../../kube/events.ts';
import { firstBroken } from '../checks/findings.ts';
import { type ClusterAccess, LOOK_FLAGS, needFolderForCluster, withClient } from '../model/objects.ts';
import { askRegistries, REACH_FLAGS, readImagesInUse } from '../model/registries.ts';
import {
  endingSoon,
  isRefused,
  judgeCredentials,
  type VerifiedCredential,
  type VerifyReport,
  verifyReport,
  wantsAttention,
  whyCommand,
} from '../model/verification.ts';
import { answer, OUTPUT_FORMS, verifyText } from '../views/text.ts';

/** Result of a verification. */
interface Verification {
  readonly report: VerifyReport;
  /** Read errors. */
  readonly problems: readonly string[];
  /** Credentials that expire within `--warn-days`. */
  readonly soon: ReadonlySet<VerifiedCredential>;
}

/**
 * Builds the PullStatus and the Events. They contain no credential value, and do not distinguish passwords of the same key.
 *
 * @param about the CronJob
 * @param present the current PullStatus, from which `lastOk` is kept
 */
function verifyStatus(input: Verification, about: CronJob, present: KubeObject | undefined) {
  const { report, soon } = input;
  const before = new Map(verdictsOf(present).map((verdict) => [verdict.subject, verdict]));
  const credentials = report.credentials.map((one) => {
    const known = before.get(subjectOf(one));
    return { one, known, verdict: credentialVerdict(one, soon.has(one), known?.lastOk, report.checkedAt) };
  });
  const broken = report.images.flatMap(({ image, usedBy, findings }): readonly EntryStatus[] => {
    const why = firstBroken(findings)?.message;
    const doctor = whyCommand({ image, usedBy });
    const message = `used by ${usedBy}: ${why}; run ${doctor}`;
    return why === undefined ? [] : [{ subject: image, verdict: 'Rejected', reason: 'NotPullable', message }];
  });
  const made = pullStatus({
    reporter: 'verify',
    about: { apiVersion: 'batch/v1', kind: 'CronJob', ...about },
    conditions: conditionsOf(input),
    verdicts: [...broken, ...credentials.map(({ verdict }) => verdict)],
    summary: {
      checkedAt: report.checkedAt,
      images: report.images.length,
      notPullable: broken.length,
      credentials: report.credentials.length,
    },
    present,
    now: new Date(report.checkedAt),
  });
  const events = credentials.flatMap(({ one, verdict, known }) => eventOf(one, verdict, known));
  return { ...made, events };
}

function subjectOf({ source, key }: VerifiedCredential): string {
  return `${key} in ${source}`.slice(0, 1024);
}

function credentialVerdict(
  one: VerifiedCredential,
  soon: boolean,
  lastOk: string | undefined,
  now: string,
): EntryStatus {
  // A missing image proves that the credential was accepted.
  const taken = one.verdict === 'Valid' || one.verdict === 'NotFound';
  return {
    subject: subjectOf(one),
    verdict: isRefused(one) ? 'Rejected' : taken && !soon ? 'Accepted' : 'Warning',
    reason: taken && soon ? 'EndsSoon' : one.verdict,
    message: taken && soon ? `expires at ${one.expiresAt}: renew it` : one.message,
    ...defined({ expiresAt: one.expiresAt, lastOk: taken ? now : lastOk }),
  };
}

function conditionsOf({ report, problems, soon }: Verification): readonly ConditionInput[] {
  const { images, credentials } = report;
  const refused = credentials.filter(isRefused).length;
  const broken = images.filter(({ pullable }) => pullable === 'no').length;
  const incomplete = { reason: 'Incomplete', message: problems.slice(0, 5).join('; ') };
  const attention = {
    reason: broken > 0 ? 'ImagesNotPullable' : 'CredentialsRefused',
    message: `${counted(broken, 'image')} cannot be pulled, ${counted(refused, 'credential is', 'credentials are')} refused: see the verdicts`,
  };
  const ending = `${counted(soon.size, 'credential expires soon or has', 'credentials expire soon or have')} expired`;
  const verified = {
    reason: 'Verified',
    message: `no problems found in ${counted(images.length, 'image')} and ${counted(credentials.length, 'credential')}`,
  };
  return [
    ...readinessOf([
      ['stalled', problems.length > 0 ? incomplete : undefined],
      ['stalled', wantsAttention(report) ? attention : undefined],
      ['ready', verified],
    ]),
    soon.size > 0
      ? { type: 'EndingSoon', status: 'True', reason: 'RenewCredentials', message: ending }
      : { type: 'EndingSoon', status: 'False', reason: 'NothingEnds', message: 'no credential expires soon' },
  ];
}

/** Returns an Event on the Secret, for its owner, only for a change: lasting problems are in the status. */
function eventOf(one: VerifiedCredential, now: EntryStatus, before: EntryStatus | undefined) {
  const { source, key } = one;
  const [kind, namespace = '', name = ''] = source.split('/');
  if (kind !== 'Secret' || name === '' || !isNews(one, now, before)) return [];
  const good = now.verdict === 'Accepted';
  return [
    {
      regarding: { apiVersion: 'v1', kind: 'Secret', namespace, name },
      action: 'Verify',
      type: good ? ('Normal' as const) : ('Warning' as const),
      reason: good ? 'CredentialValid' : `Credential${now.reason}`,
      note: `Entry "${key}": ${good ? 'accepted again' : now.message}`,
    },
  ];
}

function isNews(one: VerifiedCredential, now: EntryStatus, before: EntryStatus | undefined): boolean {
  if (now.reason === before?.reason) return false;
  if (now.verdict === 'Accepted') return before !== undefined;
  // An unreachable registry proves nothing about the Secret.
  return isRefused(one) || now.reason === 'EndsSoon';
}

// Writes a verification to the cluster: a PullStatus for the CronJob, and Events on Secrets whose verdict changed.

const MANAGER = 'pullwright-verify';

/** Writes status and Events; a failed Event is reported on stderr. @throws PullwrightError if the status cannot be written */
async function publish(verified: Verification, about: CronJob, cluster: ClusterAccess, io: CommandIo) {
  await withClient(cluster, io, async (client) => {
    const present = await client.get({
      ...PULL_STATUS,
      namespace: about.namespace,
      name: pullStatusName('CronJob', about.name),
    });
    const { object, status, events } = verifyStatus(verified, about, present);
    await client.apply(object, { manager: MANAGER, force: true });
    await client.apply({ ...object, status }, { manager: MANAGER, force: true, subresource: 'status' });
    const recorder = new EventRecorder({
      client,
      controller: 'pullwright.dev/verify',
      instance: io.env['HOSTNAME'] ?? hostname(),
      now: Date.now,
    });
    const problems = new Set<string>();
    for (const event of events)
      await recorder.record(event).catch((error: unknown) => problems.add(describeError(error)));
    writeProblems(io, problems);
  });
}

// `pullwright verify`: checks at the registries whether credentials are accepted and images exist.

const TABLE = {
  name: 'verify',
  about: [
    'Checks at every registry and mirror whether it accepts the credentials that are tried for an image, and has the image. Sends one token exchange and one HEAD of the manifest per credential and pull source; pulls nothing, and shows no password.',
  ],
  args: [{ name: '[IMAGE...]', help: 'images; or --all-in-use' }],
  flags: {
    'all-in-use': toggle({ help: 'all images of pods and pod templates' }),
    namespace: several(
      text({
        value: 'NAME',
        short: 'n',
        completes: 'namespaces',
        help: 'namespace whose pull secrets are used for IMAGE; with --all-in-use, only these',
      }),
    ),
    'all-namespaces': toggle({
      short: 'A',
      help: 'with --all-in-use, all namespaces, as without --namespace',
    }),
    'service-account': text({ value: 'NAME', default: 'default', help: 'ServiceAccount that pulls IMAGE' }),
    'secret-name': several(
      text({
        value: 'NAME',
        help: 'with --all-in-use in a cluster, read only these pull secrets of namespaces; results for other images are incomplete',
      }),
    ),
    ...LOOK_FLAGS,
    concurrency: count({ default: '16', least: 1, most: 256, help: 'maximum number of parallel checks' }),
    'warn-days': count({
      default: '14',
      most: 3650,
      help: 'warn about credentials that expire within this many days',
    }),
    output: outputFlag(
      OUTPUT_FORMS,
      'output format; wide: not truncated; name: only the Secrets whose credentials are refused or expire soon',
    ),
    report: text({
      value: 'NAMESPACE/NAME',
      help: 'also write the results to a PullStatus about this CronJob, and publish changes as Events',
    }),
    ...REACH_FLAGS,
  },
  notes: [
    'A credential is sent only to the host of its entry and, over TLS, to the token service of that host; never to the target of a redirect, and to loopback, link-local or metadata addresses only if a flag allows the host or network. With --all-in-use, hosts that only pods name are not contacted at private addresses either; hosts of mirror sets and platform Secrets are.',
  ],
  exitCodes: '0 all images can be pulled and no credential is refused, 1 otherwise, 2 wrong usage',
  examples: ['pullwright verify --all-in-use -n payments'],
  permissions: {
    hosts: [
      'the API server of the kubeconfig; none with --from',
      'the registries and mirrors of the images, and their token services',
    ],
    api: [
      'list pods, deployments, statefulsets, daemonsets, jobs, cronjobs, serviceaccounts',
      'get secrets that pods list; list secrets where a CRIOCredentialProviderConfig is set',
      'get secrets/global-pull-secret (kube-system)',
      'get secrets/pull-secret (openshift-config)',
      'get criocredentialproviderconfigs/cluster',
      'list imagedigestmirrorsets, imagetagmirrorsets, imagecontentsourcepolicies',
      'get images.config.openshift.io/cluster, clusterversions/version, machineconfigs/99-worker-generated-registries',
      'with --report: get, patch pullstatuses; create events',
    ],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags: values, args: images }: Given<typeof TABLE.flags>, io: CommandIo) {
  needFolderForCluster(values);
  if (values['all-in-use'] === images.length > 0)
    throw new UsageError('Cannot verify: expected either images or --all-in-use');
  if (images.length > 0 && (values.namespace ?? []).length > 1)
    throw new UsageError('Cannot verify: images accept only one --namespace');
  if (values['all-namespaces'] && values.namespace !== undefined)
    throw new UsageError('Cannot verify: --all-namespaces and --namespace are mutually exclusive');
  const cronJob = values.report === undefined ? undefined : cronJobOf(values.report);
  const { users, problems } = await readImagesInUse(values, images, io);
  writeProblems(io, problems);
  const { 'warn-days': warnDays } = values;
  const answers = await askRegistries(users, values, io);
  const report = verifyReport(users, answers, new Date());
  const findings = judgeCredentials(report, warnDays);
  const code = answer(io, values.output, {
    data: { ...report, findings },
    names: findings.map(({ subject }) => subject),
    text: (columns) => verifyText(oneLined(report), warnDays, paintFor(io), columns),
    nothing: 'No credential is refused or expires soon',
    failed: wantsAttention(report) || problems.length > 0,
  });
  if (cronJob === undefined) return code;
  await publish({ report, problems, soon: new Set(endingSoon(report, warnDays)) }, cronJob, values, io);
  // With --report the Job succeeds, because the result is in the PullStatus: a failed Job would be retried.
  return 0;
}

type CronJob = ReturnType<typeof cronJobOf>;

function cronJobOf(text: string) {
  const found = /^([^/]+)\/([^/]+)$/.exec(text);
  if (found === null)
    throw new UsageError(`Cannot read --report "${text}": expected NAMESPACE/NAME of a CronJob`);
  return { namespace: found[1] ?? '', name: found[2] ?? '' };
}

// Gauges from the PullStatus of the CronJob `pullwright-verify`. A finished pod cannot be scraped, and a push gateway would be
// one more component to run and trust.

const NAME = pullStatusName('CronJob', VERIFY);

const OPTIONS = z.strictObject({ namespace: z.string().min(1).default('pullwright-system') });

/** Creates the reconciler; its only option is the namespace of the CronJob. */
export function reconcilers(options: Readonly<Record<string, unknown>>): readonly Reconciler[] {
  const { namespace } = readOptions('verify', options, OPTIONS)('');
  const ref: Ref = { role: 'management', ...PULL_STATUS, namespace, name: NAME };
  return [
    {
      name: 'verify',
      watches: [{ ...ref, optional: true }],
      requestsFor: (changed, reader) =>
        changed.kind === PULL_STATUS.kind && changed.name === NAME
          ? [{ scope: reader.scope.name, namespace, name: NAME }]
          : [],
      reconcile: (reader, { scope }) => ({ metrics: samplesOf(reader.get(ref), scope) }),
    },
  ];
}

function samplesOf(object: KubeObject | undefined, scope: string): readonly Sample[] {
  const checkedAt = valueAt(object, 'status.summary.checkedAt');
  if (typeof checkedAt !== 'string') return [];
  return [
    ...at('pullwright_verify_last_run', 'When registries were last checked, in seconds', checkedAt, {
      scope,
    }),
    ...verdictsOf(object).flatMap((verdict) => credentialSamples(verdict, scope)),
  ];
}

function credentialSamples({ subject, verdict, reason, expiresAt, lastOk }: EntryStatus, scope: string) {
  const labels = { scope, credential: subject };
  const refused: Sample = {
    name: 'pullwright_credential_refused',
    help: '1 while a registry refuses the credential',
    value: 1,
    labels: { ...labels, reason },
  };
  return [
    ...at('pullwright_credential_expires_at', 'When the credential expires, in seconds', expiresAt, labels),
    ...at(
      'pullwright_credential_last_ok',
      'When a registry last accepted the credential, in seconds',
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
  const value = Date.parse(time ?? '') / 1000;
  return Number.isFinite(value) ? [{ name, help, value, labels }] : [];
}
