/** Names and values that existing clusters know. Those of HyperShift's own parts that Pullwright has no use for are listed. */

import { GLOBAL_PULL_SECRET as NAMES } from '../../../../runtime/core/kubernetes/hypershift.ts';
import { agentOptions } from '../../../../runtime/global-pull-secret/agent/command.ts';
import { upstreamDaemonSet } from '../../../../runtime/global-pull-secret/daemon-set.ts';
import { HASH_LABEL, OPENSHIFT_PRIORITY_CLASS } from '../../../../runtime/global-pull-secret/options.ts';
import type { ConformanceSuite } from '../../suite.ts';

const FLAGS = agentOptions([], {});
const DAEMON_SET = upstreamDaemonSet(
  { image: 'registry.example.com/pullwright:1' },
  { configHash: '00000000', merged: true },
);

const OURS: Readonly<Record<string, unknown>> = {
  namespace: NAMES.namespace,
  secretOriginal: NAMES.original,
  secretGlobal: NAMES.global,
  secretAdditional: NAMES.additional,
  secretControlPlane: NAMES.platform,
  daemonSet: DAEMON_SET.metadata.name,
  serviceAccount: podSpec()['serviceAccountName'],
  container: (podSpec()['containers'] as readonly { readonly name: string }[])[0]?.name,
  dataKey: NAMES.dataKey,
  hashLabel: HASH_LABEL,
  nodeLabel: NAMES.nodeLabel,
  machineLabel: NAMES.machineLabel,
  nodePoolAnnotation: NAMES.nodePoolAnnotation,
  priorityClass: OPENSHIFT_PRIORITY_CLASS,
  kubeletFile: FLAGS.file,
  originalMount: FLAGS.originalFile,
  globalMount: FLAGS.globalFile,
  tickSeconds: FLAGS.pollMs / 1000,
  unit: FLAGS.unit,
};

/** Names of parts that stay HyperShift's, and values of its agent that ours replaces by measured ones. */
const NOT_OURS = new Set([
  'guestPullSecretNamespaces',
  'controllerName',
  'labelsSyncedAnnotation',
  'nodePoolTaintsAnnotation',
  'nodePoolLabel',
  'imageEnv',
  'autoscalerFlag',
  'fileMode',
  'tempPattern',
  'maxRestartAttempts',
  'retrySleepSeconds',
  'jobMode',
  'successResult',
  'exitCodes',
  'ensureExistsAnnotation',
]);

function podSpec(): Readonly<Record<string, unknown>> {
  const { template } = DAEMON_SET.spec as { template: { spec: Readonly<Record<string, unknown>> } };
  return template.spec;
}

export const suite: ConformanceSuite<string> = {
  cases(document) {
    const { constants } = document as { constants: Readonly<Record<string, unknown>> };
    return Object.entries(constants)
      .filter(([name]) => !NOT_OURS.has(name))
      .map(([name, expected]) => ({ name, input: name, expected }));
  },
  answer: (name) => OURS[name],
  mutation: {
    file: 'runtime/core/kubernetes/hypershift.ts',
    replace: "'additional-pull-secret'",
    by: "'extra-pull-secret'",
  },
};
