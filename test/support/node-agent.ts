/** The compiled agent beside a private systemd: starts it, swaps the mounted secrets as the kubelet does, reads its log. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { GLOBAL_PULL_SECRET } from '../../runtime/core/kubernetes/hypershift.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { judgedMark } from '../../runtime/global-pull-secret/removal-guard.ts';
import { executable } from './executable.ts';
import type { PrivateSystemd } from './systemd.ts';

/** A secret volume as the kubelet mounts it: `..data` is a link that is swapped by a rename. */
export class SecretMount {
  readonly path: string;
  #version = 0;

  /** An optional secret that is not there is an empty folder. */
  constructor(path: string) {
    this.path = path;
    mkdirSync(path, { recursive: true });
  }

  get file(): string {
    return join(this.path, '.dockerconfigjson');
  }

  /** Replaces the secret, or deletes it for undefined. `judged`: with the reconciler's mark. */
  swap(content: string | Uint8Array | undefined, judged = true): void {
    const folder = join(this.path, `..v${(this.#version += 1)}`);
    const link = join(this.path, '..data_tmp');
    mkdirSync(folder);
    if (content !== undefined) {
      writeFileSync(join(folder, '.dockerconfigjson'), content);
      if (judged) writeFileSync(join(folder, JUDGED), judgedMark(redact(Buffer.from(content).toString())));
    }
    symlinkSync(`..v${this.#version}`, link);
    renameSync(link, join(this.path, '..data'));
    for (const path of [this.file, join(this.path, JUDGED)]) {
      const name = `..data/${basename(path)}`;
      if (content === undefined) rmSync(path, { force: true });
      else if (this.#version === 1 || !linked(path, name)) symlinkSync(name, path);
    }
    if (this.#version > 1) rmSync(join(this.path, `..v${this.#version - 1}`), { recursive: true });
  }
}

const JUDGED = GLOBAL_PULL_SECRET.judgedKey;

function linked(path: string, target: string): boolean {
  try {
    symlinkSync(target, path);
    rmSync(path);
    return false;
  } catch {
    return true;
  }
}

/** One log line of the agent. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly event?: string;
  readonly reason?: string;
  readonly [field: string]: unknown;
}

/** A node: a private systemd, two mounts, and agents that come and go. */
export class TestNode {
  readonly machine: PrivateSystemd;
  readonly original: SecretMount;
  readonly global: SecretMount;
  /** All that it started. */
  readonly agents: RunningAgent[] = [];
  readonly #program: string;

  private constructor(machine: PrivateSystemd, program: string) {
    this.machine = machine;
    this.#program = program;
    this.original = new SecretMount(join(machine.state, 'original'));
    this.global = new SecretMount(join(machine.state, 'global'));
  }

  static async on(machine: PrivateSystemd): Promise<TestNode> {
    return new TestNode(machine, await executable());
  }

  /** The command line, without a window and with a short time to settle unless `flags` say otherwise. */
  command(flags: readonly string[] = [], program: string = this.#program): readonly string[] {
    const given = (name: string): boolean => flags.some((flag) => flag.startsWith(`--${name}`));
    const defaults = {
      global: this.global.file,
      original: this.original.file,
      file: this.machine.config,
      'bus-socket': this.machine.bus,
      'restart-window': '0',
      settle: '300ms',
      'health-port': 'off',
      'kubelet-healthz': 'off',
      'max-restarts': '0',
    };
    const filled = Object.entries(defaults).flatMap(([name, value]) =>
      given(name) ? [] : [`--${name}=${value}`],
    );
    return [program, 'agent', ...filled, ...flags];
  }

  agent(flags: readonly string[] = [], env: NodeJS.ProcessEnv = process.env, program?: string): RunningAgent {
    const agent = new RunningAgent(this.command(flags, program), env);
    this.agents.push(agent);
    return agent;
  }

  /** Takes it down, with its agents. */
  async stop(): Promise<void> {
    for (const agent of this.agents) await agent.kill();
    await this.machine.stop();
  }
}

export class RunningAgent {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  #text = '';

  constructor([program = '', ...args]: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    // A test that is killed takes its agents with it.
    this.child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', program, ...args], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.child.stderr?.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString();
    });
    this.ended = new Promise((resolve) => this.child.once('close', (code) => resolve(code)));
  }

  /** Everything it wrote so far. */
  text(): string {
    return this.#text;
  }

  lines(): readonly LogLine[] {
    return this.#text
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as LogLine);
  }

  events(name: string): readonly LogLine[] {
    return this.lines().filter(({ event }) => event === name);
  }

  /** The reason of the last state that it logged. */
  reason(): string | undefined {
    return this.lines().findLast(({ reason }) => reason !== undefined)?.reason;
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }

  /** Stops it as a pod is stopped. Gives the exit code and how long that took. */
  async stop(): Promise<{ readonly code: number | null; readonly ms: number }> {
    const from = performance.now();
    this.child.kill('SIGTERM');
    const code = await this.ended;
    return { code, ms: performance.now() - from };
  }
}
