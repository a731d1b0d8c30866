/** The thread of `schemaThread.ts`: reads catalogs, compares them and changes the database. */
import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import { ownerUrl } from "../database/roles.ts";
import { migrate } from "../database/migrate.ts";
import { openReferences } from "../database/referenceCluster.ts";
import {
  errorOf,
  failureOf,
  state,
  type FromThread,
  type Question,
  type ThreadData,
  type ToThread,
  type FullUpdate,
} from "./schemaThread.ts";
import { isVisibleInApi } from "./statementForms.ts";
import { printFindings } from "./printFindings.ts";

const { loginUrl, authenticatorUrl, serverUrl, folder, shared } = workerData as ThreadData;
const port = parentPort as MessagePort;
const post = (message: FromThread) => port.postMessage(message);

/** Pending requests to the main thread. */
const waiting = new Map<number, { resolve(): void; reject(error: Error): void }>();
let lastId = 0;
function ask(question: Question): Promise<void> {
  const id = ++lastId;
  const answer = new Promise<void>((resolve, reject) => waiting.set(id, { resolve, reject }));
  post({ id, ask: question });
  return answer;
}

const references = openReferences(serverUrl);
references.then(({ prepare }) => prepare(folder)).catch(() => undefined);
const findings = printFindings(ownerUrl(loginUrl), (text) => post({ print: text }));

async function bring({ mine, isFirst }: FullUpdate): Promise<boolean> {
  const note = ({ event }: { event: string }, text: string) => post({ noted: { event, text } });
  return await migrate(loginUrl, {
    authenticatorUrl,
    folder,
    current: true,
    reference: async (options) => {
      const meanwhile = (url: string) => ask({ build: url });
      return await (await references).make({ ...options, ...(isFirst && { meanwhile }) });
    },
    changed: ({ changes, drift }) =>
      ask({
        changed: {
          isChanged: changes.length > 0,
          isShown: changes.some(isVisibleInApi),
          hasDrift: drift.length > 0,
        },
      }),
    isOutdated: () => {
      // Saving writes and checks in the opposite order, so that one of the two sees the other.
      Atomics.store(shared, state.isChanging, 1);
      const isOutdated = Atomics.load(shared, state.generation) !== mine;
      if (isOutdated) Atomics.store(shared, state.isChanging, 0);
      return isOutdated;
    },
    logger: { info: note, warn: note, error: note },
  }).finally(() => Atomics.store(shared, state.isChanging, 0));
}

const work = {
  whole: bring,
  check: findings,
  stop: async () => await (await references).stop(),
};

port.on("message", async (message: ToThread) => {
  if ("answer" in message) {
    const one = waiting.get(message.answer);
    waiting.delete(message.answer);
    return message.failure ? one?.reject(errorOf(message.failure)) : one?.resolve();
  }
  const { id, call, given } = message;
  try {
    post({ done: id, value: Boolean(await work[call](given as FullUpdate)) });
  } catch (error) {
    post({ done: id, failure: failureOf(error as Error) });
  }
});
