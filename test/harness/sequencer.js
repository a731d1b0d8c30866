/** The order of the test files. Long ones begin first, so that no core is left alone with one of them at the end. */
import Sequencer from "@jest/test-sequencer";

/** Where nothing is known of a file: those that start services, play a thousand things, or try every operation as everybody. */
const long =
  /\/test\/(process|bench|browser|deals|hostile|fuzz)\/|(Matrix|payments|reservations|buyerPermissions|exports|delivery|engine|budgets|definers|masks|access|readme)\.test\.ts$/;

export default class extends Sequencer {
  /** @param {import("@jest/test-result").Test[]} tests */
  sort(tests) {
    const sorted = super.sort(tests);
    const first = (/** @type {import("@jest/test-result").Test} */ { path, duration }) =>
      duration === undefined && long.test(path);
    return [...sorted.filter(first), ...sorted.filter((test) => !first(test))];
  }
}
