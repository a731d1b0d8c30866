/// <reference types="postgraphile" />
/**
 * Files in the schema: the interfaces Image and Document, which the tables tagged `@file` have, and uploads of rows, which go
 * to the database before the statement.
 */
import type { GraphQLOutputType } from "postgraphile/graphql";
import type { PgCodec } from "postgraphile/@dataplan/pg";
import { Preloaded } from "../database/preloaded.ts";
import type { AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      FilesPlugin: true;
    }
  }
}

/** Fields in the spelling of GraphQL, with their descriptions. */
const common: Record<string, [type: string, description: string]> = {
  id: ["ID!", "The id; sorts by time of creation."],
  url: ["URL!", "Where it is; short-lived unless everybody may see it."],
  title: ["String", "What people read instead of the filename."],
  filename: ["String!", "Name for those who save it."],
  filemime: ["String!", "Media type, by the content of the file."],
  filesize: ["Int!", "Size in bytes."],
  checksum: ["String!", "SHA-256 of the content, in hexadecimal digits."],
  insertedAt: ["DateTime!", "When it was uploaded."],
  updatedAt: ["DateTime!", "When it was last changed."],
};

const interfaces: Record<string, { description: string; fields: typeof common }> = {
  Image: {
    description: "A picture, whatever it belongs to.",
    fields: {
      ...common,
      thumbnailUrl: ["URL", "Where a small version is."],
      alt: ["String", "What it shows, for those who do not see it."],
      sequence: ["Int!", "Place among its like; 0 comes first and is the cover."],
      width: ["Int", "Width in pixels."],
      height: ["Int", "Height in pixels."],
    },
  },
  Document: {
    description: "A document, whatever it belongs to.",
    fields: {
      ...common,
      description: ["String", "What it is about."],
      public: ["Boolean!", "Whether everybody sees it who sees the record that it belongs to."],
      uploadedBy: ["User", "Who uploaded it; seen by colleagues."],
    },
  },
};

function typeOf(build: GraphileBuild.Build, text: string): GraphQLOutputType {
  const name = text.replace("!", "");
  const type = build.getOutputTypeByName(name);
  return text.endsWith("!") ? new build.graphql.GraphQLNonNull(type) : type;
}

export const FilesPlugin: GraphileConfig.Plugin = {
  name: "FilesPlugin",
  version: "1.0.0",
  gather: {
    hooks: {
      pgCodecs_PgCodec(_info, { pgCodec, pgType }) {
        if (pgType.typname !== "data_upload" || pgType.getNamespace()?.nspname !== "app_public") return;
        const { toPg } = pgCodec;
        // The adaptor brings its rows to the database before the statement.
        pgCodec.toPg = (value) => (value instanceof Preloaded ? (value as AnyType) : toPg(value));
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          for (const [name, { description, fields }] of Object.entries(interfaces))
            build.registerInterfaceType(
              name,
              {},
              () => ({
                description,
                fields: () =>
                  Object.fromEntries(
                    Object.entries(fields).map(([field, [type, text]]) => [
                      field,
                      { type: typeOf(build, type), description: text },
                    ]),
                  ),
              }),
              `FilesPlugin: ${name}`,
            );
          return _;
        },
      },
      GraphQLObjectType_interfaces(list, build, { scope }) {
        const { pgCodec, isPgClassType } = scope as { pgCodec?: PgCodec; isPgClassType?: boolean };
        const name = isPgClassType && pgCodec?.extensions?.tags?.file;
        if (typeof name !== "string" || !interfaces[name]) return list;
        const type = build.getTypeByName(name);
        return build.graphql.isInterfaceType(type) ? [...list, type] : list;
      },
    },
  },
};
