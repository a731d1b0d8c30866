/** What each of the clients is given: a service that runs, and somebody who may sell there. */
export interface Setting {
  url: string;
  token: string;
  projectId: string;
  /** Of this repository. */
  schemaFile: string;
  /** For what is generated; it is deleted afterwards. */
  folder: string;
}

/** A lead's name, another one each time. */
export const freshName = (): string => `Visitor ${crypto.randomUUID()}`;
