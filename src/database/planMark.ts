const MARK = "/* planned for its values */";

/** Whether a statement asks to be planned for the values that it comes with; see plannedForValues of src/lists/filters.ts. */
export const isPlannedForValues = (text: string): boolean => text.includes(MARK);
