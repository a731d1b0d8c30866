// @ts-check
/**
 * The signed-in user, and requests on their behalf. The token is stored for this tab only (sessionStorage), until the
 * tab is closed or the user signs out, which also ends the session at the service.
 */

const kept = "plat.session";

/** @returns {{ token?: string, organizationId?: string }} */
const read = () => JSON.parse(sessionStorage.getItem(kept) ?? "{}");
const write = (/** @type {object} */ values) => sessionStorage.setItem(kept, JSON.stringify(values));

/** An error response of the API. */
export class Refused extends Error {
  /** @param {{ message: string, extensions?: Record<string, any> }[]} errors */
  constructor(errors) {
    super(errors[0]?.message ?? "The service gave no answer.");
    this.details = errors[0]?.extensions ?? {};
  }
}

/** Emits "change" when a user signs in or out, or selects another organization. */
export const session = new (class extends EventTarget {
  /** @type {any} */
  viewer = null;
  get token() {
    return read().token;
  }
  get organizationId() {
    return read().organizationId;
  }
  /** The organizations of the viewer. */
  get memberships() {
    return (this.viewer?.organizations ?? []).filter((/** @type {any} */ one) => one.organization);
  }
  /** @param {string} id */
  choose(id) {
    write({ ...read(), organizationId: id });
    this.#changed();
  }
  /** @param {{ username: string, password: string, secondFactorCode?: string }} input */
  async signIn(input) {
    if (this.token) await this.signOut();
    const { login } = await request("SignIn", { input });
    write({ token: login.token });
    await this.load();
  }
  /** Ends the session at the service. The token is removed even if that fails. */
  async signOut() {
    try {
      await request("SignOut");
    } catch {
      // The session has ended already, or the service does not answer.
    }
    this.drop();
  }
  drop() {
    sessionStorage.removeItem(kept);
    this.viewer = null;
    this.#changed();
  }
  /** Loads the user of the stored token. */
  async load() {
    if (this.token) {
      const { viewer } = await request("Viewer");
      this.viewer = viewer;
      if (!viewer) sessionStorage.removeItem(kept);
      else if (
        !this.memberships.some((/** @type {any} */ one) => one.organization.id === this.organizationId)
      )
        write({ ...read(), organizationId: this.memberships[0]?.organization.id });
    }
    this.#changed();
  }
  #changed() {
    this.dispatchEvent(new Event("change"));
  }
})();

/**
 * The complete response.
 * @param {{ query?: string, documentId?: string, variables?: object, operationName?: string }} body
 * @param {Record<string, string>} [headers]
 * @param {string} [path]
 */
export async function ask(body, headers = {}, path = "/graphql") {
  const response = await fetch(path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json",
      ...(session.token && { authorization: `Bearer ${session.token}` }),
      ...headers,
    },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (response.status === 401 && session.token && !headers.authorization) {
    session.drop();
    tell("Your session has ended. Sign in again.");
  }
  return answer;
}

/**
 * The data of one of the portal's own documents.
 * @param {string} name of a document of src/http/ownDocuments.ts
 * @param {object} [variables]
 * @returns {Promise<any>}
 * @throws Refused
 */
export async function request(name, variables) {
  const { data, errors } = await ask({ documentId: `portal:${name}`, variables });
  if (errors) throw new Refused(errors);
  return data;
}

/** @param {string} text */
export function tell(text) {
  const place = document.getElementById("message");
  if (place) place.textContent = text;
}

/** Runs the action of a button, and shows its error. @param {() => Promise<void>} work */
export async function act(work) {
  tell("");
  try {
    await work();
  } catch (error) {
    tell(error instanceof Error ? error.message : String(error));
  }
}

/**
 * Creates an element. Texts are inserted as text, never as HTML.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(string | Node | undefined | false | null)} children
 * @returns {any}
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties))
    if (name in made) /** @type {any} */ (made)[name] = value;
    else made.setAttribute(name, String(value));
  made.append(...children.filter((child) => child !== undefined && child !== false && child !== null));
  return made;
}

/** @type {Promise<{ people: { username: string, name: string, part: string }[], password?: string }> | undefined} */
let demo;
/** Users of the demo that visitors can sign in as; empty without the demo. */
export const demoPeople = () => (demo ??= fetch("/portal/demo.json").then((response) => response.json()));
