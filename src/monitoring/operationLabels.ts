/** Operation names as metric labels: clients choose them, so their number is limited. */

/** Names of registered documents that become labels, and of other documents. */
const MOST_REGISTERED = 200;
const MOST_OTHERS = 100;

/** An operation that was answered. */
export interface AnsweredOperation {
  /** Undefined where its document gives it none. */
  readonly name: string | undefined;
  /** Whether its document is a registered one. */
  readonly isRegistered: boolean;
  /** Whether a signed-in viewer sent it, and it had no errors. */
  readonly isTrusted: boolean;
}

/**
 * Gives an operation its label: its name where that belongs to a registered document, or is one of the first that signed-in viewers
 * sent without an error; "anonymous" without a name, "other" for the rest. Strangers and mistakes take no place.
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
