import type { Client } from "pg";
import type { Config } from "../base/config.ts";
import type { FileStore } from "../providers/files/index.ts";

/** A problem or risk that an operator should know. */
export interface Finding {
  /** `problem`: something does not work, or data is wrong or in danger; `warning`: it will become a problem. */
  level: "problem" | "warning";
  /** The observation, in one sentence with numbers. */
  finding: string;
  /** The action to take, in one sentence. */
  remedy: string;
}

/** The installation that is checked. */
export interface Installation {
  config: Config;
  /** The environment variables of the settings. */
  environment: NodeJS.ProcessEnv;
  /** Connected as the login that owns the database. */
  client: Client;
  /** Connection string of that login. */
  loginUrl: string;
  store: FileStore;
  now: Date;
}

/** One check. */
export interface HealthCheck {
  name: string;
  check(installation: Installation): Promise<Finding[]>;
}

/** A finding that makes `npm run doctor` exit with status 1. */
export const problem = (finding: string, remedy: string): Finding => ({ level: "problem", finding, remedy });
/** A finding that does not affect the exit status. */
export const warning = (finding: string, remedy: string): Finding => ({ level: "warning", finding, remedy });
