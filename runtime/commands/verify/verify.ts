/** `pullwright verify`: asks the registries whether the credentials that are tried for images are taken, and the images there. */
import { parseArgs } from 'node:util';
import { endingSoon, verifyReport, wantsAttention } from '../../rules/diagnose/verify-report.ts';
import { verifyText } from '../../rules/diagnose/verify-text.ts';
import { UsageError } from '../../rules/errors.ts';
import type { Command, CommandIo, ExitCode } from '../command.ts';
import { ACCESS_FLAGS, REACH_HELP } from '../registry-access.ts';
import { columnsOf, paintFor } from '../terminal.ts';
import { askRegistries } from './ask.ts';
import { reportToCluster } from './publish.ts';
import { readWorldOfUse } from './world.ts';

const HELP = `
Asks the registries: is each credential that would be tried for an image taken, and is the image there, at every mirror.
One token exchange and one HEAD of the manifest for each credential and place; nothing is pulled, and no password is shown.

Usage: pullwright verify IMAGE... | --all-in-use [-n NAMESPACE] [--from DIR | --kubeconfig FILE]
                         [--context NAME] [options]

  --image IMAGE            the same as IMAGE; may be given more than once
  --all-in-use             all images of pods and of the templates that make pods
  -n, --namespace NAME     for IMAGE: whose pull secrets; default: default. With --all-in-use: only
                           this namespace; may be given more than once then
  --service-account SA     for IMAGE; default: default
  --from DIR               folder of manifests or a dump, instead of a cluster; may be given more than once
  --kubeconfig FILE        the cluster; default: as for kubectl
  --context NAME           a context of the kubeconfig; default: the current one
  --concurrency N          questions at once; default 16
  --warn-days N            point out credentials that end within so many days; default 14
  --output text|json       default text
  --report NAMESPACE/NAME  also write the results to a PullStatus about this CronJob, and tell of changes by events
${REACH_HELP}

A credential goes to the host of its entry and, over TLS, to the token service that this host names; never to the target of
a redirect, and never to loopback, link-local or metadata addresses unless the host is allowed by a flag.

Exit codes: 0 all images can be pulled and no credential is refused, 1 not so, 2 wrong usage.

Example: pullwright verify --all-in-use -n payments
`;

export const command: Command = {
  name: 'verify',
  summary: 'Ask the registries whether credentials are taken and images are there',
  help: HELP,
  permissions: {
    reads: ['<--from>', '<--kubeconfig>', '<--ca>'],
    writes: [],
    hosts: [
      'the API server of the kubeconfig; none with --from',
      'the registries and mirrors of the images, and the token services they name',
    ],
    api: [
      'list pods, deployments, statefulsets, daemonsets, jobs, cronjobs, serviceaccounts',
      'get secrets that pods list; list secrets where a CRIOCredentialProviderConfig is set',
      'get secrets/global-pull-secret (kube-system)',
      'get secrets/pull-secret (openshift-config)',
      'get criocredentialproviderconfigs/cluster',
      'list imagedigestmirrorsets, imagetagmirrorsets, imagecontentsourcepolicies',
      'get images.config.openshift.io/cluster, clusterversions/version',
      'with --report: get, patch pullstatuses; create events',
    ],
  },
  run,
};

const { authfile: _authfile, ...REACH_FLAGS } = ACCESS_FLAGS;

const OPTIONS = {
  image: { type: 'string', multiple: true },
  'all-in-use': { type: 'boolean', default: false },
  namespace: { type: 'string', short: 'n', multiple: true },
  'service-account': { type: 'string', default: 'default' },
  from: { type: 'string', multiple: true },
  kubeconfig: { type: 'string' },
  context: { type: 'string' },
  concurrency: { type: 'string', default: '16' },
  'warn-days': { type: 'string', default: '14' },
  output: { type: 'string', default: 'text' },
  report: { type: 'string' },
  ...REACH_FLAGS,
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

async function run(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  const images = [...positionals, ...(values.image ?? [])];
  const settings = settingsOf(values, images);
  const { users, problems, hints } = await readWorldOfUse(values, images, io);
  for (const hint of hints) io.stderr.write(`warning: ${hint}\n`);
  for (const problem of problems) io.stderr.write(`${problem}\n`);
  const asked = await askRegistries(users, { flags: values, concurrency: settings.concurrency, io });
  const report = verifyReport(asked, new Date());
  const columns = columnsOf(io);
  io.stdout.write(
    values.output === 'json'
      ? `${JSON.stringify({ ...report, endingSoon: endingSoon(report, settings.warnDays).map(({ source, key }) => ({ source, key })) }, null, 2)}\n`
      : verifyText(report, {
          paint: paintFor(io),
          warnDays: settings.warnDays,
          ...(columns === undefined ? {} : { columns }),
        }),
  );
  if (settings.report === undefined) return wantsAttention(report) || problems.length > 0 ? 1 : 0;
  const { kubeconfig, context } = values;
  const publish = {
    ...settings.report,
    problems,
    warnDays: settings.warnDays,
    cluster: { kubeconfig, context },
  };
  await reportToCluster(report, publish, io);
  // A CronJob that reports has done its work; a failed Job would hide that behind retries.
  return 0;
}

interface Settings {
  readonly concurrency: number;
  readonly warnDays: number;
  readonly report?: { readonly namespace: string; readonly name: string };
}

function settingsOf(values: Values, images: readonly string[]): Settings {
  if (values.output !== 'text' && values.output !== 'json')
    throw new UsageError(`Cannot print as "${values.output}": wanted text or json`);
  if (values['all-in-use'] === images.length > 0)
    throw new UsageError('Cannot verify: name images, or say --all-in-use, and not both');
  if (images.length > 0 && (values.namespace ?? []).length > 1)
    throw new UsageError('Cannot verify: named images are pulled in one namespace, and several are given');
  const report = values.report === undefined ? undefined : cronJobOf(values.report);
  return {
    concurrency: wholeNumber('concurrency', values.concurrency, { from: 1, to: 256 }),
    warnDays: wholeNumber('warn-days', values['warn-days'], { from: 0, to: 3650 }),
    ...(report === undefined ? {} : { report }),
  };
}

function cronJobOf(text: string): { readonly namespace: string; readonly name: string } {
  const found = /^([^/]+)\/([^/]+)$/.exec(text);
  if (found === null)
    throw new UsageError(`Cannot read --report "${text}": wanted NAMESPACE/NAME of a CronJob`);
  return { namespace: found[1] ?? '', name: found[2] ?? '' };
}

function wholeNumber(flag: string, text: string, { from, to }: { from: number; to: number }): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= from && value <= to) return value;
  throw new UsageError(`Cannot use --${flag} "${text}": wanted a whole number from ${from} to ${to}`);
}
