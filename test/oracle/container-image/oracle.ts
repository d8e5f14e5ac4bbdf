/** Asks the Go program beside this file, which runs the code that CRI-O, podman and skopeo pull with. */
import { spawnSync } from 'node:child_process';

/** What containers/image needs to be built without C. */
const TAGS = 'containers_image_openpgp exclude_graphdriver_btrfs exclude_graphdriver_devicemapper';

/** One question: files of configuration (main first), an auth file, and what is asked about. */
export interface Question {
  readonly Ask: 'conf' | 'auth' | 'image' | 'pull';
  readonly Files?: readonly { readonly Name: string; readonly Text: string }[];
  readonly Asked: readonly string[];
  readonly Auth?: string;
  readonly Legacy?: boolean;
}

/** All answers, in the order of the questions. Go builds the program once and keeps it in its own cache. */
export function askContainersImage(questions: readonly Question[]): readonly unknown[] {
  const ran = spawnSync('go', ['run', '-C', import.meta.dirname, '-tags', TAGS, '.'], {
    input: questions.map((question) => JSON.stringify(question)).join('\n'),
    maxBuffer: 2 ** 30,
    encoding: 'utf8',
    env: { ...process.env, CGO_ENABLED: '0' },
  });
  if (ran.status !== 0) throw new Error(`The oracle ended with ${String(ran.status)}:\n${ran.stderr}`);
  const lines = ran.stdout.split('\n').filter((line) => line !== '');
  if (lines.length !== questions.length)
    throw new Error(`The oracle gave ${lines.length} answers to ${questions.length} questions`);
  return lines.map((line) => JSON.parse(line) as unknown);
}
