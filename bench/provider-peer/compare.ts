/**
 * `node bench/provider-peer/compare.ts`: holds the stand-in against what was recorded of the original, case for case: exit
 * code, response, bytes and mode of the auth file, requests, and every line of the log.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect, isDeepStrictEqual } from 'node:util';
import { startApi } from '../../test/credential-provider/support/api-double.ts';
import { authFiles, flagsOf, makeNode } from '../../test/credential-provider/support/node-double.ts';
import { filesOf, type Input } from '../../test/credential-provider/support/recorded-input.ts';
import { runProcess } from '../../test/support/process.ts';
import { buildProviderPeer } from './build.ts';

interface Recorded {
  readonly id: string;
  readonly input: Input;
  readonly peer: {
    readonly exitCode: number;
    readonly stdoutText: string;
    readonly authFiles: Readonly<Record<string, { readonly mode: string; readonly text: string }>>;
    readonly log: readonly string[];
    readonly apiRequests: readonly { readonly path: string }[];
  };
}

const recordings = new URL('../../test/conformance/cases/crio/recorded-behaviour.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(recordings, 'utf8')) as { cases: readonly Recorded[] };

/** The double of the API server lists one namespace, not all. */
const NOT_COMPARED: readonly string[] = ['token-namespace-empty'];

/** Go walks through the keys of a secret in a random order. */
function comparable(log: readonly string[]): readonly string[] {
  return log.toSorted();
}

function wanted({ peer }: Recorded): object {
  return {
    exitCode: peer.exitCode,
    stdout: peer.stdoutText,
    files: peer.authFiles,
    log: comparable(peer.log),
    requests: peer.apiRequests.map(({ path }) => path),
  };
}

async function answer(binary: string, input: Input): Promise<object> {
  const host = (input.apiserverUrlEnv ?? '').includes('::1') ? '::1' : '127.0.0.1';
  const state = { secrets: input.secrets, mode: input.api, ignoresSelector: input.apiIgnoresFieldSelector };
  const api = await startApi(state, { host });
  if (input.api === 'down') await api.close();
  const node = makeNode({ ...filesOf(input, api.port), ca: api.ca });
  try {
    // A folder named to the library switches the override by environment off, so it is named only where there are drop-ins.
    const hasDropIns = Object.keys(input.dropins).length > 0;
    const flags = flagsOf(node).filter((flag) => hasDropIns || !flag.startsWith('--registries-conf-dir'));
    const ran = await runProcess([binary, ...flags, ...input.args], {
      stdin: input.stdin,
      env: { HOME: node.folder, ...input.env },
    });
    const plain = (text: string): string =>
      text
        .replaceAll(`${node.folder}/registries.conf`, '/etc/containers/registries.conf')
        .replaceAll(`${node.folder}/auth`, '/etc/crio/auth')
        .replaceAll(`${node.folder}/config.json`, '/var/lib/kubelet/config.json')
        .replaceAll(`${node.folder}/apiserver-url.env`, '/etc/kubernetes/apiserver-url.env')
        .replaceAll(`:${api.port}`, ':%PORT%');
    const files = Object.entries(authFiles(node)).map(([name, { mode, text }]) => [
      name,
      { mode: `0o${mode.toString(8)}`, text },
    ]);
    const lines = ran.stderr.split('\n').filter((line) => line !== '');
    return {
      exitCode: ran.code,
      stdout: ran.stdout,
      files: Object.fromEntries(files),
      log: comparable(lines.map((line) => plain(line).replace(/^\S+ \S+ main\.go:\d+: /, ''))),
      requests: api.requests.map(({ path }) => path),
    };
  } finally {
    node.remove();
    if (input.api !== 'down') await api.close();
  }
}

const folder = mkdtempSync(join(tmpdir(), 'provider-peer-'));
const binary = join(folder, 'peer');
buildProviderPeer(binary);
let same = 0;
const compared = cases.filter(({ id }) => !NOT_COMPARED.includes(id));
for (const one of compared) {
  const [is, was] = [await answer(binary, one.input), wanted(one)];
  if (isDeepStrictEqual(is, was)) same += 1;
  else
    process.stdout.write(
      `${one.id}\n  is  ${inspect(is, { depth: 4 })}\n  was ${inspect(was, { depth: 4 })}\n`,
    );
}
rmSync(folder, { recursive: true });
process.stdout.write(`${same} of ${compared.length} recorded answers are the same\n`);
process.exitCode = same === compared.length ? 0 : 1;
