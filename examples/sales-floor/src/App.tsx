import { useEffect, useMemo, useState } from "react";
import { Floor } from "./Floor.tsx";
import { Message } from "./Message.tsx";
import { type Project, projectsQuery } from "./operations.ts";
import { clientOf, type Session, useSession } from "./session.ts";

export function App() {
  const session = useSession();
  const { token, end } = session;
  // Each person has a client of their own, so that no data of the previous one remains on the screen.
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- `end` only sets state
  const plat = useMemo(() => clientOf(token, end), [token]);
  const [{ name, projects }, setPlace] = useState<{ name?: string; projects: Project[] }>({ projects: [] });
  const [projectId, setProjectId] = useState<string>();
  const [error, setError] = useState<unknown>();

  useEffect(() => {
    const leaving = new AbortController();
    setError(undefined);
    setPlace({ projects: [] });
    const read = async () => {
      const seen = await plat.request(projectsQuery, {}, { signal: leaving.signal });
      const mine = seen.projects?.length ? seen.projects : (seen.publicProjects ?? []);
      const isSelling = ({ status }: Project) => Number(status === "SELLING");
      setPlace({
        name: seen.viewer?.fullName,
        projects: mine.toSorted((one, other) => isSelling(other) - isSelling(one)),
      });
    };
    read().catch((failure: unknown) => {
      if (!leaving.signal.aborted) setError(failure);
    });
    return () => leaving.abort();
  }, [plat]);

  const project = projects.find(({ id }) => id === projectId) ?? projects[0];
  return (
    <>
      <header>
        <h1>Sales floor</h1>
        <label>
          Project{" "}
          <select value={project?.id} onChange={({ target }) => setProjectId(target.value)}>
            {projects.map(({ id, title }) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <People session={session} name={name} />
      </header>
      <main>
        <Message of={error} />
        {project && <Floor key={`${token} ${project.id}`} plat={plat} project={project} />}
      </main>
    </>
  );
}

interface Demo {
  password?: string;
  people: { username: string; name: string; part: string }[];
}

/** One button for each person of the demo. In a real application, a form calls `signIn` in the same way. */
function People({ session, name }: { session: Session; name: string | undefined }) {
  const [demo, setDemo] = useState<Demo>({ people: [] });
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    fetch("/portal/demo.json")
      .then((response) => response.json() as Promise<Demo>)
      .then(setDemo, () => {});
  }, []);
  const act = (work: Promise<void>) => {
    setError(undefined);
    work.catch(setError);
  };
  return (
    <nav aria-label="People">
      {demo.people.map(({ username, name: other, part }) => (
        <button
          key={username}
          type="button"
          title={part}
          aria-pressed={Boolean(session.token) && other === name}
          onClick={() => act(session.signIn(username, demo.password!))}
        >
          {other}
        </button>
      ))}
      {session.token && (
        <button type="button" onClick={() => act(session.signOut())}>
          Sign out
        </button>
      )}
      <Message of={error} />
    </nav>
  );
}
