/** CredentialProviderConfig files that the kubelet accepts at start, and its errors for the others. */

import { kubeletRefusal } from '../../../../runtime/credential-provider/config.ts';
import { parseYaml } from '../../../../runtime/kube/yaml.ts';
import type { ConformanceSuite } from '../../suite.ts';

/** The refusal up to where texts of Go's parsers begin; null for a file that is taken. */
type Refusal = string | null;

export const suite: ConformanceSuite<string, Refusal> = {
  cases(document) {
    const { cases } = document as {
      cases: readonly {
        id: string;
        ok: boolean;
        text: string;
        validationError?: string;
        readError?: string;
      }[];
    };
    return cases.map((one) => ({ name: one.id, input: one.text, expected: wantedOf(one) }));
  },
  answer(text) {
    const refusal = kubeletRefusal(text, parseYaml);
    return refusal === undefined ? null : beforeGo(refusal);
  },
  mutation: {
    file: 'runtime/credential-provider/config.ts',
    replace: 'duration < 0,',
    by: 'duration > 0,',
  },
};

function wantedOf(one: { id: string; ok: boolean; validationError?: string; readError?: string }): Refusal {
  if (one.ok) return null;
  const said = one.validationError ?? one.readError;
  if (said === undefined) throw new Error(`${one.id}: refused without a text`);
  return beforeGo(said);
}

/** Decoder and URL parser texts are Go's own: what they are about counts, not how they say it. */
function beforeGo(text: string): string {
  const field = /strict decoding error: unknown field "[^"]*"/.exec(text)?.[0];
  if (field !== undefined) return field;
  if (text.startsWith('error decoding config')) return 'error decoding config';
  return text
    .replace(/match image is invalid: .*?(?=, providers\.|\]$|$)/g, 'match image is invalid')
    .replace(/(AnnotationKeys(?:\[\d+\])?: Invalid value: "[^"]*").*?(?=, providers\.|\]$|$)/g, '$1');
}
