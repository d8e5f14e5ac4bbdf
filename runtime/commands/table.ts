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
      summary: 'Check a cluster before and after an installation',
      load: async () => (await import('../diagnose/commands/check.ts')).command,
    },
    doctor: {
      summary: 'Find why a pod cannot pull its images, and print the YAML that fixes it',
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
      summary: 'Report problems of a fleet and their fixes, as text or one web page',
      load: async () => (await import('../diagnose/commands/report.ts')).command,
    },
    status: {
      summary: 'Show what is ready and what is not',
      load: async () => (await import('../diagnose/commands/status.ts')).command,
    },
    test: {
      summary: 'Test expectations about pull credentials offline (JUnit for pipelines)',
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
      summary: 'Remove Pullwright from a cluster, and keep the nodes working',
      load: async () => (await import('./uninstall/command.ts')).command,
    },
  },
  run: {
    adapter: {
      summary: 'Sync pull secrets of HyperFleet clusters to GCP and HyperShift (runs in a Deployment)',
      load: async () => (await import('../pull-secret-adapter/adapter/command.ts')).command,
    },
    agent: {
      summary: "Sync a node's pull credentials, and restart its kubelet (runs in a DaemonSet)",
      load: async () => (await import('../global-pull-secret/agent/command.ts')).command,
    },
    'install-provider': {
      summary: 'Install the credential provider on a node, and restart its kubelet (runs in a DaemonSet)',
      load: async () => (await import('../credential-provider/installer/command.ts')).command,
    },
    job: {
      summary: 'Store one pull secret in Google Secret Manager (runs in a Kubernetes Job)',
      load: async () => (await import('../pull-secret-adapter/job/command.ts')).command,
    },
    provider: {
      summary: 'Provide CRI-O with the pull credentials of a namespace (kubelet plugin)',
      load: async () => (await import('../credential-provider/plugin/command.ts')).command,
    },
    reconcile: {
      summary: 'Keep clusters in the declared state; with --from, show changes offline',
      load: async () => (await import('./reconcile/command.ts')).command,
    },
    sentinel: {
      summary: 'Publish events about HyperFleet clusters that need reconciling (runs in a Deployment)',
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
