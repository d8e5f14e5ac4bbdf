/** `pullwright webhook`: injects pull secrets at admission, for clusters that do not serve MutatingAdmissionPolicy. */

import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import {
  count,
  file,
  folder as folderFlag,
  type Given,
  LOG_FLAGS,
  port,
  several,
  text,
  toggle,
} from '../../cli/flags.ts';
import { UsageError } from '../../core/errors.ts';

const TABLE = {
  name: 'webhook',
  about: [
    'Serves the admission webhook "/inject": adds imagePullSecrets to new pods, as the PullSecretProfiles and SidecarSets of the cluster declare. For clusters below Kubernetes 1.36; skips every pod while the admission policy of "reconcile" is active. Never rejects a pod.',
  ],
  flags: {
    'cert-dir': folderFlag({ help: 'folder with tls.crt and tls.key; reloaded on change' }),
    port: count({ value: 'PORT', default: '9443', most: 65_535, help: 'HTTPS' }),
    'health-port': port({ default: '8081', help: '/healthz, /readyz and /metrics over HTTP' }),
    kubeconfig: file({ help: 'the kubeconfig of the cluster; without it, that of the pod, else KUBECONFIG' }),
    namespace: text({
      value: 'NAME',
      short: 'n',
      default: 'pullwright-system',
      completes: 'namespaces',
      help: 'namespace of our own pods, never injected into',
    }),
    exclude: several(
      text({ value: 'NAMESPACE', completes: 'namespaces', help: 'another namespace to ignore' }),
    ),
    'without-containers': toggle({
      help: 'SidecarSets inject even when no matching set has a container',
    }),
    ...LOG_FLAGS,
  },
  notes: ['/readyz reports ready once every profile and namespace was read.'],
  examples: ['pullwright webhook --cert-dir /etc/pullwright/tls --port 9443'],
  permissions: {
    hosts: ['the API server; listens on <--port> and <--health-port>'],
    api: [
      'get, list, watch namespaces, serviceaccounts',
      'get, list, watch pullsecretprofiles.pullwright.dev, sidecarsets.apps.kruise.io, controllerrevisions.apps',
      'get, list, watch mutatingadmissionpolicies, mutatingadmissionpolicybindings, mutatingwebhookconfigurations',
    ],
  },
} as const;

/** Parsed values of the flags. */
export type WebhookFlags = Given<typeof TABLE.flags>['flags'];

export const command: Command = defineCommand(TABLE, run);

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const { 'cert-dir': folder } = flags;
  if (folder === undefined) throw new UsageError('Cannot serve the webhook: expected --cert-dir DIR');
  const { runWebhook } = await import('./server.ts');
  return runWebhook({ ...flags, 'cert-dir': folder }, io);
}
