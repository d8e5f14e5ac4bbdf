/** `pullwright doctor --all`: every pod that fails to pull, and pods that fail for the same cause together. */

import { parse as parseToml } from 'smol-toml';
import { toYaml } from '../../kube/yaml.ts';
import { doctorChain } from '../../rules/diagnose/doctor.ts';
import { UsageError } from '../../rules/errors.ts';
import { nodeMirrors } from '../../rules/node-registries/node-mirrors.ts';
import {
  type FailingPod,
  fixesOf,
  type PodCause,
  podsByCause,
  renderCauses,
} from '../../rules/report/failing-pods.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import { oneLined } from '../../rules/text/printable.ts';
import { needFolderForCluster } from '../choose-cluster.ts';
import type { CommandIo, ExitCode } from '../command.ts';
import { readFolders, withDefaultAccount } from '../explain/folders.ts';
import { nextNodeKinds, nodeObjects } from '../explain/node-kinds.ts';
import { type ClusterAccess, namespaceOf, readObjects, type SourceObjects } from '../object-source.ts';
import { writeProblems } from '../problems.ts';
import { failingPods } from '../report/pods.ts';
import { paintFor } from '../terminal.ts';
import { clusterKinds } from './cluster-kinds.ts';
import { DOCTOR_FOLDER_KINDS, lookAt } from './look.ts';

/** What decides which pods are examined. */
export interface AllFlags extends ClusterAccess {
  readonly all: boolean;
  readonly 'all-namespaces': boolean;
  readonly namespace?: string | undefined;
  readonly from?: readonly string[] | undefined;
  readonly cluster?: string | undefined;
  readonly output: 'text' | 'json' | 'yaml';
}

/**
 * Examines, and prints one entry for each cause.
 *
 * @throws UsageError for flags that do not go together; PullwrightError where nothing can be read
 */
export async function examineAll(flags: AllFlags, args: readonly string[], io: CommandIo): Promise<ExitCode> {
  refuse(flags, args);
  const namespace = flags['all-namespaces'] ? undefined : await namespaceOf(flags, io);
  const found = await read(flags, namespace, io);
  writeProblems(io, found.problems);
  const causes = podsByCause(examined(found, namespace, flags.from === undefined));
  io.stdout.write(FORMS[flags.output]({ causes, unread: found.problems, namespace, io }));
  return causes.length === 0 && found.problems.length === 0 ? 0 : 1;
}

function refuse(flags: AllFlags, args: readonly string[]): void {
  if (!flags.all) throw new UsageError('Cannot examine all namespaces: --all-namespaces goes with --all');
  if (args.length > 0)
    throw new UsageError(`Cannot examine "${args.join(' ')}": --all examines every pod, and takes no name`);
  if (flags['all-namespaces'] && flags.namespace !== undefined)
    throw new UsageError('Cannot examine: --namespace and --all-namespaces exclude each other');
  needFolderForCluster(flags);
}

interface Found extends SourceObjects {
  readonly hosted: boolean;
}

async function read(
  { from, cluster, ...access }: AllFlags,
  namespace: string | undefined,
  io: CommandIo,
): Promise<Found> {
  if (from !== undefined) return readFolders(from, { more: DOCTOR_FOLDER_KINDS, cluster });
  const found = await readObjects(access, clusterKinds(namespace), io, [nextNodeKinds]);
  return { ...found, hosted: false };
}

function examined(
  { store, problems, hosted }: Found,
  namespace: string | undefined,
  live: boolean,
): readonly FailingPod[] {
  const nodes = nodeMirrors(nodeObjects(store), parseToml);
  return failingPods(store, namespace).flatMap(({ object, pods }): readonly FailingPod[] => {
    const { name, namespace: where = '' } = object.metadata;
    const puller = { namespace: where, serviceAccount: 'default', pod: { kind: object.kind, name } };
    if (!live) withDefaultAccount({ store, problems: [] }, puller);
    const input = lookAt(store, puller, { unread: problems, hosted, nodes, live });
    return [{ namespace: where, object: input.pod, pods, links: doctorChain(input) }];
  });
}

/** What is printed as JSON with `--all`. */
export interface DoctorAllOutput {
  readonly causes: readonly PodCause[];
  readonly unread: readonly string[];
}

interface Answer extends DoctorAllOutput {
  readonly namespace: string | undefined;
  readonly io: CommandIo;
}

const FORMS: Readonly<Record<AllFlags['output'], (answer: Answer) => string>> = {
  text: ({ causes, namespace, io, unread }) =>
    renderCauses(oneLined(causes), { namespace, paint: paintFor(io), complete: unread.length === 0 }),
  json: ({ causes, unread }) => jsonText<DoctorAllOutput>({ causes, unread }),
  yaml: ({ causes }) =>
    fixesOf(causes)
      .map((object) => toYaml(object, { lineWidth: 0 }))
      .join('---\n'),
};
