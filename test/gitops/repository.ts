/** A git repository as its users have it: a bare one to push to, a clone to work in, and a shell that runs the documents' commands there. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { controlPlaneBinaries } from '../control-plane/build.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';

const root = new URL('../..', import.meta.url).pathname;

export class Repository {
  /** Repository that others fetch from. */
  readonly bare: string;
  /** Working copy of the user. */
  readonly work: string;
  readonly #home: string;
  readonly #kubeconfig: string;

  private constructor(folder: string, kubeconfig: string) {
    this.bare = join(folder, 'fleet.git');
    this.work = join(folder, 'fleet');
    this.#home = join(folder, 'home');
    this.#kubeconfig = kubeconfig;
  }

  /**
   * @param folder is removed by the caller
   * @param program the beginning of a command line: what `pullwright` is in the shell
   */
  static async create(
    folder: string,
    kubeconfig: string,
    program: string = `"${process.execPath}" "${root}main.ts"`,
  ): Promise<Repository> {
    const repository = new Repository(folder, kubeconfig);
    const home = repository.#home;
    mkdirSync(join(home, 'bin'), { recursive: true });
    symlinkSync((await controlPlaneBinaries()).kubectl, join(home, 'bin/kubectl'));
    const pullwright = join(home, 'bin/pullwright');
    writeFileSync(pullwright, `#!/bin/sh\nexec ${program} "$@"\n`);
    chmodSync(pullwright, 0o755);
    writeFileSync(
      join(home, '.gitconfig'),
      '[user]\nname = Platform\nemail = platform@example.com\n[init]\ndefaultBranch = main\n[push]\nautoSetupRemote = true\n',
    );
    repository.#git('init', '--quiet', '--bare', repository.bare);
    repository.#git('clone', '--quiet', repository.bare, repository.work);
    return repository;
  }

  get revision(): string {
    return this.#git('-C', this.bare, 'rev-parse', 'refs/heads/main').trim();
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.work, name), text);
  }

  /** Replaces one place of a file; fails when it is not there. */
  edit(name: string, from: string | RegExp, to: string): void {
    const text = readFileSync(join(this.work, name), 'utf8');
    const edited = text.replace(from, () => to);
    assert.notEqual(edited, text, `${name} has no ${from}`);
    this.write(name, edited);
  }

  /** Runs a block of a document where the user works. */
  shell(commands: string): Promise<ProcessResult> {
    return runProcess(['bash', '-euo', 'pipefail', '-c', commands], {
      cwd: this.work,
      // Longer than the blocks themselves wait.
      deadlineMs: 660_000,
      env: { PATH: `${this.#home}/bin:/usr/bin:/bin`, HOME: this.#home, KUBECONFIG: this.#kubeconfig },
    });
  }

  #git(...args: readonly string[]): string {
    return execFileSync('/usr/bin/git', args, {
      encoding: 'utf8',
      env: { HOME: this.#home, PATH: '/usr/bin:/bin' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }
}
