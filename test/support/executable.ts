/**
 * The compiled executable, built once for a state of the sources and shared by every test file that runs it.
 *
 * It is found by a hash over everything that goes into it. The first process that asks builds; the others wait for it.
 */
import { createHash } from 'node:crypto';
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import type { Arch } from '../../build/base.ts';
import { compile } from '../../build/compile.ts';
import { exclusively } from './exclusively.ts';

const root = new URL('../..', import.meta.url).pathname;
const folder = join(tmpdir(), `pullwright-executables-${userInfo().uid}`);
const KEEP = 10;

const OWN: Arch = process.arch === 'arm64' ? 'arm64' : 'x64';

/** Path of the executable for Linux, called `pullwright`. `PULLWRIGHT_EXECUTABLE` names one that is to be tested instead. */
export async function executable(arch: Arch = OWN): Promise<string> {
  const given = process.env['PULLWRIGHT_EXECUTABLE'];
  if (given !== undefined && arch === OWN) return given;
  const outfile = join(folder, `${sourceHash()}-linux-${arch}`, 'pullwright');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (!existsSync(outfile)) await exclusively(folder, () => buildOnce(outfile, arch));
  // In use: another checkout that builds here deletes the least recently used.
  utimesSync(dirname(outfile), new Date(), new Date());
  return outfile;
}

function sourceHash(): string {
  const hash = createHash('sha256');
  const files = globSync(['runtime/**/*.ts', 'charts/**/*.ts', 'build/**/*.ts', 'package-lock.json'], {
    cwd: root,
  }).sort();
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(join(root, file)));
  return hash.digest('hex').slice(0, 16);
}

function buildOnce(outfile: string, arch: Arch): void {
  if (existsSync(outfile)) return;
  compile(arch, outfile);
  forgetOld();
}

/** Executables are large: only the newest few states of the sources are kept. */
function forgetOld(): void {
  const builds = readdirSync(folder)
    .filter((name) => !name.startsWith('lock'))
    .map((name) => ({ name, at: statSync(join(folder, name)).mtimeMs }))
    .sort((a, b) => b.at - a.at);
  for (const { name } of builds.slice(KEEP)) rmSync(join(folder, name), { recursive: true, force: true });
}
