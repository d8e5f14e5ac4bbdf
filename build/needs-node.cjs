/**
 * Reports a Node that is too old, in syntax that Node has read since version 4: a source file would end in a stack trace. Run before the
 * sources by `npm start`, and before the bundle by the npm package.
 */
const version = process.versions.node;
if (Number(version.split('.')[0]) < 24) {
  process.stderr.write(
    `Cannot run Pullwright with Node ${version}: expected Node 24 or later. Install it from https://nodejs.org; on Linux, the executable of a release needs no Node, and "npm ci" in a clone installs Node 24\n`,
  );
  process.exit(1);
}
