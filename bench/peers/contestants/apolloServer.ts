/** Apollo Server on Node's own HTTPS server. */
import { createServer } from "node:https";
import { ApolloServer, HeaderMap, type BaseContext } from "@apollo/server";
import { listen, settings } from "../serve.ts";

/** Serves a schema; `context` creates the context of a request. */
export async function serveApollo<Context extends BaseContext>(
  schema: { typeDefs: string; resolvers: any },
  context: (authorization: string | undefined) => Context,
): Promise<void> {
  const apollo = new ApolloServer<Context>({ ...schema, introspection: false });
  apollo.startInBackgroundHandlingStartupErrorsByLoggingAndFailingAllRequests();
  await listen(
    createServer(settings.tls, (request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", async () => {
        const headers = new HeaderMap();
        for (const [name, value] of Object.entries(request.headers)) headers.set(name, String(value));
        const answer = await apollo.executeHTTPGraphQLRequest({
          httpGraphQLRequest: {
            method: request.method!,
            headers,
            search: "",
            body: JSON.parse(Buffer.concat(parts).toString()),
          },
          context: async () => context(request.headers.authorization),
        });
        for (const [name, value] of answer.headers) response.setHeader(name, value);
        response.statusCode = answer.status ?? 200;
        response.end((answer.body as { string: string }).string);
      });
    }),
  );
}
