// @ts-check
/** The head of every page: the signed-in user, the selected organization, and the sign-in form. */
import { act, demoPeople, element, Refused, session, tell } from "./session.js";

const place = /** @type {HTMLElement} */ (document.getElementById("account"));

/** Signs in as a user of the demo. @param {string} username @param {string} password */
export const signInAs = (username, password) =>
  act(async () => {
    await session.signIn({ username, password });
    tell(`You are signed in as ${session.viewer.fullName}.`);
  });

/** Buttons that sign in as users of the demo, as list items. */
export async function personButtons(after = () => {}) {
  const { people, password = "" } = await demoPeople();
  return people.map(({ username, name, part }) =>
    element(
      "li",
      {},
      element(
        "button",
        {
          type: "button",
          className: "card",
          onclick: async () => {
            await signInAs(username, password);
            after();
          },
        },
        element("strong", {}, name),
        element("span", {}, part),
      ),
    ),
  );
}

async function openDialog() {
  const code = element("input", {
    name: "secondFactorCode",
    inputMode: "numeric",
    autocomplete: "one-time-code",
  });
  const codeLabel = element("label", { hidden: true }, "Code of your second factor ", code);
  const refusal = element("p", { role: "alert", className: "refusal" });
  const dialog = element("dialog", { "aria-labelledby": "sign-in-title" });
  const close = () => dialog.close();
  const form = element(
    "form",
    {
      method: "dialog",
      onsubmit: async (/** @type {Event} */ event) => {
        event.preventDefault();
        refusal.textContent = "";
        const values = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
        try {
          await session.signIn(/** @type {any} */ (values));
          close();
        } catch (error) {
          if (error instanceof Refused && error.details.reason === "SECOND_FACTOR_REQUIRED") {
            codeLabel.hidden = false;
            code.required = true;
            code.focus();
          }
          refusal.textContent = error instanceof Error ? error.message : String(error);
        }
      },
    },
    element(
      "label",
      {},
      "Email ",
      element("input", { name: "username", autocomplete: "username", required: true }),
    ),
    element(
      "label",
      {},
      "Password ",
      element("input", {
        name: "password",
        type: "password",
        autocomplete: "current-password",
        required: true,
      }),
    ),
    codeLabel,
    refusal,
    element(
      "p",
      { className: "bar" },
      element("button", {}, "Sign in"),
      element("button", { type: "button", className: "plain", onclick: close }, "Cancel"),
    ),
  );
  const people = await personButtons(close);
  const demo = [
    element("h3", {}, "As somebody of the demo"),
    element("ul", { className: "cards" }, ...people),
    element("h3", {}, "With your account"),
  ];
  dialog.append(element("h2", { id: "sign-in-title" }, "Sign in"), ...(people.length > 0 ? demo : []), form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function show() {
  const { viewer, memberships } = session;
  if (!viewer) {
    place.replaceChildren(element("button", { type: "button", onclick: () => act(openDialog) }, "Sign in"));
    return;
  }
  const chosen = memberships.find((/** @type {any} */ one) => one.organization.id === session.organizationId);
  const select = element("select", {
    ariaLabel: "Organization",
    onchange: () => session.choose(select.value),
  });
  for (const { organization } of memberships) select.add(new Option(organization.name, organization.id));
  select.value = session.organizationId;
  place.replaceChildren(
    element("span", { className: "who" }, viewer.fullName),
    memberships.length > 0 ? select : element("span", { className: "quiet" }, "no organization"),
    chosen ? element("span", { className: "role" }, chosen.role.toLowerCase()) : "",
    element(
      "button",
      { type: "button", className: "plain", onclick: () => act(() => session.signOut()) },
      "Sign out",
    ),
  );
}

session.addEventListener("change", show);
show();
/** Resolves when it is known whether a user is signed in. */
export const known = act(() => session.load());
await known;
