/**
 * Says which Node is wanted before one that is too old fails at a file's name. Plain JavaScript, for any Node runs it. `npm ci`
 * brings the right one on Linux; for other systems the registry has no package of it.
 */
const [major] = process.versions.node.split('.');
if (Number(major) < 24) {
  process.stderr.write(
    `Cannot run the sources with Node ${process.versions.node}: expected 24 or later. On Linux "npm ci" brings it, and the executable of a release needs none; on macOS and Windows install it from https://nodejs.org\n`,
  );
  process.exitCode = 1;
}
