/**
 * Runs by Bun: `bun bench/provider-runs.ts CONFIG.json`. Starts programs in turn, as a kubelet would, and prints for each the
 * times in milliseconds and the largest resident size in MiB. Bun, because it reports what a child used.
 */
import { readFileSync } from 'node:fs';

export interface RunsConfig {
  readonly rounds: number;
  readonly programs: readonly {
    readonly name: string;
    readonly command: readonly string[];
    readonly stdin: string;
  }[];
}

export interface ProgramRuns {
  readonly name: string;
  readonly ms: readonly number[];
  readonly rssMiB: number;
  readonly stderrLines: number;
}

interface Child {
  readonly exited: Promise<number>;
  readonly stderr: ReadableStream;
  resourceUsage(): { readonly maxRSS: number };
}

interface BunGlobal {
  spawn(command: readonly string[], options: object): Child;
}

const bun = (globalThis as unknown as { Bun: BunGlobal }).Bun;
const WARM_UP = 3;

async function main(): Promise<void> {
  const config = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as RunsConfig;
  const results = config.programs.map(({ name }) => ({
    name,
    ms: [] as number[],
    rssMiB: 0,
    stderrLines: 0,
  }));
  for (let round = -WARM_UP; round < config.rounds; round += 1) {
    for (const [index, { command, stdin }] of config.programs.entries()) {
      const result = results[index];
      const start = performance.now();
      const child = bun.spawn(command, {
        stdin: new Blob([stdin]),
        stdout: 'ignore',
        stderr: 'pipe',
        env: { HOME: '/root' },
      });
      const [code, said] = await Promise.all([child.exited, new Response(child.stderr).text()]);
      const ms = performance.now() - start;
      if (code !== 0) throw new Error(`${command[0]} ended with ${code}: ${said}`);
      if (round < 0 || result === undefined) continue;
      result.ms.push(ms);
      result.rssMiB = Math.max(result.rssMiB, child.resourceUsage().maxRSS / 2 ** 20);
      result.stderrLines = said.split('\n').length - 1;
    }
  }
  process.stdout.write(JSON.stringify(results));
}

await main();
