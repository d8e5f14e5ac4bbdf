/** `pullwright provider`, on a node `crio-credential-provider`: the kubelet's image credential provider. */
import { readFileSync } from 'node:fs';
import { configBeside, parseArguments } from '../credential-provider/plugin/options.ts';
import { runProvider } from '../credential-provider/plugin/run.ts';
import { PROVIDER_FLAGS } from '../rules/credential-provider/provider-flags.ts';
import { VERSION } from '../rules/version.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { takeProxySettings } from './proxy-settings.ts';

const flagLines = Object.values(PROVIDER_FLAGS).map(({ flag, help }) => `  --${flag.padEnd(22)}${help}`);

const HELP = `
Gives CRI-O the pull credentials of a pod's namespace, for the mirrors that an image is really pulled from.

The kubelet runs it with a CredentialProviderRequest on stdin. It finds the image's mirrors in registries.conf, reads the
namespace's pull secrets with the pod's own token, writes <auth dir>/<namespace>-<sha256 of the image>.json for CRI-O and
answers with a CredentialProviderResponse on stdout. Everything else goes to stderr and to the journal
(journalctl -t crio-credential-provider).

Usage: crio-credential-provider [flags] < request.json

  --config FILE           JSON object with the flags below, without dashes; crio-credential-provider.json beside the
                          executable is read in any case, if it is there
${flagLines.join('\n')}
  --dry-run               write nothing; print pull sources, choices and the redacted auth file. What the request holds
                          under "dryRun" (registriesConf, globalAuth, secrets) stands in for the node and the API server
  --output text|json      of --dry-run
  --version, --version-json

Example: node main.ts provider --dry-run < examples/request.json
`;

export const command: Command = {
  name: 'provider',
  summary: 'Give CRI-O the pull credentials of a namespace (kubelet plugin)',
  help: HELP,
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
