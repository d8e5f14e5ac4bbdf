import { type SplitReference, splitReference } from '../../../../runtime/registry-overrides/overrides.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance } from './read.ts';

const NOTHING = { exact: '', id: '', name: '', namespace: '', registry: '', string: '', tag: '' };

/** The parts put together again: by digest when there is one, else by tag. */
function joined({ registry, namespace, name, tag, digest }: SplitReference): string {
  const path = [registry, namespace, name].filter((part) => part !== '').join('/');
  if (digest !== '') return `${path}@${digest}`;
  return tag === '' ? path : `${path}:${tag}`;
}

export const suite: ConformanceSuite<Readonly<Record<string, unknown>>> = {
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer: (input) => {
    const parts = splitReference(textOf(input, 'spec'));
    if ('error' in parts) return { ...NOTHING, error: parts.error };
    const { digest, ...rest } = parts;
    const whole = joined(parts);
    return { ...rest, id: digest, exact: whole, string: whole, error: null };
  },
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/registry-overrides/overrides.ts',
    replace: "|| first === 'localhost'",
    by: '',
  },
};
