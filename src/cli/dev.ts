/** `npm run dev`: the service like `npm start`, with a schema that follows its files on every save. */
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
