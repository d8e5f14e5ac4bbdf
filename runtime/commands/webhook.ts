/** `pullwright webhook`: injects pull secrets at admission, for clusters that do not serve MutatingAdmissionPolicy. */
import { parseArgs } from 'node:util';
import { UsageError } from '../rules/errors.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';

const HELP = `
Usage: pullwright webhook --cert-dir DIR [options]

Serves the admission webhook "/inject": adds imagePullSecrets to pods that are being created, as the PullSecretProfiles and
SidecarSets of the cluster say. For clusters below Kubernetes 1.36; where the admission policy of "reconcile" is at work the
webhook stays out of it. A pod is never refused.

  --cert-dir DIR           holds tls.crt and tls.key; read again when they change
  --port PORT              HTTPS (9443)
  --health-port PORT       /healthz, /readyz and /metrics over HTTP; off for none (8081)
  --kubeconfig FILE        (that of the pod, else KUBECONFIG)
  --namespace NAME         namespace of our own pods, never injected into (pullwright-system)
  --exclude NAMESPACE      further namespaces that are left alone; may be repeated
  --without-containers     SidecarSets inject even where no matching set brings a container
  --missing-revision WHAT  a SidecarSet pins a revision that does not exist: skip it, or inject its current names (skip)
  --log-level LEVEL        debug, info, warn or error (info)
  --log-format FORMAT      json or logfmt (json)

Ready (/readyz) means: every profile and namespace was read once.

Example: pullwright webhook --cert-dir /etc/pullwright/tls --port 9443
`;

export const command: Command = {
  name: 'webhook',
  summary: 'Inject pull secrets into pods at admission (runs in a Deployment)',
  help: HELP,
  permissions: {
    reads: ['<--cert-dir>', '<--kubeconfig>'],
    writes: [],
    hosts: ['the API server; listens on <--port> and <--health-port>'],
    api: [
      'get, list, watch namespaces, serviceaccounts, secrets',
      'get, list, watch pullsecretprofiles.pullwright.dev, sidecarsets.apps.kruise.io, controllerrevisions.apps',
      'get, list, watch mutatingadmissionpolicies, mutatingadmissionpolicybindings, mutatingwebhookconfigurations',
    ],
  },
  run,
};

const OPTIONS = {
  'cert-dir': { type: 'string' },
  port: { type: 'string', default: '9443' },
  'health-port': { type: 'string', default: '8081' },
  kubeconfig: { type: 'string' },
  namespace: { type: 'string', default: 'pullwright-system' },
  exclude: { type: 'string', multiple: true },
  'without-containers': { type: 'boolean', default: false },
  'missing-revision': { type: 'string', default: 'skip' },
  'log-level': { type: 'string', default: 'info' },
  'log-format': { type: 'string', default: 'json' },
} as const;

async function run(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const folder = values['cert-dir'];
  if (folder === undefined) throw new UsageError('Cannot serve the webhook: wanted --cert-dir DIR');
  const missingRevision = values['missing-revision'];
  if (missingRevision !== 'skip' && missingRevision !== 'current')
    throw new UsageError(`Cannot use --missing-revision "${missingRevision}": wanted skip or current`);
  const ports = { webhook: portOf(values.port, '--port'), health: healthPort(values['health-port']) };
  const { runWebhook } = await import('../pull-secret-injection/webhook/process.ts');
  return runWebhook(
    {
      certificates: { certificate: `${folder}/tls.crt`, key: `${folder}/tls.key` },
      port: ports.webhook,
      healthPort: ports.health,
      kubeconfig: values.kubeconfig,
      ownNamespace: values.namespace,
      excludedNamespaces: values.exclude ?? [],
      withoutContainers: values['without-containers'],
      missingRevision,
      logLevel: values['log-level'],
      logFormat: values['log-format'],
    },
    io,
  );
}

function healthPort(text: string): number | undefined {
  return text === 'off' ? undefined : portOf(text, '--health-port');
}

function portOf(text: string, flag: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`Cannot use ${flag} "${text}": wanted a port`);
}
