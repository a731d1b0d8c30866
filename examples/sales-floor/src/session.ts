/**
 * The session of the signed-in user. The token is stored per tab: it survives a reload, and each tab signs in
 * separately.
 */
import { print } from "@0no-co/graphql.web";
import { createClient } from "@plat/client";
import { useState } from "react";
import { login, logout } from "./operations.ts";

/** The API has the same origin as the page; vite.config.ts forwards its requests during development. */
const url = new URL("/graphql", import.meta.env["VITE_PLAT_URL"] ?? location.href).href;
const kept = "sales-floor.token";

export interface Session {
  token: string | null;
  signIn(username: string, password: string): Promise<void>;
  signOut(): Promise<void>;
  /** The service no longer accepts the token. */
  end(): void;
}

export const clientOf = (token: string | null, onEnd?: () => void) =>
  createClient({
    url,
    clientName: "sales-floor",
    // The documents of gql.tada are already parsed.
    print: print as never,
    token: ({ refused }) => {
      if (refused) onEnd?.();
      return refused ? null : token;
    },
  });

export function useSession(): Session {
  const [token, setToken] = useState(() => sessionStorage.getItem(kept));
  const end = () => {
    sessionStorage.removeItem(kept);
    setToken(null);
  };
  return {
    token,
    end,
    async signIn(username, password) {
      const { login: session } = await clientOf(null).request(login, { input: { username, password } });
      sessionStorage.setItem(kept, session!.token!);
      setToken(session!.token!);
    },
    async signOut() {
      await clientOf(token).request(logout, { input: {} }).finally(end);
    },
  };
}
