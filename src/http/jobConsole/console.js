// @ts-check
/**
 * The script of the job page. It uses the API with the rights of the signed-in user. Responses are inserted as text;
 * the token is only kept in memory.
 */

/** @type {string | undefined} */
let token;

/** @type {(id: string) => any} */
const at = (id) => document.getElementById(id);
const tell = (/** @type {string} */ text) => (at("message").textContent = text);

/**
 * @param {string} name of a document of src/http/ownDocuments.ts
 * @param {Record<string, unknown>} [variables]
 * @returns {Promise<any>}
 */
async function ask(name, variables = {}) {
  const response = await fetch("/graphql", {
    method: "POST",
    headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ documentId: `jobs:${name}`, variables }),
  });
  const { data, errors } = await response.json();
  if (errors) throw new Error(errors[0].message);
  return data;
}

/** @param {Record<string, unknown>} values */
const given = (values) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined));

/** @param {HTMLFormElement} form */
const valuesOf = (form) => given(Object.fromEntries(new FormData(form)));

/** @param {string | null} time */
const local = (time) => (time ? new Date(time).toLocaleString() : "");

/**
 * @param {(string | number | Node)[]} cells
 * @param {number[]} long
 */
function row(cells, long = []) {
  const made = document.createElement("tr");
  for (const [index, cell] of cells.entries()) {
    const place = document.createElement("td");
    if (long.includes(index)) place.className = "long";
    place.append(cell instanceof Node ? cell : String(cell));
    made.append(place);
  }
  return made;
}

/** Runs the action of a button or form, and shows its error. @param {() => Promise<void>} work */
function act(work) {
  tell("");
  work().catch((error) => tell(error instanceof Error ? error.message : String(error)));
}

function filter() {
  const { createdBefore, arguments: members, ...rest } = valuesOf(at("filter"));
  return given({
    ...rest,
    createdBefore: createdBefore ? new Date(String(createdBefore)).toISOString() : "",
    arguments: members ? JSON.parse(String(members)) : "",
  });
}

const perPage = 50;
/** @type {string | undefined} */
let last;

/** @param {boolean} [older] */
async function showJobs(older = false) {
  const { jobs } = await ask("Jobs", { ...filter(), ...(older && { beforeId: last }) });
  if (!older) at("jobs").replaceChildren();
  for (const job of jobs) {
    const box = document.createElement("input");
    box.type = "checkbox";
    box.value = job.id;
    box.ariaLabel = `Job ${job.id}`;
    at("jobs").append(
      row(
        [
          box,
          job.id,
          job.task,
          job.state,
          `${job.attempts} of ${job.maxAttempts}`,
          local(job.runAt),
          job.lastError ?? "",
          JSON.stringify(job.arguments),
          job.requestId ?? "",
        ],
        [6, 7, 8],
      ),
    );
  }
  last = jobs.at(-1)?.id;
  at("more").hidden = jobs.length < perPage;
}

async function showTasks() {
  const { jobTasks } = await ask("JobTasks");
  at("tasks").replaceChildren(
    ...jobTasks.map((/** @type {any} */ task) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = task.pausedAt ? "Resume" : "Pause";
      const name = task.pausedAt ? "resumeTask" : "pauseTask";
      button.addEventListener("click", () =>
        act(async () => {
          await ask(name, {
            input: { task: task.name },
          });
          await showTasks();
        }),
      );
      const paused = task.pausedAt ? `${local(task.pausedAt)} ${task.pauseReason ?? ""}` : "";
      return row([
        task.name,
        task.due,
        task.scheduled,
        task.failed,
        local(task.oldestDueAt),
        local(task.lastScheduledAt),
        paused,
        button,
      ]);
    }),
  );
}

/** @param {string} name */
async function change(name) {
  const chosen = [
    .../** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("#jobs input:checked")),
  ];
  const { organizationId, ...rest } = filter();
  const which = at("all").checked ? rest : { ids: chosen.map(({ value }) => value) };
  if (!at("all").checked && chosen.length === 0) throw new Error("Choose jobs first.");
  const when = at("run-at").value;
  if (name === "rescheduleJobs" && !when) throw new Error("Say when they are to run.");
  const input = {
    ...which,
    ...given({ organizationId }),
    ...(name === "rescheduleJobs" && { runAt: new Date(when).toISOString() }),
  };
  let changed = 0;
  for (let more = true; more;) {
    const answer = await ask(name, { input });
    changed += answer[name].changed;
    more = answer[name].more;
    tell(`${changed} jobs so far …`);
  }
  await showJobs();
  tell(`${changed} jobs were changed.`);
}

at("sign-in").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  act(async () => {
    const { login } = await ask("SignIn", {
      input: valuesOf(at("sign-in")),
    });
    token = login.token;
    const { viewer } = await ask("Viewer");
    const owned = viewer.organizations.filter((/** @type {any} */ one) => one.role === "OWNER");
    if (viewer.isOperator) at("filter").organizationId.add(new Option("all", ""));
    for (const { organization } of owned)
      at("filter").organizationId.add(new Option(organization.name, organization.id));
    if (!viewer.isOperator && owned.length === 0)
      throw new Error("Jobs are for operators of the service, and for owners of an organization.");
    at("sign-in").remove();
    document.querySelector("main")?.removeAttribute("hidden");
    if (viewer.isOperator) {
      at("task-section").hidden = false;
      await showTasks();
    }
    await showJobs();
  });
});
at("filter").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  act(() => showJobs());
});
at("more").addEventListener("click", () => act(() => showJobs(true)));
for (const button of document.querySelectorAll("[data-change]"))
  button.addEventListener("click", () =>
    act(() => change(String(/** @type {HTMLElement} */ (button).dataset.change))),
  );
