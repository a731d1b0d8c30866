/** Who is signed in. The token lives as long as the tab: it survives a reload, and another tab signs in separately. */
import { print } from "@0no-co/graphql.web";
import { createClient } from "@plat/client";
import { useState } from "react";
import { login, logout } from "./operations.ts";

/** The service answers at the address of the page; vite.config.ts forwards during development. */
const url = new URL("/graphql", import.meta.env["VITE_PLAT_URL"] ?? location.href).href;
const kept = "sales-floor.token";

export interface Session {
  token: string | null;
  signIn(username: string, password: string): Promise<void>;
  signOut(): Promise<void>;
  /** The token is no longer taken. */
  end(): void;
}

export const clientOf = (token: string | null, onEnd?: () => void) =>
  createClient({
    url,
    clientName: "sales-floor",
    // Documents of gql.tada are parsed.
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
