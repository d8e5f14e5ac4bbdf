/** Builds the stand-in for the Go provider; Go keeps what it has compiled in its own cache. */
import { spawnSync } from 'node:child_process';

/** What containers/image needs to be built without C, as CRI-O's packagers do. */
const TAGS = 'containers_image_openpgp exclude_graphdriver_btrfs exclude_graphdriver_devicemapper';

/**
 * Builds to `binary`, as small and as fast to start as Go makes it. About two minutes the first time. `missingGo` of
 * test/support/go-program.ts says whether it can be built here.
 */
export function buildProviderPeer(binary: string): void {
  const flags = ['-trimpath', '-ldflags=-s -w', '-tags', TAGS, '-o', binary];
  const { status, stderr } = spawnSync('go', ['build', '-C', import.meta.dirname, ...flags, '.'], {
    encoding: 'utf8',
    env: { ...process.env, CGO_ENABLED: '0' },
  });
  if (status !== 0) throw new Error(`Cannot build the stand-in for the Go provider:\n${stderr}`);
}
