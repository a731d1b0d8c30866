/**
 * The realm of a test file whose remaining tests are skipped once one has failed, because the mutant is
 * killed then.
 */
import type { Circus } from "@jest/types";
import Realm from "../harness/realm.ts";

/** Tests about memory and many megabytes: mutated code counts each of its steps, which takes memory and time. */
const measuring =
  /^(10 MB of members are refused before any object is created|the limit is exactly 10 MB for signed-in viewers|large bodies that one viewer sends at once are parsed in turn)$/;

export default class extends Realm {
  #failed = false;

  readonly handleTestEvent = (event: Circus.Event): void => {
    if (event.name === "test_done" && event.test.errors.length > 0) this.#failed = true;
    if (event.name === "test_start" && (this.#failed || measuring.test(event.test.name)))
      event.test.mode = "skip";
    // Otherwise, what the next file executes when it is loaded would count as executed by the skipped test.
    const { __stryker__: counts } = this.global as { __stryker__?: { currentTestId?: string | undefined } };
    if (event.name === "test_skip" && counts) counts.currentTestId = undefined;
  };
}
