/** Operation names as metric labels: clients choose them, so their number is limited. */

/** Maximum number of labels for registered documents, and for other documents. */
const MOST_REGISTERED = 200;
const MOST_OTHERS = 100;

/** An operation that was answered. */
export interface AnsweredOperation {
  /** Undefined if its document has no name for it. */
  readonly name: string | undefined;
  /** Whether its document is registered. */
  readonly isRegistered: boolean;
  /** Whether a signed-in viewer sent it, and it had no errors. */
  readonly isTrusted: boolean;
}

/**
 * Assigns a label to an operation: its name if it belongs to a registered document, or is one of the first that signed-in viewers sent
 * without an error; "anonymous" without a name, "other" for the rest. Visitors and failed operations create no labels.
 */
export function operationLabels(): (operation: AnsweredOperation) => string {
  const registered = new Set<string>();
  const others = new Set<string>();
  return ({ name, isRegistered, isTrusted }) => {
    if (name === undefined) return "anonymous";
    if (registered.has(name) || others.has(name)) return name;
    if (isRegistered && registered.size < MOST_REGISTERED) registered.add(name);
    else if (isTrusted && others.size < MOST_OTHERS) others.add(name);
    else return "other";
    return name;
  };
}
