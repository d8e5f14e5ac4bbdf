/** Answers that are read as they arrive: the pieces in which they come make no difference. */
import { HttpError } from '../../runtime/http/http-error.ts';
import { JsonItems } from '../../runtime/kube/json-items.ts';
import { itemsOf } from '../../runtime/kube/kept-items.ts';
import { jsonLines } from '../../runtime/kube/lines.ts';
import { yamlMistake } from '../../runtime/rules/text/yaml-mistake.ts';
import { jsonOf } from './corpus.ts';
import { holds, type Parser } from './parser.ts';

export const STREAM_PARSERS: readonly Parser[] = [
  {
    name: 'items of a list',
    corpus: [
      jsonOf({
        kind: 'SecretList',
        metadata: { continue: 'x' },
        items: [{ metadata: { name: 'a' } }, { a: ']},' }],
      }),
      '{"items":[],"kind":"List"}',
    ],
    unit: '{"metadata":{}},',
    run: (text) => {
      const bytes = Buffer.from(text);
      const half = Math.floor(bytes.length / 2);
      const read = (...pieces: readonly Uint8Array[]): string => {
        const found: unknown[] = [];
        const take = (item: unknown, leftOut: number): number => found.push(item, leftOut);
        const reader = new JsonItems({ of: 'items', take, mostText: 100 });
        try {
          for (const piece of pieces) reader.push(piece);
          return jsonOf([found, reader.end()]);
        } catch (error) {
          holds(error instanceof SyntaxError, 'what is thrown');
          return 'no JSON';
        }
      };
      const whole = read(bytes);
      holds(read(bytes.subarray(0, half), bytes.subarray(half)) === whole, 'the pieces');
      return whole;
    },
  },
  {
    name: 'lines of a watch',
    corpus: [
      `${jsonOf({ type: 'ADDED', object: { kind: 'Node' } })}\n${jsonOf({ type: 'BOOKMARK' })}\n`,
      '\n\n',
    ],
    unit: '{"type":"ADDED"}\n',
    run: async (text) => {
      const bytes = new Uint8Array(Buffer.from(text));
      const half = Math.floor(bytes.length / 2);
      const read = async (...pieces: readonly Uint8Array[]): Promise<string> => {
        const found: unknown[] = [];
        const source = async function* () {
          yield* pieces;
        };
        for await (const value of jsonLines(source())) found.push(value.value);
        return jsonOf(found);
      };
      const whole = await read(bytes);
      holds((await read(bytes.subarray(0, half), bytes.subarray(half))) === whole, 'the pieces');
      return whole;
    },
  },
  {
    name: 'answer to a list',
    corpus: [jsonOf({ kind: 'SecretList', items: [{ metadata: { name: 'a' } }, 7] }), '{"items":[]}'],
    unit: '{"metadata":{}},',
    run: async (text) => {
      const source = async function* () {
        yield new Uint8Array(Buffer.from(text));
      };
      try {
        const { items, bytes } = await itemsOf(
          source(),
          { most: 30_000, hold: () => undefined },
          { keep: (item) => item, mostText: 100 },
        );
        holds(bytes <= 30_000, 'the bound');
        return items;
      } catch (error) {
        if (error instanceof HttpError) return error.failure;
        throw error;
      }
    },
  },
  {
    name: 'mistake of YAML, in words that hold nothing of it',
    corpus: ['Block scalar header includes extra characters: |c2VjcmV0', 'Unexpected "a" at line 1'],
    unit: '" at line 1',
    run: (text) => {
      const said = yamlMistake({ code: 'UNEXPECTED_TOKEN', message: text });
      holds(said.length <= 200, 'the length');
      return said;
    },
  },
];
