/** `npm run dev`: the service as `npm start` runs it, and a schema that follows its files from one save to the next. */
import { ConfigError } from "../base/config.ts";
import { followSchema } from "../dev/followSchema.ts";
import { runService } from "../server.ts";

try {
  await runService(
    process.argv.slice(2),
    followSchema((text) => console.error(text)),
  );
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
