/** Every subcommand with its summary and import. Only the chosen subcommand is imported. */
import type { Command } from '../cli/command.ts';

export interface TableEntry {
  readonly summary: string;
  load(): Promise<Command>;
}

/** Subcommands by group: `ask` changes nothing, `change` prepares and cleans up, `run` is mostly for pods and nodes. */
export const GROUPS: Readonly<Record<'ask' | 'change' | 'run', Readonly<Record<string, TableEntry>>>> = {
  ask: {
    check: {
      summary: 'Check a cluster before an installation, and the installation after it',
      load: async () => (await import('../diagnose/commands/check.ts')).command,
    },
    doctor: {
      summary: 'Find what keeps a pod from its images, and print the YAML that fixes it',
      load: async () => (await import('../diagnose/commands/doctor.ts')).command,
    },
    explain: {
      summary: 'Show which credentials are tried for an image, and why not others',
      load: async () => (await import('../diagnose/commands/explain.ts')).command,
    },
    mirrors: {
      summary: 'Show where an image is pulled from, in order, and why',
      load: async () => (await import('../diagnose/commands/mirrors.ts')).command,
    },
    report: {
      summary: 'Make one page that shows what is wrong in a fleet, where, and what to do',
      load: async () => (await import('../diagnose/commands/report.ts')).command,
    },
    status: {
      summary: 'Show what is in order and what is not',
      load: async () => (await import('../diagnose/commands/status.ts')).command,
    },
    test: {
      summary: 'Check expectations about pull credentials offline (JUnit for pipelines)',
      load: async () => (await import('../diagnose/commands/test.ts')).command,
    },
    validate: {
      summary: 'Validate pull secrets, mirror sets, profiles and fleets before they are applied',
      load: async () => (await import('../diagnose/commands/validate.ts')).command,
    },
    verify: {
      summary: 'Check that registries accept the credentials and have the images',
      load: async () => (await import('../diagnose/commands/verify.ts')).command,
    },
  },
  change: {
    completion: {
      summary: 'Print a completion script for bash, zsh or fish',
      load: async () => (await import('./completion.ts')).command,
    },
    synth: {
      summary: 'Render a fleet into files for a GitOps repository',
      load: async () => (await import('../../charts/synth.ts')).command,
    },
    uninstall: {
      summary: 'Remove everything from a cluster, in order, and leave the nodes working',
      load: async () => (await import('./uninstall/command.ts')).command,
    },
  },
  run: {
    adapter: {
      summary: 'Sync pull secrets of HyperFleet clusters to GCP and HyperShift (runs in a Deployment)',
      load: async () => (await import('../pull-secret-adapter/adapter/command.ts')).command,
    },
    agent: {
      summary: "Keep a node's pull credentials, and restart its kubelet (runs in a DaemonSet)",
      load: async () => (await import('../global-pull-secret/agent/command.ts')).command,
    },
    'install-provider': {
      summary: 'Put the credential provider on a node, and restart its kubelet (runs in a DaemonSet)',
      load: async () => (await import('../credential-provider/installer/command.ts')).command,
    },
    job: {
      summary: 'Store one pull secret in Google Secret Manager (runs in a Kubernetes Job)',
      load: async () => (await import('../pull-secret-adapter/job/command.ts')).command,
    },
    provider: {
      summary: 'Give CRI-O the pull credentials of a namespace (kubelet plugin)',
      load: async () => (await import('../credential-provider/plugin/command.ts')).command,
    },
    reconcile: {
      summary: 'Keep clusters as declared; with --from, show offline what would change',
      load: async () => (await import('./reconcile/command.ts')).command,
    },
    sentinel: {
      summary: 'Publish events about HyperFleet clusters that need work (runs in a Deployment)',
      load: async () => (await import('../pull-secret-adapter/sentinel/command.ts')).command,
    },
    webhook: {
      summary: 'Inject pull secrets into pods at admission (runs in a Deployment)',
      load: async () => (await import('../pull-secret-injection/webhook/command.ts')).command,
    },
  },
};

/** All subcommands, sorted by name. */
export const COMMANDS: Readonly<Record<string, TableEntry>> = Object.fromEntries(
  Object.values(GROUPS)
    .flatMap((group) => Object.entries(group))
    .sort(([a], [b]) => (a < b ? -1 : 1)),
);
