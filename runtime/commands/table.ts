/** Every subcommand: its summary, and how to import it. Nothing is imported before it is chosen. */
import type { Command } from '../cli/command.ts';

/** Who calls a command: a person who asks, a person who changes something, or a pod and a node. */
export type CommandGroup = 'ask' | 'change' | 'run';

export interface TableEntry {
  readonly summary: string;
  readonly group: CommandGroup;
  load(): Promise<Command>;
}

export const COMMANDS: Readonly<Record<string, TableEntry>> = {
  adapter: {
    summary: 'Sync pull secrets of HyperFleet clusters to GCP and HyperShift (runs in a Deployment)',
    group: 'run',
    load: async () => (await import('../pull-secret-adapter/adapter/command.ts')).command,
  },
  agent: {
    summary: "Keep a node's pull credentials, and restart its kubelet (runs in a DaemonSet)",
    group: 'run',
    load: async () => (await import('../global-pull-secret/agent/command.ts')).command,
  },
  check: {
    summary: 'Check a cluster before an installation, and the installation after it',
    group: 'ask',
    load: async () => (await import('../diagnose/commands/check.ts')).command,
  },
  completion: {
    summary: 'Print a completion script for bash, zsh or fish',
    group: 'change',
    load: async () => (await import('./completion.ts')).command,
  },
  doctor: {
    summary: 'Find what keeps a pod from its images, and print the YAML that fixes it',
    group: 'ask',
    load: async () => (await import('../diagnose/commands/doctor.ts')).command,
  },
  explain: {
    summary: 'Show which credentials are tried for an image, and why not others',
    group: 'ask',
    load: async () => (await import('../diagnose/commands/explain.ts')).command,
  },
  'install-provider': {
    summary: 'Put the credential provider on a node, and restart its kubelet (runs in a DaemonSet)',
    group: 'run',
    load: async () => (await import('../credential-provider/installer/command.ts')).command,
  },
  job: {
    summary: 'Store one pull secret in Google Secret Manager (runs in a Kubernetes Job)',
    group: 'run',
    load: async () => (await import('../pull-secret-adapter/job/command.ts')).command,
  },
  mirrors: {
    summary: 'Show where an image is pulled from, in order, and why',
    group: 'ask',
    load: async () => (await import('../diagnose/commands/mirrors.ts')).command,
  },
  provider: {
    summary: 'Give CRI-O the pull credentials of a namespace (kubelet plugin)',
    group: 'run',
    load: async () => (await import('../credential-provider/plugin/command.ts')).command,
  },
  reconcile: {
    summary: 'Keep clusters as declared; with --from, show offline what would change',
    group: 'run',
    load: async () => (await import('./reconcile/command.ts')).command,
  },
  report: {
    summary: 'Make one page that shows what is wrong in a fleet, where, and what to do',
    group: 'ask',
    load: async () => (await import('../diagnose/commands/report.ts')).command,
  },
  sentinel: {
    summary: 'Publish events about HyperFleet clusters that need work (runs in a Deployment)',
    group: 'run',
    load: async () => (await import('../pull-secret-adapter/sentinel/command.ts')).command,
  },
  status: {
    summary: 'Show what is in order and what is not',
    group: 'ask',
    load: async () => (await import('../diagnose/commands/status.ts')).command,
  },
  synth: {
    summary: 'Render a fleet into files for a GitOps repository',
    group: 'change',
    load: async () => (await import('../../charts/synth.ts')).command,
  },
  test: {
    summary: 'Check expectations about pull credentials offline (JUnit for pipelines)',
    group: 'ask',
    load: async () => (await import('../diagnose/commands/test.ts')).command,
  },
  uninstall: {
    summary: 'Remove everything from a cluster, in order, and leave the nodes working',
    group: 'change',
    load: async () => (await import('./uninstall/command.ts')).command,
  },
  validate: {
    summary: 'Validate pull secrets, mirror sets, profiles and fleets before they are applied',
    group: 'ask',
    load: async () => (await import('../diagnose/commands/validate.ts')).command,
  },
  verify: {
    summary: 'Check that registries accept the credentials and have the images',
    group: 'ask',
    load: async () => (await import('../diagnose/commands/verify.ts')).command,
  },
  webhook: {
    summary: 'Inject pull secrets into pods at admission (runs in a Deployment)',
    group: 'run',
    load: async () => (await import('../pull-secret-injection/webhook/command.ts')).command,
  },
};
