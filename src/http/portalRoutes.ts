import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { Router, type Request, type RequestHandler, type Response } from "express";
import { hasCurrent } from "./conditionalRequests.ts";
import { inTurn } from "./inTurn.ts";
import { onlyMethods } from "./onlyMethods.ts";
import type { GraphQLSchema } from "postgraphile/graphql";
import { type Authenticate, authentication } from "./authentication.ts";
import { CodedError } from "../base/errors.ts";
import { keepSuccess } from "../base/keepSuccess.ts";
import { guidePage, guideText, textForAgents } from "./portal/guides.ts";
import { readFacts } from "./portal/referenceFacts.ts";
import { explorerMain, homeMain, referenceMain, salesFloorMain } from "./portal/mains.ts";
import { domains, MarkdownReference } from "./portal/markdownReference.ts";
import { requestState } from "./requestState.ts";
import { page, policyOf, type PortalPage } from "./portal/shell.ts";

/** A user of the demo data; a button of the portal signs in as this user. */
export interface DemoPerson {
  username: string;
  name: string;
  /** Role and organization. */
  part: string;
}

export interface Demo {
  people: readonly DemoPerson[];
  password: string;
}

const assets: Readonly<Record<string, string>> = {
  "home.js": "text/javascript",
  "stateDiagram.js": "text/javascript",
  "portal.js": "text/javascript",
  "session.js": "text/javascript",
  "feed.js": "text/javascript",
  "schema.js": "text/javascript",
  "snippets.js": "text/javascript",
  "reference.js": "text/javascript",
  "explorer.js": "text/javascript",
  "editor.js": "text/javascript",
  "entries.js": "text/javascript",
  "salesFloor.js": "text/javascript",
  "portal.css": "text/css",
  "icon.svg": "image/svg+xml",
};

const pages: readonly PortalPage[] = [
  { path: "/", title: "Plat", main: homeMain, script: "home.js" },
  { path: "/reference", title: "Reference", main: referenceMain, script: "reference.js", wide: true },
  { path: "/sales-floor", title: "Sales floor", main: salesFloorMain, script: "salesFloor.js", wide: true },
];

/** A file of the portal: compressed once, with an entity tag derived from its content. */
interface Kept {
  type: string;
  etag: string;
  plain: Buffer;
  compressed: Buffer;
}

const compress = promisify(gzip);
async function keep(type: string, text: string): Promise<Kept> {
  const plain = Buffer.from(text);
  const etag = `"${createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`;
  return { type, etag, plain, compressed: await compress(plain) };
}

/** The content is not secret, so it is compressed. Browsers revalidate it each time. */
function send(request: Request, response: Response, { type, etag, plain, compressed }: Kept): void {
  response.setHeader("Content-Security-Policy", policyOf(request.path === "/explorer"));
  response.setHeader("Cache-Control", "no-cache");
  response.setHeader("ETag", etag);
  response.vary("Accept-Encoding");
  if (hasCurrent(request, etag)) return void response.status(304).end();
  response.setHeader("Content-Type", `${type}; charset=utf-8`);
  const isCompressed = request.acceptsEncodings("gzip") === "gzip";
  if (isCompressed) response.setHeader("Content-Encoding", "gzip");
  const body = isCompressed ? compressed : plain;
  response.setHeader("Content-Length", body.length);
  response.end(request.method === "HEAD" ? undefined : body);
}

/** Options of the portal. */
export interface PortalDeps {
  /** The user whom visitors can sign in as with one click. Default: none. */
  demo?: Demo | undefined;
  /** Who may read the SQL statements of operations in the explorer. Default: nobody. */
  statements?: "everyone" | "operators" | undefined;
  /** The served schema as Markdown, for viewers who may read it. Default: not served. */
  reference?: {
    schema: () => PromiseLike<GraphQLSchema> | GraphQLSchema;
    authenticate: Authenticate;
    /** Whether it is restricted to signed-in viewers. */
    production: boolean;
  };
}

/** Admits viewers who may introspect the schema. */
const readersOfSchema: RequestHandler<{ name?: string }> = (request, response, next) => {
  if (!requestState(request as Request).schemaIsOpen)
    throw new CodedError(
      "UNAUTHENTICATED",
      'Sign in first: send the header "Authorization: Bearer <token>".',
    );
  response.vary("Authorization");
  next();
};

/**
 * The pages at `/`: guides, reference, explorer, and the sales floor of the demo. Guides and reference are also served
 * as Markdown. All files come from this server and contain no business data: the pages read it through the API, as the
 * signed-in user.
 */
export function portal({ demo, statements, reference }: PortalDeps): Router {
  const router = Router({ strict: true, caseSensitive: true });
  const texts = new Map<string, Promise<Kept | undefined>>();
  /** Serves the result of `make`, which is called on the first request. */
  const serve = (make: (name: string) => Promise<Kept | undefined>): RequestHandler<{ name?: string }> =>
    inTurn(async (request: Request<{ name?: string }>, response, next) => {
      const { name = "" } = request.params;
      let text = texts.get(request.path);
      if (!text) {
        text = make(name);
        const kept = await text.catch(() => undefined);
        if (kept) texts.set(request.path, text);
      }
      const kept = await text;
      if (kept) send(request as Request, response, kept);
      else next();
    });
  const get = onlyMethods("GET", "HEAD") as RequestHandler<{ name?: string }>;
  const html = (text: string | undefined) => (text === undefined ? undefined : keep("text/html", text));
  const markdown = (text: string | undefined) =>
    text === undefined ? undefined : keep("text/markdown", text);
  const file = (name: string) => readFile(join(import.meta.dirname, "portal/assets", name), "utf8");

  const explorer: PortalPage = {
    path: "/explorer",
    title: "Explorer",
    main: explorerMain(statements),
    script: "explorer.js",
    wide: true,
  };
  for (const one of [...pages, explorer])
    router.all(
      one.path,
      get,
      serve(async () => html(page(one))),
    );
  router.all(
    "/guides",
    get,
    serve(async () => html(await guidePage(""))),
  );
  router.all(
    "/guides/:name",
    get,
    serve(async (name) =>
      name.endsWith(".md") ? markdown(await guideText(name.slice(0, -3))) : html(await guidePage(name)),
    ),
  );
  router.all(
    "/guides.md",
    get,
    serve(async () => markdown(await guideText(""))),
  );
  router.all(
    "/llms.txt",
    get,
    serve(async () => keep("text/plain", await textForAgents(reference ? domains : []))),
  );
  if (reference) {
    const { schema, authenticate, production } = reference;
    const made = keepSuccess(async () => new MarkdownReference(await schema(), await readFacts()));
    const serveText = (prefix: string) => serve(async (name) => markdown((await made()).text(prefix + name)));
    const readers = [get, authentication(authenticate, production), readersOfSchema] as RequestHandler<{
      name?: string;
    }>[];
    router.all("/reference.md", ...readers, serveText(""));
    router.all("/reference/:name.md", ...readers, serveText(""));
    router.all("/reference/domains/:name.md", ...readers, serveText("domains/"));
  }
  router.all(
    "/portal/facts.json",
    get,
    serve(async () => keep("application/json", JSON.stringify(await readFacts()))),
  );
  router.all(
    "/portal/demo.json",
    get,
    serve(async () => keep("application/json", JSON.stringify(demo ?? { people: [] }))),
  );
  router.all(
    "/portal/:name",
    get,
    serve(async (name) => (Object.hasOwn(assets, name) ? keep(assets[name]!, await file(name)) : undefined)),
  );
  return router;
}
