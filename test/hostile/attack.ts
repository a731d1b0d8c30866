import type { Pool } from "pg";

/** A response of the service. */
export interface Answer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  /** The raw body. */
  text: string;
}

/** A GraphQL response. */
export interface GraphqlAnswer {
  status: number;
  data: any;
  errors: { message: string; extensions: Record<string, any> }[] | undefined;
}

export interface RequestOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  /** Cancels the request, in addition to the signal of the turn. */
  signal?: AbortSignal;
}

/** A user with a login token. */
export interface Caller {
  id: string;
  email: string;
  token: string;
}

/** The attacked service, which runs as a separate process, and its attackers. */
export interface HostileWorld {
  /** `https://127.0.0.1:<port>`, without a trailing slash. */
  address: string;
  /** Process id of the service. */
  pid: number;
  /** The connection of the owner of its database, for preparations; attackers do not have it. */
  owner: Pool;
  databaseUrl: string;
  dataDir: string;
  /** OWNER of the attackers' organization. */
  attacker: Caller;
  /** MEMBER of it. */
  member: Caller;
  /** A user without an organization. */
  stranger: Caller;
  /** The attackers' organization, and its project with the status SELLING. */
  organization: { id: string; slug: string };
  project: { id: string; slug: string };
  /** The user whom the attack must not delay: OWNER of another organization, that of the demo. */
  bystander: Caller;
  /** Sends one HTTPS request without verifying the certificate. @throws Error if the connection breaks */
  request(path: string, options?: RequestOptions): Promise<Answer>;
  /** Sends a document as a user, or as a visitor (null). Refusals are responses. */
  ask(
    caller: Pick<Caller, "token"> | null,
    query: string,
    variables?: Record<string, unknown>,
    options?: RequestOptions,
  ): Promise<GraphqlAnswer>;
  /** Sends a document that must succeed. @throws Error with its errors otherwise */
  get(caller: Pick<Caller, "token"> | null, query: string, variables?: Record<string, unknown>): Promise<any>;
  /** Creates an account and signs in by SQL, so that no limit of the API is used up. All passwords are `password`. */
  signUp(name?: string): Promise<Caller>;
  password: string;
  /** An unused email address. */
  freshEmail(): string;
}

/** An attack; the default export of a file in test/hostile/attacks. */
export interface Attack {
  /** Short description for the table. */
  title: string;
  /**
   * Called once, before the clients start.
   * @param documents how many documents of the attack to plan first, like a service that has run for a while
   */
  prepare?(world: HostileWorld, documents: number): Promise<void>;
  /**
   * One turn of an attacker, which each client repeats. It only throws if the attack itself no longer works, for
   * example because a field was removed. Refusals, which are expected, and broken connections are caught.
   * @param signal aborted after the time limit; requests of the world are cancelled with it
   */
  play(world: HostileWorld, signal: AbortSignal): Promise<void>;
  /** Replaces the bystander's query of a few leads; runs in the measuring process. */
  bystander?(world: HostileWorld): Promise<void>;
}
