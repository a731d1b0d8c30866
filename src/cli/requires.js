/**
 * Runs before the service and its tests, on any version of Node: in plain JavaScript, so that an old version can
 * report the problem.
 */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  console.error(
    `Plat runs on Node 24, which comes as the npm package "node", but this is Node ${process.versions.node}: ` +
      "npm skipped the package's install script. Run `npm rebuild node` and try again.",
  );
  process.exitCode = 1;
}
