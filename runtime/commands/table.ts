/** Every subcommand with its summary and import. Only the chosen subcommand is imported. */
import type { Command } from '../cli/command.ts';
import { mapValues } from '../core/record.ts';

/**
 * Summaries of the subcommands by group: `ask` changes nothing, `change` prepares and cleans up, `run` is mostly for pods and
 * nodes.
 */
export const GROUPS = {
  ask: {
    check: 'Check a cluster before and after an installation',
    doctor: 'Find why a pod cannot pull its images, and print the YAML that fixes it',
    explain: 'Show which credentials are tried for an image, and why not others',
    mirrors: 'Show where an image is pulled from, in order, and why',
    report: 'Report problems of a fleet and their fixes, as text or one web page',
    status: 'Show what is ready and what is not',
    test: 'Test expectations about pull credentials offline (JUnit for pipelines)',
    validate: 'Validate pull secrets, mirror sets, profiles and fleets before they are applied',
    verify: 'Check that registries accept the credentials and have the images',
  },
  change: {
    completion: 'Print a completion script for bash, zsh or fish',
    synth: 'Render a fleet into files for a GitOps repository',
    uninstall: 'Remove Pullwright from a cluster, and keep the nodes working',
  },
  run: {
    adapter: 'Sync pull secrets of HyperFleet clusters to GCP and HyperShift (runs in a Deployment)',
    agent: "Sync a node's pull credentials, and restart its kubelet (runs in a DaemonSet)",
    'install-provider':
      'Install the credential provider on a node, and restart its kubelet (runs in a DaemonSet)',
    job: 'Store one pull secret in Google Secret Manager (runs in a Kubernetes Job)',
    provider: 'Provide CRI-O with the pull credentials of a namespace (kubelet plugin)',
    reconcile: 'Keep clusters in the declared state; with --from, show changes offline',
    sentinel: 'Publish events about HyperFleet clusters that need reconciling (runs in a Deployment)',
    webhook: 'Inject pull secrets into pods at admission (runs in a Deployment)',
  },
};

const SUMMARIES: Readonly<Record<string, string>> = { ...GROUPS.ask, ...GROUPS.change, ...GROUPS.run };

type CommandName = keyof (typeof GROUPS.ask & typeof GROUPS.change & typeof GROUPS.run);

/** Modules of the subcommands, sorted by name. */
const MODULES: Readonly<Record<CommandName, () => Promise<{ readonly command: Command }>>> = {
  adapter: () => import('../pull-secret-adapter/adapter/command.ts'),
  agent: () => import('../global-pull-secret/agent/command.ts'),
  check: () => import('../diagnose/commands/check.ts'),
  completion: () => import('./completion.ts'),
  doctor: () => import('../diagnose/commands/doctor.ts'),
  explain: () => import('../diagnose/commands/explain.ts'),
  'install-provider': () => import('../credential-provider/installer/command.ts'),
  job: () => import('../pull-secret-adapter/job/command.ts'),
  mirrors: () => import('../diagnose/commands/mirrors.ts'),
  provider: () => import('../credential-provider/plugin/command.ts'),
  reconcile: () => import('./reconcile/command.ts'),
  report: () => import('../diagnose/commands/report.ts'),
  sentinel: () => import('../pull-secret-adapter/sentinel/command.ts'),
  status: () => import('../diagnose/commands/status.ts'),
  synth: () => import('../../charts/synth.ts'),
  test: () => import('../diagnose/commands/test.ts'),
  uninstall: () => import('./uninstall/command.ts'),
  validate: () => import('../diagnose/commands/validate.ts'),
  verify: () => import('../diagnose/commands/verify.ts'),
  webhook: () => import('../pull-secret-injection/webhook/command.ts'),
};

/** All subcommands, sorted by name. */
export const COMMANDS = mapValues(MODULES, (load, name) => ({
  summary: SUMMARIES[name] ?? '',
  load: async () => (await load()).command,
}));
