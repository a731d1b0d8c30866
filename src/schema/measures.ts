/** Determines which aggregates of a field are meaningful, by what it measures. */
import { TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import { baseCodec, tagTexts } from "./codecNames.ts";

export type Aggregate = "sum" | "average" | "min" | "max" | "distinctCount";

/** Aggregates by the values of the tag @measures. */
const ofMeasure: Readonly<Record<string, readonly Aggregate[]>> = {
  // Such as money, areas and numbers of rooms.
  quantity: ["sum", "average", "min", "max"],
  // Such as a price per square foot, or a duration that each record has of its own.
  ratio: ["average", "min", "max"],
  // Such as a floor.
  rank: ["min", "max"],
  // Such as a version, or a setting.
  nothing: [],
};

/**
 * Aggregates of a field: by the tag @measures of its column or function, or of its domain; of references and enumerations, the number of
 * distinct ones.
 * @param tags of the column or function
 */
export function aggregatesOf(
  codec: PgCodec,
  tags: Record<string, unknown> | undefined,
): readonly Aggregate[] {
  const [measure] = [...tagTexts(tags, "measures"), ...tagTexts(codec.extensions?.tags, "measures")];
  if (measure !== undefined) {
    const aggregates = ofMeasure[measure];
    if (!aggregates) throw new Error(`@measures ${measure}: use ${Object.keys(ofMeasure).join(", ")}.`);
    return aggregates;
  }
  const isReference = baseCodec(codec) === TYPES.uuid;
  return isReference || typeof codec.extensions?.tags?.enum === "string" ? ["distinctCount"] : [];
}
