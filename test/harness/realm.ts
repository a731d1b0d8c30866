/**
 * A realm for test files with an ordinary global object. In the realms of Jest, each access to a global such as `Math`
 * or `Buffer` passes through a proxy: code that uses one per character takes five times as long.
 */
import v8 from "node:v8";
import vm from "node:vm";
import { TestEnvironment } from "jest-environment-node";

const { createContext } = vm;

// PERF: compiled scripts that V8 caches keep a reference to the realm in which they were compiled, with all its
// modules, as long as the process lives: about 10 MB per test file, which every garbage collection scans. The last
// files of a run took three times as long because of this.
v8.setFlagsFromString("--no-compilation-cache");

export default class extends TestEnvironment {
  constructor(...args: ConstructorParameters<typeof TestEnvironment>) {
    // The constructor does not accept the object of the context.
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY);
    try {
      super(...args);
    } finally {
      vm.createContext = createContext;
    }
  }
}
