/**
 * One run of the credential provider, start to end, as a kubelet starts it: TLS verified, secrets read, file written. In the same
 * rounds run the original of the CRI-O project, built from its module, and an empty program of the same build as ours.
 */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { baseRuntime } from '../build/base.ts';
import { compile } from '../build/compile.ts';
import {
  authFiles,
  flagsOf,
  makeNode,
  type NodeDouble,
  pullSecret,
  requestFor,
  tokenFor,
} from '../test/credential-provider/support/node-double.ts';
import { makeCertificates } from '../test/support/certificates.ts';
import { canBuild, type GoTools, goTools } from '../test/support/go-tools.ts';
import { runProcess } from '../test/support/process.ts';
import { ms, percentile, printTable, spread } from './measure.ts';
import type { ProgramRuns, RunsConfig } from './provider-runs.ts';

const root = new URL('..', import.meta.url).pathname;
const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
/** In memory: what a disk needs for a sync is no program's. */
const MEMORY = '/dev/shm';
const folder = mkdtempSync(join(MEMORY, 'provider-bench-'));
/** The original takes its paths when it is built; this one leads to the node that is measured. */
const NODE = join(MEMORY, 'pullwright-provider-bench');
const ROUNDS = 25;

type Shape = 'fan' | 'pairs';

interface Load {
  readonly shape: Shape;
  readonly pairs: number;
  readonly matched: number;
}

const SIZES: readonly (readonly [number, number])[] = [
  [10, 1],
  [25, 3],
  [50, 5],
  [100, 10],
  [100, 100],
  [1000, 10],
  [1000, 100],
  [1000, 1000],
];
const SHAPES: readonly Shape[] = ['fan', 'pairs'];
const LOADS: readonly Load[] = SHAPES.flatMap((shape) =>
  SIZES.map(([pairs, matched]) => ({ shape, pairs, matched })),
);

const PATHS: Readonly<Record<string, string>> = {
  RegistriesConfPath: `${NODE}/registries.conf`,
  AuthDir: `${NODE}/auth`,
  KubeletAuthFilePath: `${NODE}/config.json`,
  KubernetesConfigDir: NODE,
};
const ORIGINAL: GoTools = {
  name: 'original provider',
  module: join(root, 'test/node'),
  flags: [
    '-trimpath',
    '-tags',
    'containers_image_openpgp exclude_graphdriver_btrfs',
    '-ldflags',
    `-s -w ${Object.entries(PATHS)
      .map(
        ([variable, path]) => `-X github.com/cri-o/crio-credential-provider/pkg/config.${variable}=${path}`,
      )
      .join(' ')}`,
  ],
  env: { CGO_ENABLED: '0' },
  packages: ['github.com/cri-o/crio-credential-provider/cmd/crio-credential-provider'],
  programs: { 'crio-credential-provider': 'crio-credential-provider' },
};

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
  programs: { provider: string; empty: string; original: string | undefined },
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
  rmSync(NODE, { force: true });
  symlinkSync(node.folder, NODE);
  const stdin = requestFor(imageOf(load), tokenFor('team-a'));
  const config: RunsConfig = {
    rounds: ROUNDS,
    programs: [
      { name: 'empty', command: [programs.empty], stdin },
      { name: 'provider', command: [programs.provider, ...ownFlags(node)], stdin },
      ...(programs.original === undefined
        ? []
        : [{ name: 'original', command: [programs.original], stdin, most: originalRounds(load) }]),
    ],
  };
  const path = join(folder, 'config.json');
  writeFileSync(path, JSON.stringify(config));
  const ran = await runProcess([baseRuntime(arch), join(root, 'bench/provider-runs.ts'), path], {
    deadlineMs: 300_000,
  });
  if (ran.code !== 0) throw new Error(ran.stderr);
  if (Object.keys(authFiles(node)).length !== 1) throw new Error('no auth file was written');
  node.remove();
  server.closeAllConnections();
  server.close();
  return Object.fromEntries((JSON.parse(ran.stdout) as ProgramRuns[]).map((one) => [one.name, one]));
}

/** Drop-ins are read where they are on this machine, as the original does it. */
function ownFlags(node: NodeDouble): readonly string[] {
  return flagsOf(node).filter((flag) => !flag.startsWith('--registries-conf-dir'));
}

/** A run of the largest load takes the original seconds. */
function originalRounds({ shape, pairs, matched }: Load): number {
  return shape === 'fan' && pairs * matched > 10_000 ? 4 : ROUNDS;
}

async function builtOriginal(): Promise<string | undefined> {
  const progress = (line: string): boolean => process.stderr.write(`${line}\n`);
  if (canBuild(ORIGINAL)) return join(await goTools(ORIGINAL, progress), 'crio-credential-provider');
  progress('without the original provider: no Go tool chain');
  return undefined;
}

/** Processor time of the quarter of the fastest: what else runs on the machine counts least there. */
function leastCpu({ cpuMs }: ProgramRuns): number {
  return percentile(
    [...cpuMs].sort((a, b) => a - b),
    0.25,
  );
}

writeFileSync(join(folder, 'empty.ts'), 'export {};\n');
const empty = join(folder, 'empty');
compile(arch, empty, join(folder, 'empty.ts'));
const built = join(folder, 'pullwright');
compile(arch, built);
const provider = join(folder, 'crio-credential-provider');
symlinkSync(built, provider);
const original = await builtOriginal();
process.env['TMPDIR'] = MEMORY;

const rows = [];
for (const load of LOADS) {
  const { provider: own, empty: floor, original: other } = await measure(load, { provider, empty, original });
  if (own === undefined || floor === undefined) throw new Error('a program was not measured');
  const [median, least] = [spread(own.ms).median, spread(floor.ms).median];
  rows.push({
    shape: load.shape,
    'mirrors / secrets': `${load.pairs} / ${load.matched}`,
    'median ms': ms(median),
    'times an empty program': `${(median / least).toFixed(1)}x`,
    'original, median ms': other === undefined ? '' : ms(spread(other.ms).median),
    'original / ours': other === undefined ? '' : `${(spread(other.ms).median / median).toFixed(1)}x`,
    'processor ms': ms(leastCpu(own)),
    'original, processor ms': other === undefined ? '' : ms(leastCpu(other)),
    'original / ours, processor':
      other === undefined ? '' : `${(leastCpu(other) / leastCpu(own)).toFixed(1)}x`,
    'MiB resident': own.rssMiB.toFixed(0),
    'log lines': own.stderrLines,
  });
}
printTable(`One run of the credential provider (${ROUNDS} rounds)`, rows);
rmSync(NODE, { force: true });
rmSync(folder, { recursive: true });
