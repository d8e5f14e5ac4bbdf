/** Asks the Go program beside this file, which runs the code that CRI-O, podman and skopeo pull with. */
import { askGo } from '../kubernetes/oracle.ts';

/** Build tags of containers/image for a build without C. */
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
  return askGo(['-C', import.meta.dirname, '-tags', TAGS, '.'], questions, { CGO_ENABLED: '0' });
}
