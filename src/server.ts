import { ConfigError } from "./config.ts";
import { runService } from "./service.ts";

try {
  await runService(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
