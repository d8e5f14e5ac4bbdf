/** `pullwright report`: one page that shows what is wrong in a fleet, where, and what to do. */

import { readFile, writeFile } from 'node:fs/promises';
import { toYaml } from '../../kube/yaml.ts';
import { errnoOf, PullwrightError, UsageError } from '../../rules/errors.ts';
import { reportChanges } from '../../rules/report/diff.ts';
import { reportMarkdown } from '../../rules/report/markdown.ts';
import { makeReport } from '../../rules/report/report.ts';
import { reportText } from '../../rules/report/text.ts';
import type { Report } from '../../rules/report/types.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import type { Command, CommandIo, ExitCode } from '../command.ts';
import { type CommandTable, defineCommand } from '../define.ts';
import { CLUSTER_FLAGS, fromFlag, outputFlag } from '../flags/common.ts';
import { type Flags, file, toggle } from '../flags/flag.ts';
import type { Given } from '../flags/parse.ts';
import { writeProblems } from '../problems.ts';
import { columnsOf, paintFor } from '../terminal.ts';
import { gatherCluster, gatherFolders } from './gather.ts';

const TABLE = {
  name: 'report',
  summary: 'Make one page that shows what is wrong in a fleet, where, and what to do',
  about: [
    'Looks at every cluster of a folder of manifests, or at the cluster of a kubeconfig, and says what is wrong, where, and what to do: clusters by system, the registry keys that nodes get, the way of each image from pod to registry, namespaces with their pull secrets, mirror sets as the operator takes them. With --html as one page that needs no network. Shows no password and no user name.',
  ],
  flags: {
    from: fromFlag,
    ...CLUSTER_FLAGS,
    html: file({ help: 'write the page to this file', touches: 'writes' }),
    markdown: toggle({ help: 'print Markdown, for the comment of a change' }),
    diff: file({ help: 'say what is different from this report, which --output json made' }),
    output: outputFlag(['text', 'json', 'yaml']),
  },
  exitCodes: '0 nothing is broken, 1 something is, 2 wrong usage',
  examples: ['pullwright report --from examples/fleet --html report.html'],
  permissions: {
    reads: [],
    writes: [],
    hosts: ['the API server of the kubeconfig; none with --from'],
    api: [
      'list secrets, serviceaccounts, namespaces, nodes, pods, deployments, statefulsets, daemonsets, replicasets, jobs, cronjobs, events, roles, rolebindings',
      'list pullstatuses, pullsecretprofiles, pullsecretgrants, sidecarsets, criocredentialproviderconfigs',
      'list imagedigestmirrorsets, imagetagmirrorsets, imagecontentsourcepolicies',
      'get mutatingadmissionpolicies, mutatingadmissionpolicybindings, mutatingwebhookconfigurations',
      'get images.config.openshift.io/cluster, criocredentialproviderconfigs/cluster, clusterversions/version, machineconfigs/99-worker-generated-registries',
    ],
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

type Values = Given<typeof TABLE.flags>['flags'];

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  if (flags.markdown && flags.output !== 'text')
    throw new UsageError('Cannot print --markdown: it is a form of its own, beside --output');
  const before = flags.diff === undefined ? undefined : { path: flags.diff, said: await earlier(flags.diff) };
  const made = await reportFrom(flags, io);
  const report = before === undefined ? made : withChanges(made, before.said, before.path);
  writeProblems(io, report.unread);
  if (flags.html !== undefined) await writePage(flags.html, report);
  io.stdout.write(printed(report, flags.markdown ? 'markdown' : flags.output, io));
  if (flags.html !== undefined) io.stderr.write(`Wrote ${flags.html}\n`);
  return report.clusters.some(({ verdict }) => verdict === 'broken') ? 1 : 0;
}

async function reportFrom(flags: Values, io: CommandIo): Promise<Report> {
  const { from, context } = flags;
  const found =
    from === undefined ? await gatherCluster(flags, context ?? 'cluster', io) : await gatherFolders(from);
  return makeReport({
    ...found,
    now: new Date(),
    source: from?.join(', ') ?? context ?? 'the current context',
    toYaml: (object) => toYaml(object, { lineWidth: 0 }),
  });
}

function printed(report: Report, form: 'text' | 'json' | 'yaml' | 'markdown', io: CommandIo): string {
  switch (form) {
    case 'json':
      return jsonText<Report>(report);
    case 'yaml':
      return toYaml(report, { lineWidth: 0, aliasDuplicateObjects: false });
    case 'markdown':
      return reportMarkdown(report);
    default:
      return reportText(report, paintFor(io), columnsOf(io));
  }
}

async function writePage(path: string, report: Report): Promise<void> {
  // Loaded where it is asked for: it holds the script of the page.
  const { reportHtml } = await import('../../rules/report/html.ts');
  await writeFile(path, reportHtml(report)).catch((error: unknown) => {
    throw new PullwrightError(
      `Cannot write "${path}": ${codeOf(error)}, expected a file in a folder that is there`,
      {
        code: 'OutputNotWritten',
        disposition: 'terminal',
        cause: error,
      },
    );
  });
}

function codeOf(error: unknown): string {
  return errnoOf(error) ?? 'unknown';
}

async function earlier(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw new UsageError(`Cannot read "${path}": expected a report that --output json made`);
  });
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new UsageError(`Cannot read "${path}": it is not JSON, expected a report that --output json made`);
  }
}

function withChanges(report: Report, before: unknown, path: string): Report {
  const changes = reportChanges(before, report);
  if (changes === undefined)
    throw new UsageError(`Cannot compare with "${path}": expected a report that --output json made`);
  return { ...report, changes };
}
