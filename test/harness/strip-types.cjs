const { stripTypeScriptTypes } = require("node:module");

/** Jest transform: TypeScript to JavaScript by blanking the types, so that line numbers stay as they are. */
module.exports = {
  process(source) {
    return { code: stripTypeScriptTypes(source, { mode: "strip" }) };
  },
};
