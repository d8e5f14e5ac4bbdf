/** CRI-O's use of the file: it derives the name from namespace and repository, and must be able to read the JSON. */
import { authFilePath } from '../../../../runtime/credential-provider/plugin/run.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly image: string;
  readonly file: string;
  /** Namespace of the pod that pulls; the file is made for `default`. */
  readonly podNamespace: string;
}

interface Outcome {
  /** Whether CRI-O finds the file for the pod. */
  readonly isFound: boolean;
  readonly hash: string;
  readonly isReadable: boolean;
}

export const suite: ConformanceSuite<Input, Outcome> = {
  cases(document) {
    const { image, imageNameSha256, cases } = document as {
      image: string;
      imageNameSha256: string;
      cases: readonly (Input & {
        name: string;
        pull: string;
        filesLeft: number;
        logHas?: readonly string[];
      })[];
    };
    return cases.map((one) => ({
      name: one.name,
      input: { image, file: one.file, podNamespace: one.podNamespace },
      expected: {
        isFound: one.filesLeft === 0,
        hash: imageNameSha256,
        isReadable: !(one.logHas ?? []).some((line) => line.includes('invalid character')),
      },
    }));
  },
  answer({ image, file, podNamespace }) {
    const repository = image.replace(/:[^/]*$/, '');
    const made = authFilePath('/etc/crio/auth', 'default', repository);
    return {
      isFound: made === authFilePath('/etc/crio/auth', podNamespace, repository),
      hash: /-([0-9a-f]{64})\.json$/.exec(made)?.[1] ?? '',
      isReadable: isJson(file),
    };
  },
  mutation: {
    file: 'runtime/credential-provider/plugin/run.ts',
    replace: '/${namespace}-${hash}.json',
    by: '/${hash}-${namespace}.json',
  },
};

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
