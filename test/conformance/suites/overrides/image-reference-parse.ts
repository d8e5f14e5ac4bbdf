import { parseWrittenReference } from '../../../../runtime/core/image-reference.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance } from './read.ts';

const NOTHING = { exact: '', id: '', name: '', namespace: '', registry: '', string: '', tag: '' };

export const suite: ConformanceSuite<Readonly<Record<string, unknown>>> = {
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer: (input) => {
    const parsed = parseWrittenReference(textOf(input, 'spec'));
    if (!parsed.ok) return { ...NOTHING, error: parsed.goText };
    const { domain, path, repository, tag = '', digest: id = '' } = parsed.reference;
    // The existing system takes a first part that is no host for one of the path.
    const isHost = /[.:]/.test(domain) || domain === 'localhost';
    const [registry, rest] = isHost ? [domain, path] : ['', repository];
    const cut = rest.indexOf('/');
    const whole = id === '' ? `${repository}${tag === '' ? '' : `:${tag}`}` : `${repository}@${id}`;
    return {
      registry,
      namespace: rest.slice(0, Math.max(0, cut)),
      name: rest.slice(cut + 1),
      tag,
      id,
      exact: whole,
      string: whole,
      error: null,
    };
  },
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/core/image-reference.ts',
    replace: 'if (match === null)',
    by: 'if (false)',
  },
};
