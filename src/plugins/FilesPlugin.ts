/// <reference types="postgraphile" />
/**
 * Files in the schema: the interfaces Image and Document, implemented by tables tagged `@file`, and uploads of rows,
 * which are sent to the database before the statement.
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

/** Fields as named in GraphQL, with descriptions. */
const common: Record<string, [type: string, description: string]> = {
  id: ["ID!", "UUID; ids in ascending order are in order of creation."],
  url: ["URL!", "Download URL. It expires after a few minutes unless the file is public."],
  title: ["String", "Display title; shown instead of the filename."],
  filename: ["String!", "Filename for downloads."],
  filemime: ["String!", "Media type (MIME), detected from the content."],
  filesize: ["Int!", "Size in bytes."],
  checksum: ["String!", "SHA-256 hash of the content, in hexadecimal digits."],
  insertedAt: ["DateTime!", "When it was uploaded."],
  updatedAt: ["DateTime!", "When it was last changed."],
};

const interfaces: Record<string, { description: string; fields: typeof common }> = {
  Image: {
    description: "An image of any record, such as a unit or a project.",
    fields: {
      ...common,
      thumbnailUrl: ["URL", "URL of a smaller version, for lists."],
      alt: ["String", "Alternative text for screen readers."],
      sequence: ["Int!", "Position among the images of the record; 0 is the first and the cover."],
      width: ["Int", "Width in pixels."],
      height: ["Int", "Height in pixels."],
    },
  },
  Document: {
    description: "A document of any record, such as a reservation or a project.",
    fields: {
      ...common,
      description: ["String", "Free-text description of the content."],
      public: ["Boolean!", "Whether everyone who can see the record can see the file."],
      uploadedBy: ["User", "The user who uploaded the file; visible to members of the same organization."],
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
        // The adaptor sends its rows to the database before the statement.
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
