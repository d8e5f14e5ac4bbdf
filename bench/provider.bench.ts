/**
 * One run of the credential provider, start to end, as a kubelet starts it: TLS verified, secrets read, file written. Each row
 * is also a multiple of an empty program of the same build, and is held against a stand-in for the Go provider (see
 * provider-peer/), both measured in the same rounds, and against what the Go provider itself took on a machine of this kind.
 */
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { baseRuntime } from '../build/base.ts';
import { compile } from '../build/compile.ts';
import {
  authFiles,
  flagsOf,
  makeNode,
  pullSecret,
  requestFor,
  tokenFor,
} from '../test/credential-provider/support/node-double.ts';
import { makeCertificates } from '../test/support/certificates.ts';
import { missingGo } from '../test/support/go-program.ts';
import { runProcess } from '../test/support/process.ts';
import { ms, printTable, spread } from './measure.ts';
import { buildProviderPeer } from './provider-peer/build.ts';
import type { ProgramRuns, RunsConfig } from './provider-runs.ts';

const root = new URL('..', import.meta.url).pathname;
const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
const folder = mkdtempSync(join(tmpdir(), 'provider-bench-'));
const ROUNDS = 25;

type Shape = 'fan' | 'pairs';

interface Load {
  readonly shape: Shape;
  readonly pairs: number;
  readonly matched: number;
  /** What the Go provider took, in milliseconds. */
  readonly go: number;
}

const LOADS: readonly Load[] = [
  { shape: 'fan', pairs: 10, matched: 1, go: 12.2 },
  { shape: 'fan', pairs: 1000, matched: 10, go: 67.6 },
  { shape: 'fan', pairs: 1000, matched: 100, go: 476 },
  { shape: 'fan', pairs: 1000, matched: 1000, go: 4470 },
  { shape: 'pairs', pairs: 10, matched: 1, go: 10.7 },
  { shape: 'pairs', pairs: 1000, matched: 10, go: 27.1 },
  { shape: 'pairs', pairs: 1000, matched: 100, go: 32.6 },
  { shape: 'pairs', pairs: 1000, matched: 1000, go: 75.6 },
];

const name = (index: number): string => String(index).padStart(4, '0');

/** `fan`: one source with many mirrors, each secret for another one. `pairs`: many sources with one mirror each. */
function confOf({ shape, pairs }: Load): string {
  const mirror = (index: number, path: string): string =>
    `[[registry.mirror]]\nlocation = "mirror-${name(index)}.example.com:5000${path}"\npull-from-mirror = "digest-only"\n`;
  const indexes = Array.from({ length: pairs }, (_, index) => index);
  const head = 'unqualified-search-registries = ["registry.access.redhat.com", "docker.io"]\n\n';
  if (shape === 'fan')
    return `${head}[[registry]]\nlocation = "docker.io"\n\n${indexes.map((index) => mirror(index, '')).join('\n')}`;
  const tables = indexes.map(
    (index) => `[[registry]]\nlocation = "src-${name(index)}.example.com/proj"\n\n${mirror(index, '/proj')}`,
  );
  return head + tables.join('\n');
}

function imageOf({ shape, pairs }: Load): string {
  return shape === 'fan'
    ? 'docker.io/library/nginx'
    : `src-${name(Math.floor(pairs / 2))}.example.com/proj/nginx`;
}

function secretsOf({ shape, pairs, matched }: Load): readonly object[] {
  return Array.from({ length: matched }, (_, index) => {
    const mirror = shape === 'fan' ? Math.floor((index * pairs) / matched) : Math.floor(pairs / 2);
    const auth = Buffer.from(`user${index}:pass${index}`).toString('base64');
    return pullSecret(`pull-${name(index)}`, { [`mirror-${name(mirror)}.example.com:5000`]: { auth } });
  });
}

async function measure(
  load: Load,
  programs: { provider: string; empty: string; peer: string | undefined },
): Promise<Record<string, ProgramRuns>> {
  const { ca, cert, key } = makeCertificates();
  const list = JSON.stringify({ kind: 'SecretList', apiVersion: 'v1', items: secretsOf(load) });
  const references = JSON.stringify({
    spec: { imagePullSecrets: [{ name: 'pull-0000' }] },
    imagePullSecrets: [],
  });
  const server = createServer({ cert, key }, (request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(request.url?.includes('/secrets') === true ? list : references);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const node = makeNode({
    registriesConf: confOf(load),
    apiServerEnv: `KUBERNETES_SERVICE_HOST='127.0.0.1'\nKUBERNETES_SERVICE_PORT='${port}'\n`,
    ca,
    globalAuth: JSON.stringify({
      auths: { 'quay.io': { auth: 'ZzpncA==' }, 'registry.redhat.io': { auth: 'ZzpncA==' } },
    }),
    authDirMode: 0o700,
  });
  const stdin = requestFor(imageOf(load), tokenFor('team-a'));
  const config: RunsConfig = {
    rounds: ROUNDS,
    programs: [
      { name: 'empty', command: [programs.empty], stdin },
      { name: 'provider', command: [programs.provider, ...flagsOf(node)], stdin },
      ...(programs.peer === undefined
        ? []
        : [{ name: 'peer', command: [programs.peer, ...flagsOf(node)], stdin, most: peerRounds(load) }]),
    ],
  };
  const path = join(folder, 'config.json');
  writeFileSync(path, JSON.stringify(config));
  const ran = await runProcess([baseRuntime(root, arch), join(root, 'bench/provider-runs.ts'), path], {
    deadlineMs: 300_000,
  });
  if (ran.code !== 0) throw new Error(ran.stderr);
  if (Object.keys(authFiles(node)).length !== 1) throw new Error('no auth file was written');
  node.remove();
  server.closeAllConnections();
  server.close();
  return Object.fromEntries((JSON.parse(ran.stdout) as ProgramRuns[]).map((one) => [one.name, one]));
}

/** A run of the largest load takes seconds in Go. */
function peerRounds({ go }: Load): number {
  return Math.min(ROUNDS, Math.ceil(3000 / go));
}

function builtPeer(): string | undefined {
  const missing = missingGo();
  try {
    if (missing !== undefined) throw new Error(missing);
    const peer = join(folder, 'peer');
    buildProviderPeer(peer);
    return peer;
  } catch (error) {
    process.stderr.write(`without the stand-in for the Go provider: ${(error as Error).message}\n`);
    return undefined;
  }
}

writeFileSync(join(folder, 'empty.ts'), 'export {};\n');
const empty = join(folder, 'empty');
compile({ root, arch, outfile: empty, entry: join(folder, 'empty.ts') });
const built = join(folder, 'pullwright');
compile({ root, arch, outfile: built });
const provider = join(folder, 'crio-credential-provider');
symlinkSync(built, provider);
const peer = builtPeer();
// The node's files are in memory, as they were when the Go provider was recorded: what a disk needs for a sync is no program's.
if (existsSync('/dev/shm')) process.env['TMPDIR'] = '/dev/shm';

const rows = [];
for (const load of LOADS) {
  const { provider: own, empty: floor, peer: other } = await measure(load, { provider, empty, peer });
  if (own === undefined || floor === undefined) throw new Error('a program was not measured');
  const [median, least] = [spread(own.ms).median, spread(floor.ms).median];
  rows.push({
    shape: load.shape,
    'pairs / matched': `${load.pairs} / ${load.matched}`,
    'median ms': ms(median),
    'least ms': ms(spread(own.ms).min),
    'times an empty program': `${(median / least).toFixed(1)}x`,
    'Go stand-in ms': other === undefined ? '' : ms(spread(other.ms).median),
    'stand-in / ours': other === undefined ? '' : `${(spread(other.ms).median / median).toFixed(1)}x`,
    'Go provider, recorded ms': load.go,
    'MiB resident': own.rssMiB.toFixed(0),
    'log lines': own.stderrLines,
  });
}
printTable(`One run of the credential provider (${ROUNDS} rounds)`, rows);
rmSync(folder, { recursive: true });
