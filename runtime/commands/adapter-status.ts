/** `pullwright adapter status CLUSTER`: what is known of one cluster's pull secret, in one view. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient } from '../kube/client.ts';
import { toYaml } from '../kube/yaml.ts';
import {
  type ClusterSight,
  type ClusterView,
  clusterView,
} from '../pull-secret-adapter/adapter/cluster-view.ts';
import { viewNamespace, viewRecord } from '../pull-secret-adapter/adapter/observe.ts';
import { readJobs } from '../pull-secret-adapter/adapter/reconcile-cluster.ts';
import { CLUSTER_ID } from '../pull-secret-adapter/cluster-event.ts';
import { recordName } from '../pull-secret-adapter/names.ts';
import { readPlace } from '../pull-secret-adapter/places.ts';
import { describeError, PullwrightError, UsageError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { jsonText } from '../rules/text/json-text.ts';
import { textTable } from '../rules/text/table.ts';
import { VERSION } from '../rules/version.ts';
import { ADAPTER_FLAGS } from './adapter-flags.ts';
import { apiOf, BROKER_FLAGS } from './broker-flags.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { type CommandTable, defineCommand } from './define.ts';
import { CLUSTER_FLAGS, outputFlag } from './flags/common.ts';
import { type Flags, text, toggle } from './flags/flag.ts';
import type { Given } from './flags/parse.ts';
import { control } from './people.ts';

const TABLE = {
  name: 'adapter-status',
  program: 'pullwright adapter status',
  summary: "Show what is known of one HyperFleet cluster's pull secret (pullwright adapter status)",
  about: [
    "Prints in one view what the adapter has reported about a cluster, its Jobs and how they ended, the versions at Google as the last Job saw them, HyperShift's Secret, every place that was ever written to, and the events of the API server. Reads, and changes nothing; no value of a secret is shown.",
  ],
  args: [{ name: 'CLUSTER', help: 'identifier of the cluster' }],
  flags: {
    api: text({
      value: 'URL',
      help: 'base URL of the HyperFleet API; without it, what the cluster of the Jobs says',
    }),
    'api-token-file': BROKER_FLAGS['api-token-file'],
    'adapter-name': ADAPTER_FLAGS['adapter-name'],
    namespace: ADAPTER_FLAGS.namespace,
    watch: toggle({ short: 'w', help: 'look again every few seconds, until interrupted' }),
    output: outputFlag(['text', 'json', 'yaml'], 'the form of the view'),
    kubeconfig: CLUSTER_FLAGS.kubeconfig,
    context: CLUSTER_FLAGS.context,
  },
  exitCodes: '0 in order, 1 not in order or not to be read, 2 wrong usage',
  examples: ['pullwright adapter status cls-123 --api https://hyperfleet.example.com --watch'],
  permissions: {
    reads: [],
    writes: [],
    hosts: ['the API server of the kubeconfig, the HyperFleet API'],
    api: [
      'list jobs, pods, events; get configmaps (hyperfleet-system)',
      'get namespaces; get secrets/pull-secret (management namespace)',
    ],
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

type Values = Given<typeof TABLE.flags>['flags'];

const LOOK_AGAIN_MS = 5000;

async function run({ flags, args }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const [cluster, more] = args;
  if (cluster === undefined || more !== undefined)
    throw new UsageError('Cannot show a cluster: expected one CLUSTER');
  if (!CLUSTER_ID.test(cluster))
    throw new UsageError(
      `invalid value ${JSON.stringify(cluster)} for CLUSTER: must be up to 38 of a-z, 0-9 and -`,
    );
  const { loadConnection } = await import('../kube/kubeconfig.ts');
  const { HttpKubeClient } = await import('../kube/http-client.ts');
  const connection = await loadConnection(flags.kubeconfig, io.env, flags.context);
  const kube = new HttpKubeClient({ connection, userAgent: `pullwright/${VERSION} (adapter-status)` });
  try {
    for (;;) {
      const inOrder = await show(cluster, { flags, kube, io });
      if (!flags.watch || io.signal.aborted) return inOrder ? 0 : 1;
      if (!(await sleep(LOOK_AGAIN_MS, true, { signal: io.signal }).catch(() => false)))
        return inOrder ? 0 : 1;
    }
  } finally {
    kube.close();
  }
}

interface Looking {
  readonly flags: Values;
  readonly kube: KubeClient;
  readonly io: CommandIo;
}

async function show(cluster: string, looking: Looking): Promise<boolean> {
  const { flags, io } = looking;
  let view: ClusterView;
  try {
    view = clusterView(await sightOf(cluster, looking));
  } catch (error) {
    // Whoever watches wants to see when it answers again.
    if (!flags.watch || !(error instanceof PullwrightError) || error instanceof UsageError) throw error;
    io.stderr.write(`${describeError(error)}\n`);
    return false;
  }
  if (flags.watch && io.stdout.isTTY === true) io.stdout.write(control('\u001b[H\u001b[2J'));
  const forms: Readonly<Record<typeof flags.output, () => string>> = {
    json: () => jsonText<ClusterView>(view),
    yaml: () => toYaml(view, { lineWidth: 0 }),
    text: () => viewText(view, flags.api !== undefined),
  };
  io.stdout.write(forms[flags.output]());
  return view.inOrder;
}

async function sightOf(cluster: string, { flags, kube, io }: Looking): Promise<ClusterSight> {
  const { namespace } = flags;
  const statuses = flags.api === undefined ? [] : await apiFor(flags, io).statuses(cluster);
  const [jobs, found, events] = await Promise.all([
    readJobs(cluster, { kube, settings: { namespace } }),
    kube.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name: recordName(cluster) }),
    kube.list({ apiVersion: 'events.k8s.io/v1', kind: 'Event', namespace }),
  ]);
  const record = found === undefined ? undefined : viewRecord(found);
  const status = statuses.find((one) => one.adapter === flags['adapter-name']);
  return {
    cluster,
    status,
    jobs,
    record,
    ...(await placesOf(record?.places ?? [], kube)),
    events: events.items.filter((event) => speaksOf(event, cluster)),
  };
}

/** Jobs and their pods are named after the cluster and its generation. */
function speaksOf(event: KubeObject, cluster: string): boolean {
  const { name = '' } = (event['regarding'] ?? {}) as { readonly name?: string };
  return name.startsWith(`pullsecret-${cluster}-gen`);
}

async function placesOf(
  places: readonly string[],
  kube: KubeClient,
): Promise<Pick<ClusterSight, 'namespaces' | 'secrets'>> {
  const namespaces: Record<string, ReturnType<typeof viewNamespace>> = {};
  const secrets: Record<string, KubeObject> = {};
  for (const text of places) {
    const place = readPlace(text);
    if (place?.kind !== 'kubernetes') continue;
    const { namespace, secret: name } = place;
    namespaces[namespace] ??= viewNamespace(
      await kube.get({ apiVersion: 'v1', kind: 'Namespace', name: namespace }),
    );
    if (namespaces[namespace] === 'gone') continue;
    const secret = await kube.get({ apiVersion: 'v1', kind: 'Secret', namespace, name });
    if (secret !== undefined) secrets[text] = secret;
  }
  return { namespaces, secrets };
}

function apiFor(flags: Values, io: CommandIo): ReturnType<typeof apiOf> {
  const warn = (message: string): void => void io.stderr.write(`${message}\n`);
  return apiOf({ api: flags.api, 'api-token-file': flags['api-token-file'], 'status-method': 'auto' }, io, {
    name: 'adapter-status',
    metrics: { request: () => undefined },
    logger: { warn },
  });
}

function viewText(view: ClusterView, asked: boolean): string {
  const { report, versions } = view;
  const noReport = asked ? 'the API knows none of this adapter' : 'not asked for: give --api';
  const said =
    report === undefined
      ? [`Report: ${noReport}\n`]
      : [
          `Report: generation ${report.generation}, ${report.time ?? 'time unknown'}\n`,
          textTable(
            [
              ['CONDITION', 'STATUS', 'REASON', 'MESSAGE'],
              ...report.conditions.map((one) => [one.type, one.status, one.reason, one.message]),
            ],
            undefined,
          ),
        ];
  const facts = [
    `Google: ${versions.secret ?? 'nothing known'}${versions.current === undefined ? '' : `, version ${versions.current}`}`,
    ...(versions.created === undefined ? [] : [`made ${versions.created}`]),
    ...(versions.enabled === undefined ? [] : [`${versions.enabled} enabled`]),
    ...(versions.proved === undefined ? [] : [`proved ${versions.proved}`]),
  ];
  return [
    `Cluster: ${view.cluster}, ${view.inOrder ? 'in order' : 'not in order'}\n`,
    ...said,
    `${facts.join(', ')}\n`,
    ...section(
      'Jobs',
      ['NAME', 'PURPOSE', 'ATTEMPT', 'PHASE', 'FINISHED', 'REASON', 'MESSAGE'],
      view.jobs.map((job) => [
        job.name,
        job.purpose,
        String(job.attempt),
        job.phase,
        job.finished ?? '',
        job.reason ?? '',
        job.message ?? '',
      ]),
    ),
    ...section(
      'HyperShift',
      ['PLACE', 'STATE'],
      view.management.map((one) => [one.place, one.state]),
    ),
    ...section(
      'Places ever written to',
      ['PLACE', 'WHAT BECAME OF IT'],
      view.places.map((place) => [place, textOf(view.receipt?.[place])]),
    ),
    ...section(
      'Events',
      ['TIME', 'TYPE', 'OBJECT', 'REASON', 'MESSAGE'],
      view.events.map((event) => [event.time, event.type, event.object, event.reason, event.message]),
    ),
  ].join('');
}

function section(
  title: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  return rows.length === 0 ? [`${title}: none\n`] : [`${title}:\n`, textTable([head, ...rows], undefined)];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
