/** `pullwright verify`: asks the registries whether the credentials that are tried for images are taken, and the images there. */

import { toYaml } from '../../kube/yaml.ts';
import {
  type CredentialPlace,
  endingSoon,
  type VerifyReport,
  verifyReport,
  wantsAttention,
} from '../../rules/diagnose/verify-report.ts';
import { verifyText } from '../../rules/diagnose/verify-text.ts';
import { UsageError } from '../../rules/errors.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import { oneLined } from '../../rules/text/printable.ts';
import { clusterFlag, needFolderForCluster } from '../choose-cluster.ts';
import type { Command, CommandIo, ExitCode } from '../command.ts';
import { type CommandTable, defineCommand } from '../define.ts';
import { CLUSTER_FLAGS, fromFlag, outputFlag } from '../flags/common.ts';
import { count, type Flags, several, text, toggle, type ValuesOf } from '../flags/flag.ts';
import type { Given } from '../flags/parse.ts';
import { writeProblems } from '../problems.ts';
import { REACH_FLAGS } from '../registry-access.ts';
import { columnsOf, paintFor } from '../terminal.ts';
import { askRegistries } from './ask.ts';
import { reportToCluster } from './publish.ts';
import { readWorldOfUse } from './world.ts';

const TABLE = {
  name: 'verify',
  summary: 'Ask the registries whether credentials are taken and images are there',
  about: [
    'Asks the registries: is each credential that would be tried for an image taken, and is the image there, at every mirror. One token exchange and one HEAD of the manifest for each credential and place; nothing is pulled, and no password is shown.',
  ],
  args: [{ name: '[IMAGE...]', help: 'images; or --all-in-use' }],
  flags: {
    image: several(text({ value: 'IMAGE', help: 'the same as IMAGE' })),
    'all-in-use': toggle({ help: 'all images of pods and of the templates that make pods' }),
    namespace: several(
      text({
        value: 'NAME',
        short: 'n',
        completes: 'namespaces',
        help: 'of IMAGE, the one whose pull secrets count; with --all-in-use, only these',
      }),
    ),
    'all-namespaces': toggle({
      short: 'A',
      help: 'with --all-in-use, every namespace, as without --namespace',
    }),
    'service-account': text({ value: 'NAME', default: 'default', help: 'who pulls IMAGE' }),
    'secret-name': several(
      text({
        value: 'NAME',
        help: 'with --all-in-use in a cluster, read no pull secrets of namespaces but these; of images that need others is said less',
      }),
    ),
    from: fromFlag,
    cluster: clusterFlag,
    ...CLUSTER_FLAGS,
    concurrency: count({ default: '16', least: 1, most: 256, help: 'questions at once' }),
    'warn-days': count({
      default: '14',
      most: 3650,
      help: 'point out credentials that end within so many days',
    }),
    output: outputFlag(['text', 'json', 'yaml']),
    report: text({
      value: 'NAMESPACE/NAME',
      help: 'also write the results to a PullStatus about this CronJob, and tell of changes by events',
    }),
    ...REACH_FLAGS,
  },
  notes: [
    'A credential goes to the host of its entry and, over TLS, to the token service that this host names; never to the target of a redirect, and never to loopback, link-local or metadata addresses unless the host or the network is allowed by a flag. With --all-in-use, hosts that only pods name are not looked for at private addresses either: what the mirror sets and the Secrets of the platform name is.',
  ],
  exitCodes: '0 all images can be pulled and no credential is refused, 1 not so, 2 wrong usage',
  examples: ['pullwright verify --all-in-use -n payments'],
  permissions: {
    reads: [],
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
      'get images.config.openshift.io/cluster, clusterversions/version, machineconfigs/99-worker-generated-registries',
      'with --report: get, patch pullstatuses; create events',
    ],
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

type Values = ValuesOf<typeof TABLE.flags>;

async function run(
  { flags: values, args: positionals }: Given<typeof TABLE.flags>,
  io: CommandIo,
): Promise<ExitCode> {
  const images = [...positionals, ...(values.image ?? [])];
  needFolderForCluster(values);
  const settings = settingsOf(values, images);
  const { users, problems, hints } = await readWorldOfUse(values, images, io);
  writeProblems(
    io,
    hints.map((hint) => `warning: ${hint}`),
  );
  writeProblems(io, problems);
  const asked = await askRegistries(users, {
    inUse: values['all-in-use'],
    flags: values,
    concurrency: settings.concurrency,
    io,
  });
  const report = verifyReport(asked, new Date());
  const columns = columnsOf(io);
  io.stdout.write(
    values.output !== 'text'
      ? asData(values.output, {
          ...report,
          endingSoon: endingSoon(report, settings.warnDays).map(({ source, key }) => ({ source, key })),
        })
      : verifyText(oneLined(report), {
          paint: paintFor(io),
          warnDays: settings.warnDays,
          ...(columns === undefined ? {} : { columns }),
        }),
  );
  if (settings.report === undefined) return wantsAttention(report) || problems.length > 0 ? 1 : 0;
  const publish = {
    ...settings.report,
    problems,
    warnDays: settings.warnDays,
    cluster: values,
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
  if (values['all-in-use'] === images.length > 0)
    throw new UsageError('Cannot verify: name images, or say --all-in-use, and not both');
  if (images.length > 0 && (values.namespace ?? []).length > 1)
    throw new UsageError('Cannot verify: named images are pulled in one namespace, and several are given');
  if (values['all-namespaces'] && values.namespace !== undefined)
    throw new UsageError('Cannot verify: --all-namespaces and --namespace say different things');
  const report = values.report === undefined ? undefined : cronJobOf(values.report);
  return {
    concurrency: values.concurrency,
    warnDays: values['warn-days'],
    ...(report === undefined ? {} : { report }),
  };
}

function cronJobOf(text: string): { readonly namespace: string; readonly name: string } {
  const found = /^([^/]+)\/([^/]+)$/.exec(text);
  if (found === null)
    throw new UsageError(`Cannot read --report "${text}": expected NAMESPACE/NAME of a CronJob`);
  return { namespace: found[1] ?? '', name: found[2] ?? '' };
}

/** What is printed as JSON. */
export interface VerifyOutput extends VerifyReport {
  /** Credentials that end within the days of `--warn-days`. */
  readonly endingSoon: readonly CredentialPlace[];
}

/** Through JSON, where what is redacted shows as such. */
function asData(output: 'json' | 'yaml', data: VerifyOutput): string {
  const text = jsonText<VerifyOutput>(data);
  return output === 'json' ? text : toYaml(JSON.parse(text), { lineWidth: 0 });
}
