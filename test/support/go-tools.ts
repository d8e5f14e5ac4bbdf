/**
 * Programs that are built once from the tools of a Go module, and kept outside the tree under a hash of what they are built
 * from. Two processes never build the same at once.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { exclusively } from './exclusively.ts';

export interface GoTools {
  /** For people, and for the folder in the cache. */
  readonly name: string;
  /** Holds `go.mod` and `go.sum`. */
  readonly module: string;
  /** Between `go build` and what is built. @default {[]} */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Packages to build. @default {['tool']}: every tool of the module */
  readonly packages?: readonly string[];
  /** Files beside go.mod and go.sum that decide what is built. @default {[]} */
  readonly sources?: readonly string[];
  /** Names of the programs that must be there in the end, each with the name that Go gives it. */
  readonly programs: Readonly<Record<string, string>>;
}

export type Progress = (line: string) => void;

/** Whether the programs are there, or can be built. */
export function canBuild(tools: GoTools): boolean {
  return existsSync(join(folderOf(tools), 'done')) || spawnSync('go', ['version']).status === 0;
}

/** The folder with the programs; builds them where they are missing. */
export async function goTools(tools: GoTools, progress: Progress): Promise<string> {
  const folder = folderOf(tools);
  const isDone = (): boolean => existsSync(join(folder, 'done'));
  if (isDone()) return folder;
  mkdirSync(dirname(folder), { recursive: true });
  const waits = (): void => progress(`${tools.name}: another process is building it, waiting`);
  await exclusively(dirname(folder), () => (isDone() ? undefined : build(tools, folder, progress)), waits);
  return folder;
}

function folderOf(tools: GoTools): string {
  const { module, flags = [], env = {}, packages = [], sources = [], programs } = tools;
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}\n`);
  hash.update(JSON.stringify([flags, env, packages, programs]));
  for (const file of ['go.mod', 'go.sum', ...sources]) hash.update(readFileSync(join(module, file)));
  const base = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return join(base, 'pullwright', tools.name.replaceAll(' ', '-'), hash.digest('hex').slice(0, 16));
}

async function build(tools: GoTools, folder: string, progress: Progress): Promise<void> {
  const programs = Object.entries(tools.programs);
  progress(`${tools.name}: building ${programs.map(([name]) => name).join(', ')} (once)`);
  const target = `${folder}.building`;
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  await goBuild(tools, target, progress);
  for (const [name, built] of programs) {
    if (built !== name) renameSync(join(target, built), join(target, name));
    accessSync(join(target, name), constants.X_OK);
  }
  writeFileSync(join(target, 'done'), '');
  rmSync(folder, { recursive: true, force: true });
  renameSync(target, folder);
  progress(`${tools.name}: built`);
}

async function goBuild(tools: GoTools, target: string, progress: Progress): Promise<void> {
  const started = Date.now();
  const { flags = [], packages = ['tool'], env = {} } = tools;
  const child = spawn('go', ['build', '-v', ...flags, '-o', `${target}/`, ...packages], {
    cwd: tools.module,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  });
  let count = 0;
  let tail = '';
  child.stderr.on('data', (chunk: Buffer) => {
    count += chunk.toString().split('\n').length - 1;
    tail = (tail + chunk.toString()).slice(-2000);
  });
  const timer = setInterval(() => {
    progress(`${tools.name}: ${count} packages built, ${Math.round((Date.now() - started) / 1000)} s`);
  }, 10_000);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exit) => resolve(exit ?? -1));
  }).finally(() => clearInterval(timer));
  if (code !== 0) throw new Error(`Cannot build the ${tools.name}: go ended with ${code}\n${tail}`);
}
