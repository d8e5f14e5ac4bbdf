/** What the flags of `npm run release` say: who signs. */
import { readFileSync } from 'node:fs';
import { PullwrightError } from '../runtime/core/errors.ts';

/** Who signs, and as what. */
export interface Signing {
  /** ECDSA on P-256, PEM. */
  readonly key: string;
  readonly passphrase?: string;
  /** Repository of the image, as nodes pull it. */
  readonly image: string;
  /** @default {'https://pullwright.dev/build/local'} */
  readonly builder?: string;
}

interface Flags {
  readonly key?: string | undefined;
  readonly image?: string | undefined;
  readonly builder?: string | undefined;
  readonly snapshot: boolean;
}

/** @throws PullwrightError `NotSigned` when something that a signature needs is not said */
export function signingOf(values: Flags): Signing | undefined {
  const { key, image, builder, snapshot } = values;
  if (key === undefined && snapshot) return undefined;
  if (key === undefined || image === undefined)
    throw new PullwrightError(
      `Cannot release without ${key === undefined ? '--key: an unsigned release cannot be verified' : '--image: a signature names the repository that nodes pull from'}`,
      {
        code: 'NotSigned',
        hint: 'Give --key FILE and --image registry.example.com/pullwright/pullwright, or --snapshot for a trial',
      },
    );
  const passphrase = process.env['PULLWRIGHT_KEY_PASSPHRASE'];
  return {
    key: readFileSync(key, 'utf8'),
    image,
    ...(builder === undefined ? {} : { builder }),
    ...(passphrase === undefined ? {} : { passphrase }),
  };
}
