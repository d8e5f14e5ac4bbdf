/** The canonical form of a whole document, by the parts that a merge is written with. */
import { encodeConfig, encodeEntry } from '../../runtime/core/docker-config/encode.ts';
import { type DockerConfig, usableFields } from '../../runtime/core/docker-config/pull-secret.ts';
import type { Redacted } from '../../runtime/core/redacted.ts';

/** Writes the good entries of `config` in canonical form. */
export function canonicalDockerConfig(config: DockerConfig): Redacted<string> {
  const good = config.entries.filter((entry) => entry.fault === undefined);
  return encodeConfig(
    good.map((entry) => encodeEntry(entry, entry.key.written)),
    usableFields(config).fields,
  );
}
