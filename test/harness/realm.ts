/**
 * The realm of a test file with an ordinary global object. Jest makes one whose every access, of `Math` or `Buffer` too, asks a proxy:
 * code that uses them for each character takes five times as long there.
 */
import v8 from "node:v8";
import vm from "node:vm";
import { TestEnvironment } from "jest-environment-node";

const { createContext } = vm;

// PERF: what V8 keeps of scripts it has compiled holds the realm that each was compiled in, with all its modules, for as long as the process
// lives: some 10 MB per test file, which every collection of garbage goes through. Files late in a run took three times as long by that.
v8.setFlagsFromString("--no-compilation-cache");

export default class extends TestEnvironment {
  constructor(...args: ConstructorParameters<typeof TestEnvironment>) {
    // What the constructor makes the context of cannot be given to it.
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY);
    try {
      super(...args);
    } finally {
      vm.createContext = createContext;
    }
  }
}
