/** A document with credentials is read once, however many images are looked up in it: there may be a thousand pods for one Secret. */
import { type DockerConfigResult, parseDockerConfig } from '../docker-config/docker-config.ts';
import type { DockerConfigFormat } from '../docker-config/fields.ts';
import type { Redacted } from '../redacted.ts';

/** What is read of a source. */
interface SourceText {
  readonly format: DockerConfigFormat;
  readonly text: Redacted<string>;
}

/** As long as there is the source. */
const read = new WeakMap<SourceText, DockerConfigResult>();

/**
 * What the document of `source` says. The same answer for the same source.
 *
 * @example
 * ```ts
 * import { readAuthSource } from './read-source.ts';
 * import { redact } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const source = { name: 'Secret/web/pull', format: 'config.json', text: redact('{"auths":{}}') } as const;
 * assert.equal(readAuthSource(source), readAuthSource(source));
 * assert.equal(readAuthSource(source).ok, true);
 * ```
 */
export function readAuthSource(source: SourceText): DockerConfigResult {
  const known = read.get(source);
  if (known !== undefined) return known;
  const result = parseDockerConfig(source.text, source.format);
  read.set(source, result);
  return result;
}
