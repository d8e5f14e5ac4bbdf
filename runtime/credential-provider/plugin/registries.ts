/** The registries that decide about an image, out of the node's configuration files. */
import { parseRegistriesConf, type Registry, type TomlParser } from '../../rules/mirrors/registries-conf.ts';
import { findInPlain, parsePlain } from '../../rules/mirrors/registries-conf-plain.ts';
import { mergeRegistries, possiblePrefixes } from '../../rules/mirrors/registry-prefix.ts';
import { type ConfFile, mirrorError } from './conf-files.ts';

/** The registries that can match `image`, of all files. Throws where the container runtime refuses a file. */
export async function registriesFor(files: readonly ConfFile[], image: string): Promise<readonly Registry[]> {
  const found = await readAll(files, () => possiblePrefixes(image));
  // Whether a mirror is blocked is decided by other entries than the image's: then everything has to be read.
  return found.some(({ blocked }) => blocked) && files.length > 1 ? readAll(files, undefined) : found;
}

async function readAll(
  files: readonly ConfFile[],
  prefixes: (() => readonly string[]) | undefined,
): Promise<readonly Registry[]> {
  const parsed: (readonly Registry[])[] = [];
  for (const file of files) parsed.push(await registriesIn(file, prefixes));
  return mergeRegistries(parsed);
}

async function registriesIn(
  { path, text }: ConfFile,
  prefixes: (() => readonly string[]) | undefined,
): Promise<readonly Registry[]> {
  try {
    const found = prefixes === undefined ? undefined : findInPlain(text, prefixes);
    return found ?? parseRegistriesConf(text, await completeParser(text));
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown';
    throw mirrorError(
      `loading registries configuration: loading registries configuration "${path}": ${reason}`,
    );
  }
}

/** Most files are of the plain form; the library is loaded for those that are not. */
async function completeParser(text: string): Promise<TomlParser> {
  const plain = parsePlain(text);
  if (plain !== undefined) return () => plain;
  return (await import('smol-toml')).parse;
}
