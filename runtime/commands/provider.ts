/** `pullwright provider`, on a node `crio-credential-provider`: the kubelet's image credential provider. */
import { readFileSync } from 'node:fs';
import { configBeside, parseArguments } from '../credential-provider/plugin/options.ts';
import { runProvider } from '../credential-provider/plugin/run.ts';
import { VERSION } from '../rules/version.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { takeProxySettings } from './proxy-settings.ts';

export const command: Command = {
  name: 'provider',
  summary: 'Give CRI-O the pull credentials of a namespace (kubelet plugin)',
  spec: async () => (await import('./provider-spec.ts')).PROVIDER_SPEC,
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
  const parsed = parseArguments(
    args,
    io.env['HOME'],
    (path) => readFileSync(path, 'utf8'),
    configBeside(process.execPath),
  );
  if (parsed.version !== undefined) {
    write(
      io,
      1,
      parsed.version === 'json' ? `${JSON.stringify({ version: VERSION })}\n` : `Version: ${VERSION}\n`,
    );
    return 0;
  }
  if (parsed.check) {
    const { checkNode } = await import('../credential-provider/plugin/check.ts');
    return checkNode(parsed, { ...io, env: takeProxySettings(io.env) });
  }
  if (parsed.dryRun) return (await import('../credential-provider/plugin/dry-run.ts')).dryRun(parsed, io);
  const result = await runProvider(parsed.options, {
    env: takeProxySettings(io.env),
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
