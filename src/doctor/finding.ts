import type { Client } from "pg";
import type { Config } from "../base/config.ts";
import type { FileStore } from "../providers/files/index.ts";

/** Something that an operator should know. */
export interface Finding {
  /** `problem`: something does not work, or data is wrong or in danger; `warning`: it will come to that. */
  level: "problem" | "warning";
  /** What is so, in one sentence, with numbers. */
  finding: string;
  /** What to do about it, in one sentence. */
  remedy: string;
}

/** What checks look at. */
export interface Installation {
  config: Config;
  /** The variables that the settings are read from. */
  environment: NodeJS.ProcessEnv;
  /** Connected as the login that owns the database. */
  client: Client;
  /** The login's connection string. */
  loginUrl: string;
  store: FileStore;
  now: Date;
}

/** One thing that is looked at. */
export interface HealthCheck {
  name: string;
  check(installation: Installation): Promise<Finding[]>;
}

export const problem = (finding: string, remedy: string): Finding => ({ level: "problem", finding, remedy });
export const warning = (finding: string, remedy: string): Finding => ({ level: "warning", finding, remedy });
