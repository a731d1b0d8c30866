const MARK = "/* planned for its values */";

/** Whether a statement requests a custom plan for its values; see plannedForValues of src/lists/filters.ts. */
export const isPlannedForValues = (text: string): boolean => text.includes(MARK);
