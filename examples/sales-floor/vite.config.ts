import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** Proxy to the service during development. Its certificate is self-signed, hence `secure: false`. */
const target = process.env["PLAT_URL"] ?? "https://localhost:8443";
const proxy = Object.fromEntries(
  ["/graphql", "/events", "/portal/demo.json"].map((path) => [path, { target, secure: false }]),
);

export default defineConfig({
  plugins: [react()],
  // The client is a link to its folder in this repository, which is outside of this project.
  server: { proxy, fs: { allow: [".", "../../packages/client/dist"] } },
  preview: { proxy },
});
