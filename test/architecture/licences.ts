/** Licences that dependencies may have, and why; packages that say nothing a program can read, and what they say. */

/** SPDX identifier to the reason why it may be used and shipped under Apache-2.0. */
export const ALLOWED: Readonly<Record<string, string>> = {
  MIT: 'asks for its notice to be kept',
  'Apache-2.0': 'our own',
  ISC: 'as MIT',
  'BSD-2-Clause': 'as MIT',
  'BSD-3-Clause': 'as MIT, and no use of names',
  '0BSD': 'asks for nothing',
  'BlueOak-1.0.0': 'as MIT, with a patent grant',
  Unlicense: 'given to the public',
  'CC0-1.0': 'given to the public',
  'PSF-2.0': 'the Python licence: as MIT',
  'MIT/X11': 'an old way to write MIT',
};

/** For what only builds and tests use, and no release, image or package holds. SPDX identifier to the reason. */
export const ALLOWED_FOR_DEVELOPMENT: Readonly<Record<string, string>> = {
  'MPL-2.0':
    'asks for the sources of its own files, where they are handed on: axe-core, run inside test browsers',
};

/** Package to its licence and where that is said, for packages whose manifest has no SPDX expression. */
export const SAID_ELSEWHERE: Readonly<Record<string, { readonly licence: string; readonly where: string }>> =
  {
    jsbi: { licence: 'Apache-2.0', where: 'its file LICENSE' },
    'map-stream': { licence: 'MIT', where: 'its file LICENCE' },
    'pause-stream': { licence: 'MIT', where: 'its manifest, as a list of two' },
  };

/** Packages with an install script. It does not run (`ignore-scripts` in `.npmrc`), and they work without. */
export const INSTALL_SCRIPTS: Readonly<Record<string, string>> = {
  esbuild: 'checks that the platform package is there; that one comes as an optional dependency',
  protobufjs: 'warns about version ranges',
};
