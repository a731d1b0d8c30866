/** The realm of a test file whose remaining tests are skipped once one has failed. */
import type { Circus } from "@jest/types";
import Environment from "../harness/environment.ts";

export default class extends Environment {
  handleTestEvent = (event: Circus.Event, state: Circus.State): void => {
    const failed =
      event.name === "hook_failure" || (event.name === "test_done" && event.test.errors.length > 0);
    // Tests that do not match are skipped.
    if (failed) state.testNamePattern = /(?!)/;
  };
}
