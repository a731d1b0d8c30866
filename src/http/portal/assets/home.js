// @ts-check
import { personButtons } from "./portal.js";
import { act, ask, session } from "./session.js";

const people = /** @type {HTMLElement} */ (document.getElementById("people"));
const answer = /** @type {HTMLElement} */ (document.getElementById("answer"));

const buttons = await personButtons();
people.querySelector("ul")?.replaceChildren(...buttons);
const show = () => (people.hidden = buttons.length === 0 || Boolean(session.viewer));
session.addEventListener("change", show);
show();

document.getElementById("ask-now")?.addEventListener("click", () =>
  act(async () => {
    const { data, errors } = await ask({ documentId: "portal:PublicProjects" });
    answer.hidden = false;
    answer.textContent = JSON.stringify({ data, errors }, null, 2);
  }),
);
