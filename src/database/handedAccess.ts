/** Access of a viewer as it is handed on in settings, which app_hidden.handed_access reads. */

/** Settings of a transaction, by name. */
export type AccessSettings = Readonly<Record<string, string>>;

/** Sets of each permission, by the function that returns them; as in app_hidden.handed_access, but from 0. */
const SETS = { viewer_organizations: 0, viewer_projects: 1, viewer_own_projects: 2 } as const;
export type SetName = keyof typeof SETS;

const NOTHING = "{}|{}|{}|{}|{}";

/**
 * @param access the class of each permission, such as `,lead.read=1,org.member=2,`
 * @param classes the sets of each class
 */
export function accessSettings(access: string, classes: readonly string[]): AccessSettings {
  const settings: Record<string, string> = { "plat.access": access, "plat.access_": NOTHING };
  for (const [index, sets] of classes.entries()) settings[`plat.access_${index + 1}`] = sets;
  return settings;
}

/** Whether a set is known to be empty. */
export function isEmptySet(settings: AccessSettings, set: SetName, permission: string): boolean {
  const [, rest] = settings["plat.access"]!.split(`,${permission}=`, 2);
  const sets = settings[`plat.access_${rest?.split(",", 1)[0] ?? ""}`];
  return sets?.split("|")[SETS[set]] === "{}";
}
