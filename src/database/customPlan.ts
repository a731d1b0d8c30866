const MARK = "/* planned for its values */";

/** Whether a statement requests a custom plan for its values; see customPlan of src/lists/filters.ts. */
export const wantsCustomPlan = (text: string): boolean => text.includes(MARK);
