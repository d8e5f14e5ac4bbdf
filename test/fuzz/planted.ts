/** Parsers whose growth is known: those that are too slow must be found, or nothing that is said of the others counts. */
import type { Parser } from './parser.ts';

export interface Planted extends Parser {
  readonly grows: 'linear' | 'quadratic';
}

export const PLANTED: readonly Planted[] = [
  {
    name: 'a loop over what was seen',
    grows: 'quadratic',
    corpus: ['a,b,c'],
    run: (text) => {
      const seen: string[] = [];
      for (const part of text) {
        let known = 0;
        for (const one of seen) if (one === part) known += 1;
        if (known < text.length) seen.push(part);
      }
      return seen.length;
    },
  },
  {
    name: 'a parser that is linear',
    grows: 'linear',
    corpus: ['{"name":"a b","size":1}'],
    run: (text) => JSON.parse(text),
  },
  {
    name: 'a linear one that takes its time',
    grows: 'linear',
    corpus: ['a b'],
    run: (text) => {
      let sum = 0;
      for (let round = 0; round < 200; round += 1)
        for (let at = 0; at < text.length; at += 1) sum = (sum * 31 + text.charCodeAt(at)) % 65_521;
      return sum;
    },
  },
];
