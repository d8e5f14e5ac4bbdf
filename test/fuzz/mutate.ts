/** Makes texts that are almost what a parser expects: good ones, cut, doubled, spliced, and sprinkled with what breaks parsers. */

/** Tokens that have broken parsers: inherited names, huge numbers, control characters, lone surrogates, markers. */
const TOKENS: readonly string[] = [
  '__proto__',
  'constructor',
  'toString',
  '\u0000',
  '\u2028',
  '\ud800',
  '\u{1f680}',
  '\ufeff',
  '\r\n',
  '\t',
  '"',
  "'",
  '\\',
  '\\u',
  '{}',
  '[]',
  '[[[[',
  '{"a":',
  'null',
  'true',
  '1e999',
  '-0',
  '99999999999999999999',
  '0x7fffffff',
  '://',
  '@',
  '@sha256:',
  ':',
  ':0',
  ':65536',
  '/',
  '//',
  '/../',
  '*',
  '*.*',
  '**',
  '?',
  '[a-',
  '%',
  '%2',
  '%zz',
  '[::1]',
  '=',
  ',',
  ';',
  '#',
  '---\n',
  '&a *a',
  '*a',
  '!!js/function',
  '<<: ',
  '|',
  '-----BEGIN ',
  '[1,'.repeat(400),
  '{"a":'.repeat(400),
  'A'.repeat(300),
  ' '.repeat(300),
];

/** One text, made of `corpus` by some of the mutations. */
export function mutated(corpus: readonly string[], random: () => number): string {
  let text = pick(corpus, random);
  const rounds = Math.floor(random() * 5);
  // A document that stays one reaches further than a broken one.
  const isWhole = random() < 0.5;
  for (let round = 0; round < rounds; round += 1)
    text = (isWhole ? reshaped(text, random) : pick(MUTATIONS, random)(text, random, corpus)).slice(
      0,
      20_000,
    );
  return text.slice(0, 20_000);
}

type Mutation = (text: string, random: () => number, corpus: readonly string[]) => string;

const MUTATIONS: readonly Mutation[] = [
  (text, random) => splice(text, random, 0, pick(TOKENS, random)),
  (text, random) => splice(text, random, 1, pick(TOKENS, random)),
  (text, random) => splice(text, random, 1 + Math.floor(random() * 8), ''),
  (text, random) => splice(text, random, 1, String.fromCharCode(Math.floor(random() * 0x1_00_00))),
  (text, random) => splice(text, random, 1, String.fromCharCode(Math.floor(random() * 128))),
  (text, random) => text.slice(0, Math.floor(random() * text.length)),
  (text, random) => text.slice(Math.floor(random() * text.length)),
  (text, random) => {
    const [from, to] = range(text, random);
    return text.slice(0, to) + text.slice(from, to).repeat(1 + Math.floor(random() * 20)) + text.slice(to);
  },
  (text, random, corpus) => {
    const other = pick(corpus, random);
    return (
      text.slice(0, Math.floor(random() * text.length)) + other.slice(Math.floor(random() * other.length))
    );
  },
  (text) => text.toUpperCase(),
  (text) => text.replaceAll('\n', '\r\n'),
  (text, random) => reshaped(text, random),
  (text, random) => text.replaceAll(text[Math.floor(random() * text.length)] ?? ' ', pick(TOKENS, random)),
];

function splice(text: string, random: () => number, remove: number, insert: string): string {
  const at = Math.floor(random() * (text.length + 1));
  return text.slice(0, at) + insert + text.slice(at + remove);
}

function range(text: string, random: () => number): readonly [number, number] {
  const a = Math.floor(random() * (text.length + 1));
  const b = Math.min(text.length, a + Math.floor(random() * 40));
  return [a, b];
}

function pick<T>(list: readonly T[], random: () => number): T {
  return list[Math.floor(random() * list.length)] as T;
}

/** Values of unexpected types. */
const ODD: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1e308,
  2 ** 53,
  '',
  ' ',
  'a'.repeat(300),
  '\ud800',
  '\u0000',
  '__proto__',
  [],
  {},
  [null],
  [[]],
  [{}],
  { '': '' },
  { name: 7 },
  { toString: 1 },
];

/** The same JSON with one value replaced, removed, doubled or moved; the text itself when it is not JSON. */
function reshaped(text: string, random: () => number): string {
  let root: { value: unknown };
  try {
    root = { value: JSON.parse(text) };
  } catch {
    return text;
  }
  const places: { readonly holder: Record<string, unknown>; readonly key: string }[] = [];
  const visit = (holder: Record<string, unknown>, key: string): void => {
    places.push({ holder, key });
    const value = holder[key];
    if (typeof value !== 'object' || value === null) return;
    for (const inner of Object.keys(value)) visit(value as Record<string, unknown>, inner);
  };
  visit(root, 'value');
  const { holder, key } = pick(places, random);
  const other = pick(places, random);
  const change = Math.floor(random() * 5);
  if (change === 0 && Array.isArray(holder)) holder.splice(Number(key), 1);
  else if (change === 0) delete holder[key];
  else if (change === 1) holder[key] = structuredClone(other.holder[other.key]);
  else if (change === 2) holder[key] = [holder[key], structuredClone(holder[key])];
  else if (change === 3 && holder !== root) holder[pick(TOKENS, random)] = holder[key];
  else holder[key] = pick(ODD, random);
  return JSON.stringify(root.value) ?? 'null';
}
