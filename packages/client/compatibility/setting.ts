/** The data for each client: a running service, and a user who may sell there. */
export interface Setting {
  url: string;
  token: string;
  projectId: string;
  /** The folder of this repository. */
  schemaFile: string;
  /** A folder for generated files; it is deleted afterwards. */
  folder: string;
}

/** A unique name of a lead. */
export const freshName = (): string => `Visitor ${crypto.randomUUID()}`;
