/** `pullwright provider`, on a node `crio-credential-provider`: the kubelet's image credential provider. */

import type { Command, CommandIo, ExitCode } from '../../cli/command.ts';
import { choice, type Flag, file, text, toggle } from '../../cli/flags.ts';
import type { CommandSpec } from '../../cli/help.ts';
import { VERSION } from '../../core/version.ts';
import { PROVIDER_FLAGS } from '../provider-flags.ts';
import { argumentsOf, runProvider } from './run.ts';

export const command: Command = {
  name: 'provider',
  spec: async () => PROVIDER_SPEC,
  permissions: {
    reads: [
      '/etc/containers/registries.conf',
      '/etc/containers/registries.conf.d',
      '/etc/containers/registries.rootful.conf.d',
      '/usr/share/containers',
      '/etc/kubernetes',
      '/var/lib/kubelet/config.json',
      '/var/lib/kubelet/kubeconfig',
      '<--config>',
      '<folder of the executable>/crio-credential-provider.json',
    ],
    writes: ['/etc/crio/auth', '/run/systemd/journal/socket'],
    hosts: ['API server'],
    api: [
      'list secrets (own namespace)',
      'get secrets (own namespace)',
      'get pods (own namespace, optional)',
      'get serviceaccounts (own namespace, optional)',
    ],
  },
  run: runCommand,
};

async function runCommand(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const parsed = argumentsOf(args, io.env['HOME']);
  if (parsed.version !== undefined) {
    const said = parsed.version === 'json' ? JSON.stringify({ version: VERSION }) : `Version: ${VERSION}`;
    write(io, 1, `${said}\n`);
    return 0;
  }
  if (parsed.check) return (await import('./check.ts')).checkNode(parsed, io);
  if (parsed.dryRun) return (await import('./check.ts')).dryRun(parsed, io);
  const result = await runProvider(parsed.options, {
    env: io.env,
    signal: io.signal,
    writeError: (line) => write(io, 2, line),
  });
  write(io, 1, result.stdout);
  io.exitNow?.(result.exitCode);
  return result.exitCode;
}

function write(io: CommandIo, fd: 1 | 2, text: string): void {
  if (io.writeNow === undefined) (fd === 1 ? io.stdout : io.stderr).write(text);
  else if (text !== '') io.writeNow(fd, text);
}

// Help of `provider`, also for completion and the reference. Its arguments have their own parser, because the kubelet passes
// each plugin whatever its configuration holds.

export const PROVIDER_SPEC: CommandSpec = {
  name: 'provider',
  program: 'crio-credential-provider',
  about: [
    "Provides CRI-O with the pull credentials of a pod's namespace, for the mirrors of an image.",
    "The kubelet runs it with a CredentialProviderRequest on stdin. It finds the image's mirrors in registries.conf, reads the namespace's pull secrets with the pod's own token, writes <auth dir>/<namespace>-<sha256 of the image>.json for CRI-O and answers with a CredentialProviderResponse on stdout. Everything else goes to stderr and to the journal (journalctl -t crio-credential-provider).",
  ],
  args: [{ name: '< request.json', help: 'the CredentialProviderRequest' }],
  flags: {
    config: file({
      help: 'JSON object with the flags below, without dashes; crio-credential-provider.json next to the executable is always read if it exists',
    }),
    ...settingFlags(),
    'dry-run': toggle({
      help: `write nothing; print pull sources, choices and the redacted auth file. The request's "dryRun" (registriesConf, globalAuth, secrets) replaces the node and the API server`,
    }),
    check: toggle({
      help: 'write nothing; accept a request without a token; check configuration, folder, CA and API server of this node: 0 ready, 1 not',
    }),
    output: choice(['text', 'json'], {
      default: 'text',
      help: 'output format of --dry-run and --check',
    }),
    version: toggle({ help: 'print the version' }),
    'version-json': toggle({ help: 'print the version as JSON' }),
  },
  examples: ['node main.ts provider --dry-run < examples/request.json'],
};

function settingFlags(): Readonly<Record<string, Flag<unknown>>> {
  return Object.fromEntries(
    Object.values(PROVIDER_FLAGS).map(({ flag, kind, help }): [string, Flag<unknown>] => {
      if (kind === 'path' || kind === 'paths') return [flag, text({ value: 'PATH', help })];
      if (kind === 'secrets') return [flag, choice(['list', 'named'], { help })];
      return [flag, kind === 'boolean' ? toggle({ help }) : text({ value: 'MS', help })];
    }),
  );
}
