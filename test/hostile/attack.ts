import type { Pool } from "pg";

/** What the service answered. */
export interface Answer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  /** The body as it came. */
  text: string;
}

/** What a GraphQL document was answered with. */
export interface GraphqlAnswer {
  status: number;
  data: any;
  errors: { message: string; extensions: Record<string, any> }[] | undefined;
}

export interface RequestOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  /** Gives the request up. The signal of the turn holds for every request in any case. */
  signal?: AbortSignal;
}

/** Somebody with a login token. */
export interface Caller {
  id: string;
  email: string;
  token: string;
}

/** The service under attack, as a process of its own, and who attacks it. */
export interface HostileWorld {
  /** `https://127.0.0.1:<port>`, without a trailing slash. */
  address: string;
  /** The process of the service. */
  pid: number;
  /** The connection of the owner of its database, for what an attack has to find prepared; no attacker has it. */
  owner: Pool;
  databaseUrl: string;
  dataDir: string;
  /** OWNER of the attackers' organization. */
  attacker: Caller;
  /** MEMBER of it. */
  member: Caller;
  /** Somebody with an account and no organization. */
  stranger: Caller;
  /** The attackers' organization, and a project of it in status SELLING. */
  organization: { id: string; slug: string };
  project: { id: string; slug: string };
  /** The person whom the attack must not slow down: OWNER of another organization, that of the demo. */
  bystander: Caller;
  /** Sends one HTTPS request, whatever the certificate. @throws Error when the connection breaks. */
  request(path: string, options?: RequestOptions): Promise<Answer>;
  /** Sends a document, as somebody or as a visitor without a token (null); refusals are answers. */
  ask(
    caller: Pick<Caller, "token"> | null,
    query: string,
    variables?: Record<string, unknown>,
    options?: RequestOptions,
  ): Promise<GraphqlAnswer>;
  /** Sends a document that has to succeed. @throws Error with its errors otherwise. */
  get(caller: Pick<Caller, "token"> | null, query: string, variables?: Record<string, unknown>): Promise<any>;
  /** Makes an account and signs in, by SQL: no limit of the API is used up. Everybody's password is `password`. */
  signUp(name?: string): Promise<Caller>;
  password: string;
  /** An email address that nobody has. */
  freshEmail(): string;
}

/** One way to hurt others; the default export of a file in test/hostile/attacks. */
export interface Attack {
  /** What is done, in a few words, for the table. */
  title: string;
  /**
   * Once, before the clients start.
   * @param documents how many documents of the attack to plan first, as a service has that runs for a while
   */
  prepare?(world: HostileWorld, documents: number): Promise<void>;
  /**
   * One attacker's turn; each client repeats it. It throws only where the attack itself no longer works (a field that is gone, an
   * answer that nobody expects), so that refusals, which are wanted, and broken connections are caught where they belong.
   * @param signal aborted when the time is over; requests of the world are given up with it.
   */
  play(world: HostileWorld, signal: AbortSignal): Promise<void>;
  /** What the bystander does instead of asking for a few leads; it runs in the process that measures. */
  bystander?(world: HostileWorld): Promise<void>;
}
