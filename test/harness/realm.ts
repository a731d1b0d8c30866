/**
 * The realm of a test file with an ordinary global object. Jest makes one whose every access, of `Math` or `Buffer` too, asks a proxy:
 * code that uses them for each character takes five times as long there.
 */
import vm from "node:vm";
import { TestEnvironment } from "jest-environment-node";

const { createContext } = vm;

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
