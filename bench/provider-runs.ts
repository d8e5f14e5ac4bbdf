/**
 * Runs by Bun: `bun bench/provider-runs.ts CONFIG.json`. Starts programs in turn, as a kubelet would, and prints for each the
 * times and the processor times in milliseconds, and the largest resident size in MiB. Bun, because it reports what a child used.
 */
import { readFileSync } from 'node:fs';

export interface RunsConfig {
  readonly rounds: number;
  readonly programs: readonly {
    readonly name: string;
    readonly command: readonly string[];
    readonly stdin: string;
    /** Fewer rounds than the others have. */
    readonly most?: number;
  }[];
}

export interface ProgramRuns {
  readonly name: string;
  readonly ms: readonly number[];
  /** Processor time, of the program and of the system for it. */
  readonly cpuMs: readonly number[];
  readonly rssMiB: number;
  readonly stderrLines: number;
}

interface Child {
  readonly exited: Promise<number>;
  readonly stderr: ReadableStream<Uint8Array>;
  resourceUsage(): { readonly maxRSS: number; readonly cpuTime: { readonly total: bigint | number } };
}

interface BunGlobal {
  spawn(command: readonly string[], options: object): Child;
}

const bun = (globalThis as unknown as { Bun: BunGlobal }).Bun;
const WARM_UP = 3;

/** Keeps no output: a child's peak memory starts at its parent's, so the parent must stay small. */
async function heard(stream: ReadableStream<Uint8Array>): Promise<{ lines: number; end: string }> {
  let lines = 0;
  let end = '';
  for await (const bytes of stream) {
    for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) lines += 1;
    end = new TextDecoder().decode(bytes.subarray(-2000));
  }
  return { lines, end };
}

async function main(): Promise<void> {
  const config = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as RunsConfig;
  const results = config.programs.map(({ name }) => ({
    name,
    ms: [] as number[],
    cpuMs: [] as number[],
    rssMiB: 0,
    stderrLines: 0,
  }));
  for (let round = -WARM_UP; round < config.rounds; round += 1) {
    for (const [index, { command, stdin, most = config.rounds }] of config.programs.entries()) {
      if (round >= most || round < -most) continue;
      const result = results[index];
      const start = performance.now();
      const child = bun.spawn(command, {
        stdin: new Blob([stdin]),
        stdout: 'ignore',
        stderr: 'pipe',
        env: { HOME: '/root' },
      });
      const [code, said] = await Promise.all([child.exited, heard(child.stderr)]);
      const ms = performance.now() - start;
      if (code !== 0) throw new Error(`${command[0]} ended with ${code}: ${said.end}`);
      if (round < 0 || result === undefined) continue;
      result.ms.push(ms);
      const { maxRSS, cpuTime } = child.resourceUsage();
      result.cpuMs.push(Number(cpuTime.total) / 1000);
      result.rssMiB = Math.max(result.rssMiB, maxRSS / 2 ** 20);
      result.stderrLines = said.lines;
    }
  }
  process.stdout.write(JSON.stringify(results));
}

await main();
